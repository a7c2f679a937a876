"""Designs: which tasks are drawn, and with what probability."""

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from coevolve.core.arrays import Floats, Indices
from coevolve.core.inclusion import checked_weights, monte_carlo_inclusion, successive_inclusion
from coevolve.core.outcomes import is_whole
from coevolve.errors import InputError

_ROUNDING = 1e-9
"""Probabilities this near to 0 or 1 differ from it by rounding: Σ π is a whole number."""


class Draw(NamedTuple):
    """Positions drawn, ascending, and π_t of every task that could have been."""

    chosen: Indices
    probabilities: Floats


@runtime_checkable
class DesignMethod(Protocol):
    """Draws a fixed number of tasks with known inclusion probabilities.

    `name` is recorded with every draw; `redraws` says whether every round gets a new draw.
    """

    @property
    def name(self) -> str: ...

    @property
    def redraws(self) -> bool: ...

    def draw(self, weights: Floats, size: int, rng: np.random.Generator) -> Draw:
        """Draw `size` of the tasks with these weights."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformDesign:
    """Simple random sampling without replacement: π_t = m / N, whatever the weights.

    Args:
        redraws: False draws once and keeps the subset for every round (the paper's Naive).

    >>> UniformDesign().draw(np.ones(10), 4, np.random.default_rng(1)).probabilities[0].item()
    0.4
    """

    redraws: bool = True

    @property
    def name(self) -> str:
        return "uniform" if self.redraws else "fixed"

    def draw(self, weights: Floats, size: int, rng: np.random.Generator) -> Draw:
        weights = checked_weights(weights, size)
        chosen = np.sort(rng.permutation(len(weights))[:size])
        return Draw(chosen, np.full(len(weights), size / len(weights)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessiveDesign:
    """The paper's draw: one task after the other, in proportion to the weights still left.

    Inclusion probabilities are not proportional to the weights; `coevolve.core.inclusion`
    computes them.

    Args:
        inclusion: How inclusion probabilities are computed; "monte-carlo" is the paper's way.
        repetitions: Number of simulated draws for "monte-carlo".

    >>> draw = SuccessiveDesign().draw(np.array([1.0, 1.0, 2.0]), 2, np.random.default_rng(0))
    >>> draw.probabilities.round(4).tolist()
    [0.5833, 0.5833, 0.8333]
    """

    inclusion: Literal["exact", "monte-carlo"] = "exact"
    repetitions: int = 4_000
    name: ClassVar[str] = "successive"
    redraws: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.inclusion not in ("exact", "monte-carlo"):
            raise InputError(
                f"inclusion must be 'exact' or 'monte-carlo', got {self.inclusion!r}."
            )
        if not is_whole(self.repetitions, least=1):
            raise InputError(
                f"repetitions must be a whole number of at least 1, got {self.repetitions!r}."
            )

    def draw(self, weights: Floats, size: int, rng: np.random.Generator) -> Draw:
        weights = checked_weights(weights, size)
        arrivals = rng.exponential(size=len(weights)) / weights
        chosen = np.sort(np.argpartition(arrivals, size - 1)[:size])
        if self.inclusion == "exact" or size == len(weights):
            return Draw(chosen, successive_inclusion(weights, size))
        return Draw(chosen, monte_carlo_inclusion(weights, size, self.repetitions, rng))


@dataclass(frozen=True, slots=True, kw_only=True)
class PivotalDesign:
    """Fixed-size draw with prescribed probabilities π_t ∝ w_t, capped at 1.

    The pivotal method (Deville and Tillé 1998) as a tournament. The tasks are shuffled and paired;
    in each duel one of the two probabilities becomes 0 or 1 and the other takes the rest, at
    random, such that both keep their expectation. log2(N) rounds of duels decide every task.

    >>> draw = PivotalDesign().draw(np.array([1.0, 1.0, 2.0]), 2, np.random.default_rng(0))
    >>> draw.probabilities.tolist(), len(draw.chosen)
    ([0.5, 0.5, 1.0], 2)
    """

    name: ClassVar[str] = "pivotal"
    redraws: ClassVar[bool] = True

    def draw(self, weights: Floats, size: int, rng: np.random.Generator) -> Draw:
        probabilities = proportional(checked_weights(weights, size), size)
        order = rng.permutation(len(weights))
        won = tournament(probabilities[order], rng)
        return Draw(np.sort(order[won]), probabilities)


def proportional(weights: Floats, size: int) -> Floats:
    """Probabilities π_t ∝ w_t that sum to `size`, those above 1 capped and the rest raised.

    >>> proportional(np.array([1.0, 1.0, 4.0]), 2).tolist()
    [0.5, 0.5, 1.0]
    """
    if size == len(weights):
        return np.ones(len(weights))
    capped = np.zeros(len(weights), dtype=np.bool_)
    while True:
        rest = float(weights[~capped].sum())
        scaled = weights * ((size - int(capped.sum())) / rest)
        over = ~capped & (scaled >= 1)
        if not over.any():
            return np.where(capped, 1.0, scaled)
        capped |= over


def tournament(probabilities: Floats, rng: np.random.Generator) -> Indices:
    """Positions that win pivotal duels between neighbours, each with its own probability."""
    share = probabilities.copy()
    alive = np.flatnonzero((share > 0) & (share < 1))
    while len(alive) > 1:
        left, right = alive[0 : len(alive) // 2 * 2 : 2], alive[1::2]
        share[left], share[right] = duel(share[left], share[right], rng.random(len(left)))
        alive = alive[(share[alive] > _ROUNDING) & (share[alive] < 1 - _ROUNDING)]
    return np.flatnonzero(share > 0.5)


def duel(a: Floats, b: Floats, coin: Floats) -> tuple[Floats, Floats]:
    """New shares of two tasks: one of them becomes 0 or 1, and both keep their expectation.

    Below 1 in total, the first takes all with probability a/(a+b); from 1 on, the first
    becomes 1 with probability (1-b)/(2-a-b) and the other keeps the rest.

    >>> [share.item() for share in duel(np.array([0.3]), np.array([0.5]), np.array([0.2]))]
    [0.8, 0.0]
    """
    total = a + b
    low = total < 1
    odds = np.where(low, a, 1 - b) / np.where(low, total, 2 - total)
    settled, kept = np.where(low, 0.0, 1.0), np.where(low, total, total - 1)
    first_kept = (coin < odds) == low
    return np.where(first_kept, kept, settled), np.where(first_kept, settled, kept)
