"""The A/A check: among identical candidates, every declared difference is a false alarm."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations
from statistics import NormalDist

import numpy as np

from coevolve.analysis.matrix import Matrix, Series
from coevolve.analysis.replay import Replay, Report, run_jobs, summarised
from coevolve.analysis.replay_search import PROTOCOLS, Plan, Played, Values, spent
from coevolve.core.arrays import DECIMALS
from coevolve.core.estimators import Estimate
from coevolve.core.protocols import SearchProtocol

LEVEL = 0.05
"""How often identical candidates may be declared different if intervals are correct."""

_REACH = NormalDist().inv_cdf(1 - LEVEL / 2)
_ROUNDING = 10.0**-DECIMALS


def check_alike(
    matrices: Iterable[Matrix],
    *,
    protocols: Iterable[str | SearchProtocol] = PROTOCOLS,
    fractions: Iterable[float] = (0.2,),
    seeds: Iterable[int] = range(20),
    per_round: int = 1,
    bernoulli: bool = False,
    workers: int = 1,
    report: Report = lambda done, total: None,
) -> Replay:
    """Replay with copies of one candidate in place of all generated ones.

    The arguments are those of `replay`. The rows have two rates of false alarms:
    `pairs_different`, the share of the pairs of generated candidates declared different, and
    `winner_better`, whether the winner was declared better than the first proposed of the others.
    Both are None for a search without standard errors.

    >>> from coevolve.analysis import synthetic_matrix
    >>> matrix = synthetic_matrix(tasks=40, candidates=8, worlds=1)
    >>> done = check_alike([matrix], protocols=["naive"], seeds=range(2))
    >>> done.overall("naive", 0.2).means["pairs_different"].mean
    0.0
    """
    plan = Plan.of(
        protocols=protocols,
        fractions=fractions,
        seeds=seeds,
        per_round=per_round,
        bernoulli=bernoulli,
    )
    copies = tuple(
        replace(matrix, series=tuple(alike(series) for series in matrix.series))
        for matrix in matrices
    )
    rows = run_jobs(copies, plan, alarms, workers=workers, report=report)
    summary = summarised(rows, compared=None)
    return Replay(plan=plan, matrices=copies, rows=tuple(rows), summary=tuple(summary))


def alike(series: Series) -> Series:
    """The series with its median generated candidate, by true score, in place of all others.

    >>> from coevolve.analysis import Matrix
    >>> matrix = Matrix.from_arrays("tiny", np.tri(5, 4))
    >>> alike(matrix.series[0]).outcomes.sum(axis=1).tolist()
    [1.0, 2.0, 4.0, 4.0, 4.0]
    """
    first = series.started
    scores = series.true_scores()[first:]
    median = first + int(np.argsort(scores, kind="stable")[len(scores) // 2])
    chosen = [*range(first), *[median] * len(scores)]
    return series.rows(chosen, names=series.candidates)


def alarms(played: Played) -> Values:
    """False alarms of a search among identical candidates.

    Two are declared different where |Ŝ_a - Ŝ_b| > 1.96 √(se_a² + se_b²), as if the estimates
    were independent. Without a standard error nothing is declared. If the search has no standard
    errors at all, the rates are None.
    """
    names = played.stage.series.generated
    by_name = dict(zip(names, played.estimates, strict=True))
    if len(names) < 2 or not any(e is not None and e.se is not None for e in played.estimates):
        return {"pairs_different": None, "winner_better": None, **spent(played)}
    winner = played.choice.candidate
    other = next(name for name in names if name != winner)
    pairs = [_above(a, b) or _above(b, a) for a, b in combinations(played.estimates, 2)]
    return {
        "pairs_different": float(np.mean(pairs)),
        "winner_better": float(_above(by_name.get(winner), by_name[other])),
        **spent(played),
    }


def _above(a: Estimate | None, b: Estimate | None) -> bool:
    """Whether a is declared better than b; never without standard errors."""
    if a is None or b is None or a.se is None or b.se is None:
        return False
    return a.value - b.value > _REACH * float(np.hypot(a.se, b.se)) + _ROUNDING
