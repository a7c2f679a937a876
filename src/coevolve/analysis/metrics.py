"""How good a search was, measured against the true scores."""

import math
from collections.abc import Sequence

import numpy as np

from coevolve.analysis.play import Played
from coevolve.core.estimate import Estimate
from coevolve.core.ranks import DECIMALS, kendall, spearman

Values = dict[str, float | int | None]
"""Metrics by name; None where one cannot be told."""

_ROUNDING = 10.0**-DECIMALS


def measured(played: Played) -> Values:
    """The metrics of a replayed search, over its generated candidates.

    spearman, kendall: Between estimates and true scores; None where either does not vary.
    rank: Of the winner by true score; 1 is the best, ties share the best rank.
    regret: True score of the best candidate minus that of the winner.
    rmse: Root of the mean squared difference between estimate and true score.
    coverage: Share of the intervals that hold the true score; None without intervals.
    expected_regret, probability: What the choice says of itself; None without a joint model.
    evaluations, share, cost: What was spent; share is of evaluating everything.

    Candidates without an estimate (every outcome missing) enter rank and regret only.

    >>> from coevolve import protocol
    >>> from coevolve.analysis import synthetic_matrix
    >>> from coevolve.analysis.play import Stage, play
    >>> stage = Stage.of(synthetic_matrix(tasks=20, candidates=6).series[0], seed=0)
    >>> values = measured(play(stage, protocol("full"), fraction=1.0))
    >>> values["spearman"], values["rank"], values["regret"], values["coverage"], values["share"]
    (1.0, 1, 0.0, 1.0, 1.0)
    """
    names, truth = played.stage.series.generated, played.stage.truth
    true = np.array([truth[name] for name in names])
    seen = [i for i, estimate in enumerate(played.estimates) if estimate is not None]
    estimates = [estimate for estimate in played.estimates if estimate is not None]
    values, targets = np.array([estimate.value for estimate in estimates]), true[seen]
    won, stated = truth[played.choice.candidate], played.choice.confidence
    return {
        "spearman": known(spearman(values, targets)),
        "kendall": known(kendall(values, targets)),
        "rank": 1 + int((true > won + _ROUNDING).sum()),
        "regret": float(true.max() - won),
        "rmse": float(np.sqrt(np.mean((values - targets) ** 2))),
        "coverage": _coverage(estimates, targets.tolist()),
        "expected_regret": stated.regret if stated else None,
        "probability": stated.probability if stated else None,
        **spent(played),
    }


def spent(played: Played) -> Values:
    """What a replayed search spent."""
    everything = len(played.stage.series.generated) * len(played.stage.pool)
    return {
        "evaluations": played.evaluations,
        "share": played.evaluations / everything,
        "cost": played.cost,
    }


def known(value: float) -> float | None:
    """The value, or None for NaN."""
    return None if math.isnan(value) else value


def _coverage(estimates: Sequence[Estimate], true: Sequence[float]) -> float | None:
    inside = [
        estimate.low - _ROUNDING <= target <= estimate.high + _ROUNDING
        for estimate, target in zip(estimates, true, strict=True)
        if estimate.low is not None and estimate.high is not None
    ]
    return float(np.mean(inside)) if inside else None
