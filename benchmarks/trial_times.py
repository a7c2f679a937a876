"""How long simulated trials take: some tasks long, every trial by chance, none past the limit."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from coevolve.core.arrays import Floats

TASKS = 89
LIMIT = 60.0
"""Minutes no trial passes: assumed, as 83 of the 89 tasks of Terminal-Bench 2 allow no more."""
NOISE = 0.5
"""Standard deviation of the logarithm of a trial's time about its task's: assumed."""
PROPOSAL = (15.0, 20.0)
"""The least and the most minutes of a proposal: the paper's 2.4 to 3.3 hours in ten rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """A trial of task t takes min(LIMIT, median · exp(spread · z_t + e)) minutes.

    z_t is standard normal, once for every task; e is normal with standard deviation `NOISE`, for
    every trial.
    """

    median: float
    spread: float

    def minutes(self, luck: "Luck", candidate: str) -> Floats:
        """Minutes of a candidate's trial of every task."""
        shift = self.spread * luck.tasks + NOISE * luck.trials(candidate)
        return np.asarray(np.minimum(LIMIT, self.median * np.exp(shift)))


class Luck:
    """What is left to chance in the times of one search, which follows from its seed alone."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.tasks = self._rng(0).normal(size=TASKS)
        self._trials: dict[str, Floats] = {}

    def trials(self, candidate: str) -> Floats:
        """How a candidate's trial of every task differs from the task's usual time."""
        if candidate not in self._trials:
            self._trials[candidate] = self._rng(1, *candidate.encode()).normal(size=TASKS)
        return self._trials[candidate]

    def proposal(self, round: int) -> float:
        """Minutes of the proposal of a round."""
        return float(self._rng(2, round).uniform(*PROPOSAL))

    def _rng(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, 77, *stream])


def makespan(durations: Iterable[float], places: int) -> float:
    """When the last trial ends if each starts, in this order, as soon as a place is free.

    >>> makespan([1, 1, 4], places=2)
    5.0
    """
    free = [0.0] * places
    for duration in durations:
        heapq.heapreplace(free, free[0] + duration)
    return max(free)


def least(durations: Iterable[float], places: int) -> float:
    """A time no order can beat: the longest trial, or all of them spread evenly.

    >>> least([1, 1, 4], places=2)
    4.0
    """
    times = list(durations)
    return max(sum(times) / places, float(max(times, default=0.0)))
