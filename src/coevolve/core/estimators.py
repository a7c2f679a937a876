"""Estimators: full-set scores from the sampled tasks, with standard errors and intervals.

Every estimator is a constant plus (1/N) Σ_{t∈S} e_t / π_t; they differ in the e_t.
`coevolve.core.variance` derives the variances.

A missing outcome leaves the sample. The rest counts as a random part of what was drawn: π_t is
multiplied by the share of the drawn tasks that have a score.

Scores are computed here and nowhere else.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from coevolve.core.arrays import Floats
from coevolve.core.assignment import Sample
from coevolve.core.pool import UNIT_SCALE
from coevolve.core.variance import sample_variance
from coevolve.errors import InputError, NoOutcomeError
from coevolve.formatting import decimals, is_clipped
from coevolve.formatting import estimate as shown_estimate

FULL_SET = "full set"
"""The method of an estimate from every task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A full-set score Ŝ estimated from some of the tasks.

    All are on the `scale` of the pool. `value` may be outside of it, for example with the
    difference estimator. It ranks candidates unclipped, and is clipped only when it is printed.
    `se`, `low` and `high` are None if the
    sample does not determine them, and `note` says why. `tasks` counts the tasks with a score,
    `drawn` those asked about, `pool_size` all of them. `observed` counts the tasks with observed
    outcomes that a joint model used, `ignored` those that a design-based estimate ignored.
    `check` is the design-based estimate, shown beside the estimate of a joint model.

    >>> print(Estimate(value=1.02, se=0.04, low=0.94, high=1.1, tasks=18, drawn=18,
    ...     pool_size=89, method="difference"))
    ≥1.000 ± 0.040 (clipped from 1.020; 18 of 89 tasks, difference)
    """

    value: float
    se: float | None
    low: float | None
    high: float | None
    tasks: int
    drawn: int
    pool_size: int
    method: str
    note: str = ""
    check: "Estimate | None" = None
    scale: tuple[float, float] = UNIT_SCALE
    observed: int = 0
    ignored: int = 0

    def scaled(self, scale: tuple[float, float]) -> "Estimate":
        """This estimate, which is on the scale from 0 to 1, on another one.

        >>> half = Estimate(value=0.5, se=0.1, low=0.3, high=0.7, tasks=9, drawn=9, pool_size=90,
        ...     method="difference")
        >>> print(half.scaled((0, 10)))
        5.00 ± 1.00 (9 of 90 tasks, difference)
        """
        if scale == UNIT_SCALE:
            return self
        low, span = scale[0], scale[1] - scale[0]
        return replace(
            self,
            value=low + span * self.value,
            se=None if self.se is None else span * self.se,
            low=None if self.low is None else low + span * self.low,
            high=None if self.high is None else low + span * self.high,
            check=None if self.check is None else self.check.scaled(scale),
            scale=scale,
        )

    @property
    def coverage(self) -> float:
        """Share of the tasks asked about that have a score."""
        return self.tasks / self.drawn if self.drawn else 1.0

    @property
    def exact(self) -> bool:
        """Whether every trial of every task has a score, so that nothing is estimated."""
        return self.tasks == self.pool_size and not self.note

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, without the check; the last three fields only if they are not as usual."""
        data: dict[str, Any] = {
            "value": self.value,
            "se": self.se,
            "low": self.low,
            "high": self.high,
            "tasks": self.tasks,
            "drawn": self.drawn,
            "pool_size": self.pool_size,
            "method": self.method,
            "note": self.note,
        }
        if self.scale != UNIT_SCALE:
            data["scale"] = list(self.scale)
        counts = {"observed": self.observed, "ignored": self.ignored}
        return data | {name: count for name, count in counts.items() if count}

    def __str__(self) -> str:
        found = self.to_json()
        value = f"{self.value:.{decimals(self.scale)}f}"
        clipped = f"clipped from {value}; " if is_clipped(found, "value") else ""
        tasks = f"{self.tasks} of {self.pool_size} tasks"
        if self.tasks < self.drawn:
            tasks = f"{self.tasks} of {self.drawn} drawn, {self.pool_size} tasks"
        seen = f" and {self.observed} observed" if self.observed else ""
        unused = f"; {self.ignored} observed are ignored" if self.ignored else ""
        return f"{shown_estimate(found)} ({clipped}{tasks}{seen}, {self.method}{unused})"


