"""Full-set scores from the sampled tasks, each with a standard error and an interval.

Scores are computed here and nowhere else. Every estimator is a constant plus
(1/N) Σ_{t∈S} e_t / π_t, and they differ in the e_t they weight; `coevolve.core.variance` says
where the standard errors come from.

A missing outcome leaves the sample. What is left counts as a random part of what was drawn: π_t
is multiplied by the share of the drawn tasks that answered.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from coevolve.core.arrays import Floats, Indices
from coevolve.core.estimate import Estimate
from coevolve.core.variance import anticipated_variance, sample_variance


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """The scores of one candidate on the tasks drawn from one pool.

    `scores`, `probabilities`, `anchors` (p̄_t) and `counts` (n_t) belong to the tasks that
    answered; `drawn` counts the tasks asked for, `anchor_mean` is the mean anchor of the whole
    pool and `anticipated` what the history of the whole pool says about the variance of the
    difference estimator (see `coevolve.core.variance`).
    """

    pool: str
    pool_size: int
    drawn: int
    scores: Floats
    probabilities: Floats
    anchors: Floats
    counts: Indices
    anchor_mean: float
    anticipated: Floats

    @classmethod
    def without_history(
        cls, scores: Floats, probabilities: Floats, *, pool_size: int, pool: str = "all"
    ) -> Self:
        """Sample of tasks that all answered and of whose past nothing is known."""
        size = len(scores)
        return cls(
            pool=pool,
            pool_size=pool_size,
            drawn=size,
            scores=scores,
            probabilities=probabilities,
            anchors=np.full(size, 0.5),
            counts=np.zeros(size, dtype=np.int64),
            anchor_mean=0.5,
            anticipated=np.zeros(3),
        )

    @property
    def answering(self) -> Floats:
        """Probability of each task to be drawn and to answer."""
        return self.probabilities * (len(self.scores) / self.drawn)


class Part(NamedTuple):
    """The estimate of one pool; without a variance it says why."""

    value: float
    variance: float | None
    note: str = ""


@runtime_checkable
class Estimator(Protocol):
    """Turns the samples of a candidate, one per pool, into an estimate of its full-set score."""

    @property
    def needs_history(self) -> bool: ...

    def estimate(self, samples: Sequence[Sample], weights: Floats, confidence: float) -> Estimate:
        """Estimate from a sample per pool, none of them empty, and the weights of the pools."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RawMean:
    """Mean over all sampled tasks, pools together, as Naive and Random-Resample take it.

    It ignores inclusion probabilities and pool weights. After a weighted draw it estimates
    something else than the full-set score, and gives no standard error.

    >>> sample = Sample.without_history(np.array([1.0, 0.0, 1.0]), np.full(3, 0.5), pool_size=6)
    >>> print(RawMean().estimate([sample], np.ones(1), 0.95))
    0.667 ± 0.236 (3 of 6 tasks, raw mean)
    """

    needs_history: ClassVar[bool] = False

    def estimate(self, samples: Sequence[Sample], weights: Floats, confidence: float) -> Estimate:
        size, drawn = sum(s.pool_size for s in samples), sum(s.drawn for s in samples)
        scores = np.concatenate([s.scores for s in samples])
        merged = replace(
            samples[0],
            pool="all",
            pool_size=size,
            drawn=drawn,
            scores=scores,
            probabilities=np.full(len(scores), drawn / size),
        )
        part = hajek(merged)
        if any(np.ptp(s.probabilities) > 1e-12 for s in samples):
            part = Part(
                part.value, None, "a raw mean of unequally likely tasks has no error bound"
            )
        return _combined("raw mean", [part], [merged], np.ones(1), confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class HorvitzThompson:
    """Sum of outcomes over their inclusion probabilities: unbiased, and noisy.

    Ŝ = (1/N) Σ_{t∈S} x_t / π_t.
    """

    needs_history: ClassVar[bool] = False

    def estimate(self, samples: Sequence[Sample], weights: Floats, confidence: float) -> Estimate:
        parts = [horvitz_thompson(sample) for sample in samples]
        return _combined("Horvitz-Thompson", parts, samples, weights, confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hajek:
    """Weighted mean of the outcomes with weights 1/π_t: slightly biased, within [0, 1].

    Ŝ = Σ_{t∈S} (x_t / π_t) / Σ_{t∈S} (1 / π_t). One rarely drawn task can outweigh all others.
    """

    needs_history: ClassVar[bool] = False

    def estimate(self, samples: Sequence[Sample], weights: Floats, confidence: float) -> Estimate:
        parts = [hajek(sample) for sample in samples]
        return _combined("Hájek", parts, samples, weights, confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Mean anchor plus the weighted deviations from the anchors: unbiased, steady.

    Ŝ = (1/N) Σ_{t∈T} p̄_t + (1/N) Σ_{t∈S} (x_t - p̄_t) / π_t. The anchors p̄_t are fixed before
    the draw, so they cancel in expectation.
    """

    needs_history: ClassVar[bool] = True

    def estimate(self, samples: Sequence[Sample], weights: Floats, confidence: float) -> Estimate:
        parts = [difference(sample) for sample in samples]
        return _combined("difference", parts, samples, weights, confidence, normal=True)


def horvitz_thompson(sample: Sample) -> Part:
    """Horvitz–Thompson estimate of the mean score of one pool.

    >>> sample = Sample.without_history(np.ones(2), np.array([0.25, 0.5]), pool_size=4)
    >>> horvitz_thompson(sample).value
    1.5
    """
    value = float((sample.scores / sample.answering).sum()) / sample.pool_size
    return Part(value, *_spread(sample, sample.scores, sample.pool_size))


def hajek(sample: Sample) -> Part:
    """Hájek estimate of the mean score of one pool.

    >>> pi = np.array([0.033, 0.402, 0.402])  # appendix A.2: one rare task, solved, outweighs two
    >>> round(hajek(Sample.without_history(np.array([1.0, 0, 0]), pi, pool_size=89)).value, 3)
    0.859
    """
    inverse = 1 / sample.answering
    value = float(sample.scores @ inverse) / float(inverse.sum())
    return Part(value, *_spread(sample, sample.scores - value, float(inverse.sum())))


def difference(sample: Sample) -> Part:
    """Anchored difference estimate of the mean score of one pool.

    >>> sample = Sample.without_history(np.ones(2), np.array([0.25, 0.5]), pool_size=4)
    >>> difference(replace(sample, anchors=np.array([1.0, 0.5]))).value
    0.75
    """
    residual = sample.scores - sample.anchors
    value = sample.anchor_mean + float((residual / sample.answering).sum()) / sample.pool_size
    if not _sampled(sample):
        return Part(value, 0.0)
    response = len(sample.scores) / sample.drawn
    return Part(
        value,
        anticipated_variance(
            sample.anticipated, residual, sample.anchors, sample.counts, response, sample.pool_size
        ),
    )


def _sampled(sample: Sample) -> bool:
    """Whether chance had a say: not every task was certain to be drawn and to answer."""
    return bool((sample.answering < 1 - 1e-12).any())


def _spread(sample: Sample, residual: Floats, size: float) -> tuple[float | None, str]:
    """Variance of Σ e_t / π_t / size from the sample alone, or None and the reason."""
    if not _sampled(sample):
        return 0.0, ""
    if len(residual) < 2:
        return None, f"a single task of pool {sample.pool!r} answered; a spread needs two"
    variance = sample_variance(residual, sample.answering) / size**2
    if variance == 0:
        return None, f"all tasks of pool {sample.pool!r} agree, so their spread is not known"
    return variance, ""


def _combined(
    method: str,
    parts: Sequence[Part],
    samples: Sequence[Sample],
    weights: Floats,
    confidence: float,
    *,
    normal: bool = False,
) -> Estimate:
    """Weighted mean of the pools' estimates, with Student's interval or the normal one."""
    value = float(sum(w * part.value for w, part in zip(weights, parts, strict=True)))
    known = [part.variance for part in parts if part.variance is not None]
    se = low = high = None
    if len(known) == len(parts):
        se = float(np.sqrt(weights**2 @ np.array(known)))
        degrees = None if normal else sum(len(s.scores) - 1 for s in samples)
        reach = se * _quantile((1 + confidence) / 2, degrees) if se > 0 else 0.0
        low, high = value - reach, value + reach
    exact = all(not _sampled(sample) for sample in samples)
    return Estimate(
        value=value,
        se=se,
        low=low,
        high=high,
        tasks=sum(len(s.scores) for s in samples),
        drawn=sum(s.drawn for s in samples),
        pool_size=sum(s.pool_size for s in samples),
        method="full set" if exact else method,
        note="; ".join(part.note for part in parts if part.note),
    )


def _quantile(level: float, degrees: int | None) -> float:
    """Quantile of Student's t, or of the normal distribution without degrees of freedom."""
    from scipy.special import ndtri, stdtrit  # on first use: it takes longer than all the rest

    return float(ndtri(level) if degrees is None else stdtrit(degrees, level))
