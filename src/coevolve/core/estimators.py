"""Full-set scores from the sampled tasks, each with a standard error and an interval.

Scores are computed here and in `coevolve.core.formulas`, which holds those for one pool, and
nowhere else.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from coevolve.core.arrays import Floats
from coevolve.core.estimate import Estimate
from coevolve.core.formulas import Part, difference, hajek, horvitz_thompson, sampled
from coevolve.core.sample import Sample
from coevolve.errors import NoOutcomeError


@runtime_checkable
class Estimator(Protocol):
    """Turns the samples of a candidate, one per pool, into an estimate of its full-set score."""

    @property
    def needs_history(self) -> bool: ...

    def estimate(self, samples: Sequence[Sample], weights: Floats, confidence: float) -> Estimate:
        """Estimate from a sample per pool and the weights of the pools.

        Raises:
            NoOutcomeError: A pool has no scored outcome, and the estimate cannot do without.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RawMean:
    """Mean over all sampled tasks, pools together, as Naive and Random-Resample take it.

    It ignores inclusion probabilities and pool weights. After a weighted draw, or where pools
    weigh otherwise than by their size, it estimates something else than the full-set score and
    gives no standard error.

    >>> sample = Sample.without_history(np.array([1.0, 0.0, 1.0]), np.full(3, 0.5), pool_size=6)
    >>> print(RawMean().estimate([sample], np.ones(1), 0.95))
    0.667 ± 0.236 (3 of 6 tasks, raw mean)
    """

    needs_history: ClassVar[bool] = False

    def estimate(self, samples: Sequence[Sample], weights: Floats, confidence: float) -> Estimate:
        _require([replace(samples[0], scores=np.concatenate([s.scores for s in samples]))])
        size, drawn = sum(s.pool_size for s in samples), sum(s.drawn for s in samples)
        scores = np.concatenate([s.scores for s in samples])
        merged = replace(
            samples[0],
            pool="all",
            pool_size=size,
            drawn=drawn,
            scores=scores,
            probabilities=np.full(len(scores), drawn / size),
            anticipation=None,
        )
        part = hajek(merged)
        shares = np.array([s.drawn / drawn for s in samples])
        if any((np.abs(s.probabilities - s.drawn / s.pool_size) > 1e-9).any() for s in samples):
            part = Part(part.value, None, "the raw mean of a weighted draw has no standard error")
        elif np.abs(shares - weights).max() > _UNEVEN:
            part = Part(part.value, None, "the raw mean weighs pools by tasks drawn, not as given")
        return _combined("raw mean", [part], [merged], np.ones(1), confidence)


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
    """Weighted mean of the outcomes with weights 1/π_t: slightly biased, within [0, 1].

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
    """Mean anchor plus the weighted deviations from the anchors: unbiased, steady.

    Ŝ = (1/N) Σ_{t∈T} p̄_t + (1/N) Σ_{t∈S} (x_t - p̄_t) / π_t. The anchors p̄_t are fixed before
    the draw, so they cancel in expectation.

    Its 95% intervals cover 93% to 94% at 100 of 500 tasks in the synthetic world, 96% to 97% at
    18 of 89, 95% to 98% at 7 of 89 and 98% to 99% at 3 of 50. They are too narrow for a candidate
    unlike any before: 76% to 83% at 18 of 89 for one that fails all that was always solved.
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
) -> Estimate:
    """Estimate of a joint model, with the design-based one beside it as `check`.

    A note warns where the two are further apart than their standard errors allow: |difference|
    over three times the root of the summed squares. Independent normal estimates exceed that once
    in 370 cases; the design-based one has heavier tails, so it may be the one that is off.
    """
    reach = sd * _quantile((1 + confidence) / 2, None)
    note = ""
    if check is not None and check.se is not None:
        apart, allowed = abs(value - check.value), _APART * math.hypot(sd, check.se)
        if apart > max(allowed, 1e-9):
            note = (
                f"the design-based estimate is {check.value:.3f} ± {check.se:.3f}: further off "
                "than chance allows, so one of the two is not to be trusted"
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
    )


_APART = 3.0
_UNEVEN = 0.03  # a raw mean whose pools are off by this much is off by up to 3 points


def _require(samples: Sequence[Sample]) -> None:
    """Refuse to estimate from nothing."""
    for sample in samples:
        if not len(sample.scores):
            raise NoOutcomeError(
                f"no scored outcome in pool {sample.pool!r} yet ({sample.drawn} tasks were asked)"
            )


def _combined(
    method: str,
    parts: Sequence[Part],
    samples: Sequence[Sample],
    weights: Floats,
    confidence: float,
) -> Estimate:
    """Weighted mean of the pools' estimates.

    The interval is Student's where the samples are all there is, and normal where the variance
    was anticipated.
    """
    value = float(sum(w * part.value for w, part in zip(weights, parts, strict=True)))
    known = [part.variance for part in parts if part.variance is not None]
    se = low = high = None
    if len(known) == len(parts):
        se = float(np.sqrt(weights**2 @ np.array(known)))
        alone = any(sample.anticipation is None for sample in samples)
        degrees = sum(len(sample.scores) - 1 for sample in samples) if alone else None
        reach = se * _quantile((1 + confidence) / 2, degrees) if se > 0 else 0.0
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
        method="full set" if exact else method,
        note="; ".join(part.note for part in parts if part.note),
    )


def _quantile(level: float, degrees: int | None) -> float:
    """Quantile of Student's t, or of the normal distribution without degrees of freedom."""
    from scipy.special import ndtri, stdtrit  # on first use: it takes longer than all the rest

    return float(ndtri(level) if degrees is None else stdtrit(degrees, level))