class Part(NamedTuple):
    """The estimate of one pool; `note` says why if its variance is unknown."""

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
    """Whether the draw was random: not every task was certain to be drawn and to have a score."""
    return bool((sample.answering < 1 - 1e-12).any())


def _spread(sample: Sample, residual: Floats, size: float) -> tuple[float | None, str]:
    """Variance of Σ e_t / π_t / size from the sample alone, or None and the reason."""
    if not sampled(sample):
        return 0.0, ""
    if len(residual) < 2:
        return None, f"one task of pool {sample.pool!r} has a score; a standard error needs two"
    variance = sample_variance(residual, sample.answering) / size**2
    if variance == 0:
        return None, f"all scores in pool {sample.pool!r} are equal; the standard error is unknown"
    return variance, ""


@runtime_checkable
class Estimator(Protocol):
    """Turns the samples of a candidate, one per pool, into an estimate of its full-set score."""

    @property
    def needs_history(self) -> bool: ...

    def estimate(self, samples: Sequence[Sample], weights: Floats, confidence: float) -> Estimate:
        """Estimate from a sample per pool and the weights of the pools.

        Raises:
            NoOutcomeError: A pool has no score, and the estimate needs one.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RawMean:
    """Mean over the sampled tasks of each pool, pools averaged, as in Naive and Random-Resample.

    It ignores inclusion probabilities: after a weighted draw it does not estimate the full-set
    score and has no standard error.

    Args:
        together: Whether to take one mean over the tasks of all pools, which ignores the weights
            of the pools. It has no standard error unless these are proportional to the numbers of
            tasks.

    >>> pools = [
    ...     Sample.without_history(np.array(scores), np.full(len(scores), 0.5), pool_size=size)
    ...     for scores, size in (([1.0, 0.0], 4), ([1.0, 1.0, 0.0, 1.0], 8))
    ... ]
    >>> print(RawMean().estimate(pools, np.full(2, 0.5), 0.95))
    0.625 ± 0.198 (6 of 12 tasks, raw mean)
    >>> print(RawMean(together=True).estimate(pools, np.full(2, 0.5), 0.95))
    0.667 ± ? (6 of 12 tasks, pooled raw mean)
    """

    together: bool = False
    needs_history: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.together, bool):
            raise InputError(f"together must be True or False, got {self.together!r}.")

    @classmethod
    def upgraded(cls, recorded: dict[str, Any]) -> dict[str, Any]:
        """Fields as an earlier version recorded them: its raw mean was always over all pools."""
        return {"together": True, **recorded}

    def estimate(self, samples: Sequence[Sample], weights: Floats, confidence: float) -> Estimate:
        weighted = any(
            (np.abs(s.probabilities - s.drawn / s.pool_size) > 1e-9).any() for s in samples
        )
        note = "the raw mean of a weighted draw has no standard error" if weighted else ""
        if self.together:
            shares = np.array([s.drawn for s in samples]) / sum(s.drawn for s in samples)
            if not note and np.abs(shares - weights).max() > _UNEVEN:
                note = "the pooled raw mean ignores the weights of the pools"
            samples, weights = [_merged(samples)], np.ones(1)
        _require(samples)
        samples = [_equally_likely(sample) for sample in samples]
        parts = [hajek(sample) for sample in samples]
        if note:
            parts = [Part(part.value, None, note) for part in parts]
        method = "pooled raw mean" if self.together else "raw mean"
        return _combined(method, parts, samples, weights, confidence)


def _merged(samples: Sequence[Sample]) -> Sample:
    """The samples of all pools as one."""
    return replace(
        samples[0],
        pool="all",
        pool_size=sum(s.pool_size for s in samples),
        drawn=sum(s.drawn for s in samples),
        scores=np.concatenate([s.scores for s in samples]),
    )


def _equally_likely(sample: Sample) -> Sample:
    """The sample as if every task had been drawn with the same probability."""
    equal = np.full(len(sample.scores), sample.drawn / sample.pool_size)
    return replace(sample, probabilities=equal, anticipation=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class HorvitzThompson:
    """Sum of outcomes over their inclusion probabilities: unbiased, and noisy.

    Ŝ = (1/N) Σ_{t∈S} x_t / π_t. Its standard error comes from the sample alone; after a weighted
    draw of 100 of 500 tasks its 95% intervals cover 89% to 91% (`benchmarks/coverage.py`).

    >>> sample = Sample.without_history(np.array([1.0, 0.0]), np.array([0.5, 0.4]), pool_size=5)
    >>> print(HorvitzThompson().estimate([sample], np.ones(1), 0.95))
    0.400 ± 0.295 (2 of 5 tasks, Horvitz-Thompson)
    """

    needs_history: ClassVar[bool] = False

    def estimate(self, samples: Sequence[Sample], weights: Floats, confidence: float) -> Estimate:
        _require(samples)
        samples = [replace(sample, anticipation=None) for sample in samples]
        parts = [horvitz_thompson(sample) for sample in samples]
        return _combined("Horvitz-Thompson", parts, samples, weights, confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hajek:
    """Mean of the outcomes weighted by 1/π_t: slightly biased, within [0, 1].

    Ŝ = Σ_{t∈S} (x_t / π_t) / Σ_{t∈S} (1 / π_t). One rarely drawn task can outweigh all others.

    With a history, its 95% intervals cover 95% to 97% at 100 of 500 tasks in the synthetic
    world, and are too wide below about 10 tasks (100% at 3 of 50); `benchmarks/coverage.py`.

    >>> sample = Sample.without_history(np.array([1.0, 0.0]), np.array([0.5, 0.4]), pool_size=5)
    >>> print(Hajek().estimate([sample], np.ones(1), 0.95))
    0.444 ± 0.365 (2 of 5 tasks, Hájek)
    """

    needs_history: ClassVar[bool] = False

    def estimate(self, samples: Sequence[Sample], weights: Floats, confidence: float) -> Estimate:
        _require(samples)
        parts = [hajek(sample) for sample in samples]
        return _combined("Hájek", parts, samples, weights, confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Mean anchor plus the weighted deviations from the anchors: unbiased, and less noisy.

    Ŝ = (1/N) Σ_{t∈T} p̄_t + (1/N) Σ_{t∈S} (x_t - p̄_t) / π_t. The anchors p̄_t are fixed before
    the draw, so they cancel in expectation.

    Its 95% intervals cover 93% to 94% at 100 of 500 tasks in the synthetic world, 96% to 97% at
    18 of 89, 95% to 98% at 7 of 89 and 98% to 99% at 3 of 50. They are too narrow for a candidate
    unlike any before: 76% to 83% at 18 of 89 for one that fails all tasks that were always solved.
    `benchmarks/coverage.py` measures this.

    >>> sample = Sample.without_history(np.array([1.0, 0.0]), np.array([0.5, 0.4]), pool_size=5)
    >>> sample = replace(sample, anchors=np.array([1.0, 0.5]), anchor_mean=0.6)
    >>> print(Difference().estimate([sample], np.ones(1), 0.95))
    0.350 ± 0.185 (2 of 5 tasks, difference)
    """

    needs_history: ClassVar[bool] = True

    def estimate(self, samples: Sequence[Sample], weights: Floats, confidence: float) -> Estimate:
        _require(samples)
        parts = [difference(sample) for sample in samples]
        return _combined("difference", parts, samples, weights, confidence)


