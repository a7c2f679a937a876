"""Allocations: how many tasks a round draws, and which candidates get further draws."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from coevolve.core.arrays import Bools, Floats, Indices
from coevolve.core.identifiers import Id
from coevolve.core.outcomes import is_whole
from coevolve.core.pool import Pool
from coevolve.core.posterior import Posterior
from coevolve.errors import InputError

Rounding = Literal["ceil", "floor"]
"""How ρN is rounded to a number of tasks: up or down."""


@runtime_checkable
class Allocation(Protocol):
    """Sets how many tasks a round draws from each pool."""

    def at(self, fraction: float) -> Self:
        """The same allocation at another fraction ρ."""
        ...

    def sizes(self, pool: Pool, weights: Floats) -> tuple[int, ...]:
        """Number of tasks to draw from each pool, in the order of `pool.names`.

        Args:
            pool: The tasks.
            weights: w_t of every task, by which they will be drawn.
        """
        ...


class Request(NamedTuple):
    """A request for further tasks: the index of a candidate, and a number of tasks per pool."""

    candidate: int
    sizes: tuple[int, ...]


class SearchView:
    """The search as an adaptive allocation sees it.

    Attributes:
        pool: The tasks.
        candidates: The generated candidates, in the order of proposal.
        newest: Indices of the candidates of the last round.
        asked: Number of tasks each candidate was asked about.
        left: Number of tasks of each pool (column) that each candidate (row) was not asked about.
        waiting: Whether outcomes of each candidate are not told yet. A request for such a
            candidate has no effect.
        spent: Number of tasks in all assignments so far, without those that were withdrawn.
        round: Number of the last round.
        final: Whether the last round is over.
        rng: Random generator for this decision.
    """

    def __init__(
        self,
        *,
        pool: Pool,
        candidates: tuple[Id, ...],
        newest: Indices,
        left: Indices,
        asked: Indices,
        waiting: Bools,
        spent: int,
        round: int,
        final: bool,
        rng: np.random.Generator,
        model: Callable[[], Posterior],
        outcomes: Callable[[Id], tuple[Indices, Floats]],
    ) -> None:
        self.pool = pool
        self.candidates = candidates
        self.newest = newest
        self.left = left
        self.asked = asked
        self.waiting = waiting
        self.spent = spent
        self.round = round
        self.final = final
        self.rng = rng
        self._model = model
        self._outcomes = outcomes

    @cached_property
    def posterior(self) -> Posterior:
        """The joint model's view of the generated candidates."""
        return self._model()

    def outcomes(self, candidate: int) -> tuple[Indices, Floats]:
        """Tasks a candidate has a score on, ascending, and its mean over trials on each."""
        return self._outcomes(self.candidates[candidate])

    @cached_property
    def means(self) -> Floats:
        """Raw mean of each candidate over the tasks it has a score on; NaN without any."""
        scores = (self.outcomes(index)[1] for index in range(len(self.candidates)))
        return np.array([float(s.mean()) if len(s) else np.nan for s in scores])

    @cached_property
    def scored(self) -> Floats:
        """Number of tasks each candidate has a score on."""
        return np.array([len(self.outcomes(i)[1]) for i in range(len(self.candidates))])

    @cached_property
    def solved(self) -> Floats:
        """Sum of each candidate's scores."""
        return np.array([float(self.outcomes(i)[1].sum()) for i in range(len(self.candidates))])


@runtime_checkable
class Adaptive(Protocol):
    """An allocation that requests further tasks once it has seen outcomes.

    `needs_model` says whether it uses the posterior of a joint model. One that decides among the
    candidates of a round, when all of them are told, sets `needs_rounds` to True; a search
    without rounds refuses it.
    """

    @property
    def needs_model(self) -> bool: ...

    def further(self, view: SearchView) -> Sequence[Request]:
        """What to evaluate next; empty if the round, or in the end the search, is over.

        `ask()` calls it when all outcomes asked for have been told, `ask(candidates=...)` also
        while other candidates are evaluated. A request for more tasks than a candidate has left
        is cut.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A fixed share of every pool: m = ρN, rounded, at least 1.

    Args:
        fraction: ρ in (0, 1].
        rounding: How ρN is rounded: up ("ceil"), or down ("floor") as in the paper's rows at 7%.

    >>> pool = Pool.grouped({"uspto": map(str, range(30)), "law": map(str, range(30, 80))})
    >>> Share(fraction=0.07).sizes(pool, np.ones(80))
    (3, 4)
    >>> Share(fraction=0.07, rounding="floor").sizes(pool, np.ones(80))
    (2, 3)
    """

    fraction: float = 0.2
    rounding: Rounding = "ceil"

    def __post_init__(self) -> None:
        object.__setattr__(self, "fraction", _checked(self.fraction))
        if self.rounding not in ("ceil", "floor"):
            raise InputError(f"rounding must be 'ceil' or 'floor', got {self.rounding!r}.")

    def at(self, fraction: float) -> Self:
        return replace(self, fraction=fraction)

    def sizes(self, pool: Pool, weights: Floats) -> tuple[int, ...]:
        return tuple(self._size(len(pool.members(name))) for name in pool.names)

    def _size(self, tasks: int) -> int:
        # Rounded first, because 0.07 * 100 is 7.000000000000001 in floating point.
        exact = round(self.fraction * tasks, 9)
        return max(1, math.ceil(exact) if self.rounding == "ceil" else math.floor(exact))


