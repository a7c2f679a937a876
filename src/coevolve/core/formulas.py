"""The full-set score of one pool from a sample of its tasks.

Every estimator is a constant plus (1/N) Σ_{t∈S} e_t / π_t, and they differ in the e_t they weight;
`coevolve.core.variance` says where the variances come from.

A missing outcome leaves the sample. What is left counts as a random part of what was drawn: π_t
is multiplied by the share of the drawn tasks that answered.
"""

from typing import NamedTuple

from coevolve.core.arrays import Floats
from coevolve.core.sample import Sample
from coevolve.core.variance import sample_variance


class Part(NamedTuple):
    """The estimate of one pool; without a variance it says why."""

    value: float
    variance: float | None
    note: str = ""


def horvitz_thompson(sample: Sample) -> Part:
    """Horvitz–Thompson estimate of the mean score of one pool.

    >>> import numpy as np
    >>> sample = Sample.without_history(np.ones(2), np.array([0.25, 0.5]), pool_size=4)
    >>> horvitz_thompson(sample).value
    1.5
    """
    value = float((sample.scores / sample.answering).sum()) / sample.pool_size
    return Part(value, *_spread(sample, sample.scores, sample.pool_size))


def hajek(sample: Sample) -> Part:
    """Hájek estimate of the mean score of one pool.

    >>> import numpy as np
    >>> pi = np.array([0.033, 0.402, 0.402])  # appendix A.2: one rare task, solved, outweighs two
    >>> round(hajek(Sample.without_history(np.array([1.0, 0, 0]), pi, pool_size=89)).value, 3)
    0.859
    """
    # Relative to the least likely task, so that equally likely ones get an exact mean.
    least = float(sample.answering.min())
    shares = least / sample.answering
    value = float(sample.scores @ shares) / float(shares.sum())
    residual, size = sample.scores - value, float(shares.sum()) / least
    if sample.anticipation is None:
        return Part(value, *_spread(sample, residual, size))
    total = sample.anticipation.of_hajek(value, sample.share)
    return Part(value, max(total, 0.0) / sample.pool_size**2)


def difference(sample: Sample) -> Part:
    """Anchored difference estimate of the mean score of one pool.

    >>> import numpy as np
    >>> sample = Sample.without_history(np.ones(2), np.array([0.25, 0.5]), pool_size=4)
    >>> from dataclasses import replace
    >>> difference(replace(sample, anchors=np.array([1.0, 0.5]))).value
    0.75
    """
    residual = sample.scores - sample.anchors
    value = sample.anchor_mean + float((residual / sample.answering).sum()) / sample.pool_size
    if sample.anticipation is None:
        return Part(value, *_spread(sample, residual, sample.pool_size))
    anticipation, expected = sample.anticipation, sample.expected
    total = anticipation.of_difference(residual, expected, sample.anchors, sample.share)
    return Part(value, max(total, 0.0) / sample.pool_size**2)


def sampled(sample: Sample) -> bool:
    """Whether chance had a say: not every task was certain to be drawn and to answer."""
    return bool((sample.answering < 1 - 1e-12).any())


def _spread(sample: Sample, residual: Floats, size: float) -> tuple[float | None, str]:
    """Variance of Σ e_t / π_t / size from the sample alone, or None and the reason."""
    if not sampled(sample):
        return 0.0, ""
    if len(residual) < 2:
        return None, f"a single task of pool {sample.pool!r} answered; a spread needs two"
    variance = sample_variance(residual, sample.answering) / size**2
    if variance == 0:
        return None, f"all tasks of pool {sample.pool!r} agree, so their spread is not known"
    return variance, ""