def modelled(
    value: float,
    sd: float,
    *,
    tasks: int,
    drawn: int,
    pool_size: int,
    confidence: float,
    check: Estimate | None,
    comparable: bool = True,
    scale: tuple[float, float] = UNIT_SCALE,
    observed: int = 0,
) -> Estimate:
    """Estimate of a joint model, with the design-based estimate as `check`; both from 0 to 1.

    The note is in terms of `scale`; the two are not `comparable` if they are for other tasks.

    A note warns if the two differ by more than three times the root of their summed squared
    standard errors. Independent normal estimates do so once in 370 cases. The design-based one has
    heavier tails, so it may be the wrong one.
    """
    reach = sd * quantile((1 + confidence) / 2, None)
    note = ""
    if comparable and check is not None and check.se is not None:
        apart, allowed = abs(value - check.value), _APART * math.hypot(sd, check.se)
        if apart > max(allowed, 1e-9):
            note = (
                f"the design-based estimate is {shown_estimate(check.scaled(scale).to_json())}: "
                "the difference "
                "is larger than chance explains, so one of the two is unreliable"
            )
    return Estimate(
        value=value,
        se=sd,
        low=value - reach,
        high=value + reach,
        tasks=tasks,
        drawn=drawn,
        pool_size=pool_size,
        method="joint",
        note=note,
        check=check,
        observed=observed,
    )


