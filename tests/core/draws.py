"""Every possible draw of a design with its probability, for small pools."""

from collections import defaultdict
from collections.abc import Callable
from functools import cache
from itertools import combinations
from math import comb

import numpy as np
import pytest

from coevolve.core import designs
from coevolve.core.arrays import Floats
from coevolve.core.designs import DesignMethod, PivotalDesign, SuccessiveDesign, UniformDesign

Draws = dict[tuple[int, ...], float]

ALMOST_ONE = 1 - 1e-15


def every_draw(design: DesignMethod, weights: Floats, size: int) -> Draws:
    """Probability of every set a design can draw."""
    if isinstance(design, UniformDesign):
        sets = combinations(range(len(weights)), size)
        return dict.fromkeys(sets, 1 / comb(len(weights), size))
    if isinstance(design, SuccessiveDesign):
        return successive_draws(weights, size)
    assert isinstance(design, PivotalDesign)
    return pivotal_draws(weights, size)


def successive_draws(weights: Floats, size: int) -> Draws:
    """By the definition: one after the other, in proportion to the weights left."""
    draws: Draws = {(): 1.0}
    for _ in range(size):
        longer: Draws = defaultdict(float)
        for chosen, probability in draws.items():
            left = [i for i in range(len(weights)) if i not in chosen]
            total = sum(weights[i] for i in left)
            for i in left:
                longer[tuple(sorted((*chosen, i)))] += probability * weights[i] / total
        draws = longer
    return dict(draws)


def pivotal_draws(weights: Floats, size: int) -> Draws:
    """By following the tournament down both ends of every duel, in the order of the tasks.

    How often a duel goes either way is read off the code itself: the coin at which it turns.
    """
    draws: Draws = defaultdict(float)
    scripts: list[tuple[bool, ...]] = [()]
    with pytest.MonkeyPatch.context() as patch:
        while scripts:
            script = _Script(scripts.pop())
            patch.setattr(designs, "duel", script.duel)
            probabilities = designs.proportional(weights, size)
            won = designs.tournament(probabilities, np.random.default_rng(0))
            scripts += script.untried
            draws[tuple(won.tolist())] += script.probability
    return dict(draws)


class _Script:
    """Plays duels as told, then lets the first task win; notes what it has not tried."""

    real: Callable[[Floats, Floats, Floats], tuple[Floats, Floats]] = staticmethod(designs.duel)

    def __init__(self, told: tuple[bool, ...]) -> None:
        self.told = told
        self.played: tuple[bool, ...] = ()
        self.probability = 1.0
        self.untried: list[tuple[bool, ...]] = []

    def duel(self, a: Floats, b: Floats, coin: Floats) -> tuple[Floats, Floats]:
        coins = []
        for one, other in zip(a, b, strict=True):
            turn = _turning_point(float(one), float(other))
            at = len(self.played)
            low = self.told[at] if at < len(self.told) else True
            if at >= len(self.told) and turn < ALMOST_ONE:
                self.untried.append((*self.played, False))
            self.played += (low,)
            self.probability *= turn if low else 1 - turn
            coins.append(0.0 if low else ALMOST_ONE)
        return self.real(a, b, np.array(coins))


@cache
def _turning_point(a: float, b: float) -> float:
    def end(coin: float) -> float:
        return float(_Script.real(np.array([a]), np.array([b]), np.array([coin]))[0][0])

    if end(0.0) == end(ALMOST_ONE):
        return 1.0
    low, high = 0.0, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if end(middle) == end(0.0) else (low, middle)
    return low
