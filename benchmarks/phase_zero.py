"""How far estimates are off on the paper's own Phase 0 pools.

Tables `tc_phase0` and `difficulty` of the paper say how many tasks neither, one or both starting
harnesses solve. Here a candidate solves a task of these groups with probability 0.1, 0.5 and 0.95,
the draws follow the paper's weights, or none, and nothing else is assumed.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from coevolve.core.arrays import Floats
from coevolve.core.assignment import Sample
from coevolve.core.designs import DesignMethod, SuccessiveDesign, UniformDesign
from coevolve.core.estimators import Difference, Estimator, Hajek, RawMean
from coevolve.core.outcome_table import History
from coevolve.core.weights import TaskView, VarianceWeights

PAIRS, DRAWS = 30, 30
SOLVES = (0.1, 0.5, 0.95)

Groups = Mapping[str, tuple[int, int, int]]
TEXT: Groups = {"uspto": (26, 3, 1), "s2d": (9, 11, 30), "law": (39, 8, 3)}
TERMINAL: Groups = {"all": (32, 23, 34)}
SETTINGS = (
    ("text classification, 7%", TEXT, (2, 3, 3)),
    ("text classification, 20%", TEXT, (6, 10, 10)),
    ("terminal-bench, 20%", TERMINAL, (18,)),
)
ESTIMATORS: Mapping[str, Estimator] = {
    "raw mean": RawMean(),
    "Hájek": Hajek(),
    "difference": Difference(),
}


class Errors(NamedTuple):
    """Errors of one estimate, and of the gap between two candidates with one draw, or one each."""

    single: list[float]
    same_draw: list[float]
    two_draws: list[float]


def errors() -> list[dict[str, Any]]:
    """Root mean squared errors in points, by setting, draw and estimator."""
    rows = []
    for setting, groups, sizes in SETTINGS:
        for draw, design in (("uniform", UniformDesign()), ("weighted", SuccessiveDesign())):
            found = _measured(groups, sizes, design)
            for name, each in found.items():
                bias, single, same, two = (
                    100 * float(np.mean(each.single)),
                    *(100 * float(np.sqrt(np.mean(np.square(values)))) for values in each),
                )
                rows.append(
                    {
                        "setting": setting,
                        "draw": draw,
                        "estimator": name,
                        "bias": round(bias, 1),
                        "one estimate": round(single, 1),
                        "gap, same draw": round(same, 1),
                        "gap, two draws": round(two, 1),
                    }
                )
    return rows


def _measured(groups: Groups, sizes: tuple[int, ...], design: DesignMethod) -> dict[str, Errors]:
    found = {name: Errors([], [], []) for name in ESTIMATORS}
    weights = np.full(len(groups), 1 / len(groups))
    for pair in range(PAIRS):
        rng = np.random.default_rng(pair)
        two = [_candidate(groups, rng) for _ in range(2)]
        truths = [float(np.mean([pool.mean() for pool in candidate])) for candidate in two]
        gap = truths[0] - truths[1]
        for _ in range(DRAWS):
            first, second = (_draw(groups, sizes, design, rng) for _ in range(2))
            for name, estimator in ESTIMATORS.items():
                a, b, other = (
                    estimator.estimate(_samples(groups, *pick), weights, 0.95).value
                    for pick in ((two[0], first), (two[1], first), (two[1], second))
                )
                found[name].single.append(a - truths[0])
                found[name].same_draw.append(a - b - gap)
                found[name].two_draws.append(a - other - gap)
    return found


def _candidate(groups: Groups, rng: np.random.Generator) -> list[Floats]:
    chances = (np.repeat(SOLVES, sizes) for sizes in groups.values())
    return [(rng.random(len(chance)) < chance).astype(np.float64) for chance in chances]


def _history(sizes: tuple[int, int, int]) -> History:
    return History(mean=np.repeat([0.0, 0.5, 1.0], sizes), count=np.full(sum(sizes), 2))


def _draw(
    groups: Groups, sizes: tuple[int, ...], design: DesignMethod, rng: np.random.Generator
) -> list[Any]:
    views = (TaskView(history=_history(counts)) for counts in groups.values())
    weights = (VarianceWeights()(view) for view in views)
    return [design.draw(w, size, rng) for w, size in zip(weights, sizes, strict=True)]


def _samples(groups: Groups, candidate: list[Floats], draws: list[Any]) -> list[Sample]:
    made = []
    for scores, draw, counts in zip(candidate, draws, groups.values(), strict=True):
        history, chosen = _history(counts), draw.chosen
        sample = Sample.without_history(
            scores[chosen], draw.probabilities[chosen], pool_size=len(scores)
        )
        made.append(
            replace(sample, anchors=history.mean[chosen], anchor_mean=float(history.mean.mean()))
        )
    return made