_APART = 3.0
_UNEVEN = 0.03  # shares of pools that differ by this much change a mean by up to 3 points


def _require(samples: Sequence[Sample]) -> None:
    """Refuse to estimate without any score."""
    for sample in samples:
        if not len(sample.scores):
            raise NoOutcomeError(
                f"no score in pool {sample.pool!r} yet ({sample.drawn} tasks were asked for)"
            )


def _combined(
    method: str,
    parts: Sequence[Part],
    samples: Sequence[Sample],
    weights: Floats,
    confidence: float,
) -> Estimate:
    """Weighted mean of the pools' estimates.

    The interval is Student's if the variance comes from the samples alone, and normal if it was
    anticipated.
    """
    value = float(sum(w * part.value for w, part in zip(weights, parts, strict=True)))
    known = [part.variance for part in parts if part.variance is not None]
    se = low = high = None
    if len(known) == len(parts):
        se = float(np.sqrt(weights**2 @ np.array(known)))
        alone = any(sample.anticipation is None for sample in samples)
        degrees = sum(len(sample.scores) - 1 for sample in samples) if alone else None
        reach = se * quantile((1 + confidence) / 2, degrees) if se > 0 else 0.0
        low, high = value - reach, value + reach
    exact = all(not sampled(sample) for sample in samples)
    return Estimate(
        value=value,
        se=se,
        low=low,
        high=high,
        tasks=sum(len(s.scores) for s in samples),
        drawn=sum(s.drawn for s in samples),
        pool_size=sum(s.pool_size for s in samples),
        method=FULL_SET if exact else method,
        note="; ".join(dict.fromkeys(part.note for part in parts if part.note)),
    )


def quantile(level: float, degrees: int | None) -> float:
    """Quantile of Student's t, or of the normal distribution without degrees of freedom."""
    from scipy.special import ndtri, stdtrit  # on first use: slow to import

    return float(ndtri(level) if degrees is None else stdtrit(degrees, level))


@runtime_checkable
class EstimatorRule(Protocol):
    """Picks an estimator once, before the first draw."""

    def decide(self, means: Mapping[str, float]) -> Estimator:
        """The estimator for pools with these mean scores of the starting harnesses."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseZeroRule:
    """The paper's rule: Hájek for several pools that are all easy or hard, otherwise difference.

    Hájek if there are two or more pools and every pool has |mean - 1/2| >= threshold.

    Args:
        threshold: Hájek needs the mean of every pool in Phase 0 to be at least this far from 0.5.

    >>> PhaseZeroRule().decide({"uspto": 0.08, "s2d": 0.71, "law": 0.14})
    Hajek()
    >>> PhaseZeroRule().decide({"terminal-bench": 0.51})
    Difference()
    """

    threshold: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 0.5:
            raise InputError(f"threshold must be in [0, 0.5], got {self.threshold}.")

    def decide(self, means: Mapping[str, float]) -> Estimator:
        extreme = all(abs(mean - 0.5) >= self.threshold - 1e-12 for mean in means.values())
        return Hajek() if len(means) > 1 and extreme else Difference()