@dataclass(frozen=True, slots=True, kw_only=True)
class WholePool:
    """Every task, every round, at any fraction.

    >>> WholePool().sizes(Pool(["a", "b", "c"]), np.ones(3))
    (3,)
    """

    def at(self, fraction: float) -> Self:
        _checked(fraction)
        return self

    def sizes(self, pool: Pool, weights: Floats) -> tuple[int, ...]:
        return tuple(len(pool.members(name)) for name in pool.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostShare:
    """A fixed share of every pool's cost: as many tasks as cost ρ Σ c_t on average.

    Tasks are drawn as if they arrived at rates w_t: by time s each is drawn with probability
    1 - exp(-w_t s). s is the time at which the drawn tasks cost ρ Σ c_t, and m their number by
    then, at least 1. With weights that prefer cheap tasks, more tasks are drawn for the same cost.

    Args:
        fraction: ρ in (0, 1].

    >>> pool = Pool(["a", "b", "c", "d"], costs=[1, 1, 1, 9])
    >>> CostShare(fraction=0.25).sizes(pool, np.array([1, 1, 1, 0.1]))
    (2,)
    """

    fraction: float = 0.2

    def __post_init__(self) -> None:
        object.__setattr__(self, "fraction", _checked(self.fraction))

    def at(self, fraction: float) -> Self:
        return replace(self, fraction=fraction)

    def sizes(self, pool: Pool, weights: Floats) -> tuple[int, ...]:
        if pool.costs is None:
            return share(self.fraction, pool)
        members = (pool.members(name) for name in pool.names)
        costs = pool.costs / pool.costs.max()
        return tuple(_affordable(costs[m], weights[m], self.fraction) for m in members)


def _affordable(costs: Floats, weights: Floats, fraction: float) -> int:
    """How many tasks, drawn by these weights, cost this fraction of all of them."""
    rates = weights / weights.max()
    low, high = 0.0, 1.0
    while high < 1e18 and -np.expm1(-rates * high) @ costs < fraction * costs.sum():
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        spent = -np.expm1(-rates * middle) @ costs
        low, high = (middle, high) if spent < fraction * costs.sum() else (low, middle)
    return min(max(1, round(float(-np.expm1(-rates * low).sum()))), len(costs))


def share(fraction: float, pool: Pool, rounding: Rounding = "ceil") -> tuple[int, ...]:
    """M of each pool: the tasks that a fixed share draws for every candidate.

    >>> share(0.2, Pool(["a", "b", "c", "d", "e", "f"]))
    (2,)
    """
    return Share(fraction=fraction, rounding=rounding).sizes(pool, np.empty(0))


def granted(fraction: float, view: SearchView, rounding: Rounding = "ceil") -> int:
    """Tasks a search may ask about so far: m for every candidate, as with a fixed share."""
    return sum(share(fraction, view.pool, rounding)) * len(view.candidates)


def split(size: int, left: Indices) -> tuple[int, ...]:
    """Split `size` tasks over the pools, in proportion to the tasks left in each.

    >>> split(5, np.array([10, 30]))
    (1, 4)
    """
    total = int(left.sum())
    if not total:
        return (0,) * len(left)
    edges = np.floor(np.cumsum(left) * (min(size, total) / total) + 0.5).astype(int)
    return tuple(np.diff(edges, prepend=0).tolist())


def _checked(fraction: object) -> float:
    number = float(fraction) if isinstance(fraction, Real) else math.nan
    if isinstance(fraction, bool) or not 0 < number <= 1:
        raise InputError(f"fraction must be in (0, 1], got {fraction!r}.")
    return number


_WIDER = 1.3
"""Factor on posterior widths when contenders are chosen, in case the model is overconfident."""

_WORTHWHILE = 0.1
"""Least expected improvement of a contender, as a share of that of the first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveShare:
    """A few tasks for every candidate, and the rest of the budget for those that may be the best.

    The search as a whole asks about no more tasks than a fixed share: m per candidate. A new
    candidate gets the share `first_look` of m. Then the leader (the highest posterior mean) and
    the candidates of any round with the highest expected improvement over it,
    E max(S_h - S_leader, 0) under the joint posterior, get further batches. Candidates that are
    clearly behind, with less than a tenth of the highest expected improvement, get nothing. The
    share `reserve` of the budget is kept for the final draw, `ask(final=True)`.

    Args:
        fraction: ρ.
        rounding: How m is rounded, as for `Share`.
        first_look: Share of m that a new candidate gets at once.
        reserve: Share of the whole budget that is kept for the final decision. A larger reserve
            makes the final choice more reliable; a smaller one shows earlier which candidate to
            build on (docs/choosing.md).
        batch: Tasks per further batch, as a share of m.
        contenders: How many candidates get a batch at a time, at most; the leader is one.
        regret: Stop when the expected regret is below this, even if budget is left; 0 spends all
            of it.

    >>> AdaptiveShare(fraction=0.2).sizes(Pool(map(str, range(100))), np.ones(100))
    (10,)
    """

    fraction: float = 0.2
    rounding: Rounding = "ceil"
    first_look: float = 0.5
    reserve: float = 0.3
    batch: float = 0.25
    contenders: int = 4
    regret: float = 0.0
    needs_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        share(self.fraction, Pool(["any"]), self.rounding)
        for name in ("first_look", "batch"):
            if not 0 < getattr(self, name) <= 1:
                raise InputError(f"{name} must be in (0, 1], got {getattr(self, name)!r}.")
        for name in ("reserve", "regret"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} must be in [0, 1], got {getattr(self, name)!r}.")
        if not is_whole(self.contenders, least=1):
            raise InputError(
                f"contenders must be a whole number of at least 1, got {self.contenders!r}."
            )

    def at(self, fraction: float) -> Self:
        return replace(self, fraction=fraction)

    def sizes(self, pool: Pool, weights: Floats) -> tuple[int, ...]:
        return tuple(math.ceil(self.first_look * m) for m in self.shares(pool))

    def shares(self, pool: Pool) -> tuple[int, ...]:
        """M of each pool: the tasks of a candidate, on average over the search."""
        return share(self.fraction, pool, self.rounding)

    @classmethod
    def upgraded(cls, recorded: dict[str, Any]) -> dict[str, Any]:
        """Fields as an earlier version recorded them: `first_look` was `first`."""
        return {"first_look" if key == "first" else key: at for key, at in recorded.items()}

    def further(self, view: SearchView) -> Sequence[Request]:
        budget = granted(self.fraction, view, self.rounding)
        kept = 0 if view.final else math.ceil(self.reserve * budget)
        budget -= kept + view.spent
        if budget <= 0 or self._settled(view):
            return []
        left = view.left.sum(axis=1)
        wanted: list[Request] = []
        batch = math.ceil(self.batch * sum(self.shares(view.pool)))
        places, least = self.contenders, 0.0
        gains = improvements(view.posterior)
        for index in ranked(gains):
            size = min(batch, budget, int(left[index]))
            if not places or gains[index] < least:
                break
            if view.waiting[index]:  # its batch is being evaluated
                places -= 1
            elif size > 0:
                wanted.append(Request(index, split(size, view.left[index])))
                budget -= size
                places -= 1
            else:
                continue
            if np.isfinite(gains[index]):
                least = max(least, _WORTHWHILE * gains[index])
        return wanted

    def _settled(self, view: SearchView) -> bool:
        if self.regret == 0:
            return False
        leader = int(view.posterior.scores.argmax())
        return view.posterior.confidence(leader, view.rng).regret < self.regret


def improvements(posterior: Posterior) -> Floats:
    """Expected improvement of every candidate over the leader; infinite for the leader itself.

    >>> close = Posterior(scores=np.array([0.5, 0.6, 0.58]), covariance=1e-3 * np.eye(3),
    ...     chances=np.full((3, 2), 0.5), newcomer=np.full(2, 0.5), parameters=None)
    >>> improvements(close).round(3).tolist()
    [0.001, inf, 0.015]
    >>> ranked(improvements(close))
    [1, 2, 0]
    """
    from scipy.special import ndtr  # on first use: slow to import

    scores, covariance = posterior.scores, posterior.covariance
    leader = int(scores.argmax())
    behind = scores - scores[leader]
    variance = np.diag(covariance) + covariance[leader, leader] - 2 * covariance[leader]
    sd = _WIDER * np.sqrt(np.maximum(variance, 1e-18))
    z = behind / sd
    gains = sd * (np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) + z * ndtr(z))
    gains[leader] = np.inf
    return np.asarray(gains)


def ranked(gains: Floats) -> list[int]:
    """The candidates by expected improvement, the leader first."""
    return [int(index) for index in np.argsort(-gains, kind="stable")]
