"""Fits the times of simulated trials to the hours the paper reports."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize
from simulated_search import PLACES, Place, Setting, simulate
from trial_times import Luck, Times, makespan

from coevolve.core.arrays import Floats

PAPER = {"full": 22.2, "naive": 11.9, "random-resample": 9.6, "task-coevolve": 11.5}
"""Hours of the paper's runs with GPT-5.6 Luna."""
FULL, FIFTH = Setting("full", 1.0), Setting("task-coevolve", 0.2)

_ROUGH = Times(median=3.0, spread=1.5)
_SIMPLEX = np.log([[3.0, 1.5], [2.4, 1.5], [3.0, 1.9]])

Rounds = list[list[int]]
"""Positions of the tasks of every round, in the order they were asked."""


def drawn(seed: int, setting: Setting) -> Rounds:
    """What a search draws, which does not depend on how long trials take."""
    place = Place(seed, _ROUGH)
    done = simulate(place, setting, lambda state, cell: 0.0)
    position = place.world.pool.position
    return [[position(t.task) for t in done.of(n + 1)] for n in range(setting.rounds)]


def fitted(draws: dict[Setting, list[Rounds]], seeds: Sequence[int]) -> Times:
    """Times with which the mean hours are the paper's, trials starting as they were asked."""
    lucks = [Luck(seed) for seed in seeds]

    def gap(times: Times, setting: Setting) -> float:
        found = [_hours(times, *pair) for pair in zip(lucks, draws[setting], strict=True)]
        return float(np.mean(found)) / PAPER[setting.protocol] - 1

    def distance(point: Floats) -> float:
        times = _times(point)
        return 1e4 * sum(gap(times, setting) ** 2 for setting in draws)

    found = minimize(
        distance,
        _SIMPLEX[0].tolist(),
        method="Nelder-Mead",
        options={"initial_simplex": _SIMPLEX, "xatol": 1e-3, "fatol": 1e-3, "maxfev": 80},
    )
    return _times(found.x)


def _times(point: Floats) -> Times:
    return Times(median=round(math.exp(point[0]), 2), spread=round(math.exp(point[1]), 3))


def _hours(times: Times, luck: Luck, rounds: Rounds) -> float:
    """Hours of a search that draws these tasks and starts them in this order."""
    total = 0.0
    for number, tasks in enumerate(rounds, 1):
        minutes = times.minutes(luck, f"r{number}-0")[tasks]
        total += makespan(minutes.tolist(), PLACES) + luck.proposal(number)
    return total / 60
