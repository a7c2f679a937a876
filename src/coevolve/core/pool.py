"""The tasks that candidates are evaluated on, in named pools, and the scale of their scores."""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, Self

import numpy as np

from coevolve.core.arrays import Floats, Indices
from coevolve.core.identifiers import KINDS, Id, all_frozen, all_plain, frozen, is_id
from coevolve.errors import PoolError, UnknownTaskError, nearest

UNIT_SCALE = (0.0, 1.0)
"""The scale of scores, unless a pool has another one."""

_SUGGEST_AMONG = 10_000
"""Larger pools are not searched for a task with a similar name, which takes too long."""


class Pool:
    """Task ids, each in one named pool, with a weight per pool and optionally a cost per task.

    Pools are estimated separately, and their estimates are averaged with the pool weights, which
    are equal by default (the paper's Avg column): Ŝ = Σ_p W_p Ŝ_p, Σ_p W_p = 1.

    Args:
        tasks: Distinct ids: texts, numbers, or tuples of these. Or a mapping from the name of each
            pool to its ids; a mapping with other values has the ids as keys.
        pools: The pool of each task, by its id or in the order of `tasks`; one pool "all" when
            left out.
        weights: Weight of each pool by name; scaled to sum to 1.
        costs: Expected cost of each task (tokens, seconds, dollars), by its id or in order.
        scale: The lowest and the highest score. Scores are told, and estimates are returned, on
            this scale.

    >>> pool = Pool({"law": ["a", "b"], "s2d": ["c"]}, weights={"law": 3, "s2d": 1})
    >>> pool.names, pool.weights.tolist(), len(pool)
    (('law', 's2d'), [0.75, 0.25], 3)
    >>> Pool([("law", 1), ("law", 2)], scale=(-1, 1)).to_unit(np.array([0.5]))
    array([0.75])
    """

    __slots__ = ("_members", "_position", "costs", "names", "scale", "tasks", "weights")

    def __init__(
        self,
        tasks: Iterable[Id] | Mapping[str, Iterable[Id]],
        *,
        pools: Sequence[str] | Mapping[Id, str] | None = None,
        weights: Mapping[str, float] | None = None,
        costs: Sequence[float] | Mapping[Id, float] | None = None,
        scale: tuple[float, float] = UNIT_SCALE,
    ) -> None:
        if isinstance(tasks, str) or not isinstance(tasks, Iterable):
            raise PoolError(f"tasks must be a collection of ids, got {tasks!r}.")
        if isinstance(tasks, Mapping) and pools is None and _are_pools(tasks):
            tasks, pools = _of_groups(tasks)
        self.tasks: tuple[Id, ...] = tuple(all_frozen(tasks))
        self._position = _positions(self.tasks)
        self.scale = _scale(scale)
        labels = ("all",) * len(self) if pools is None else _in_order(self.tasks, pools, "pools")
        if len(labels) != len(self):
            raise PoolError(f"pools has {len(labels)} entries, but there are {len(self)} tasks.")
        self.names, self._members = _grouped(labels)
        self.weights = _weights(self.names, weights)
        self.costs = None if costs is None else _costs(self.tasks, costs)
        self.weights.setflags(write=False)

    @classmethod
    def grouped(
        cls,
        pools: Mapping[str, Iterable[Id]],
        *,
        weights: Mapping[str, float] | None = None,
        costs: Mapping[Id, float] | None = None,
        scale: tuple[float, float] = UNIT_SCALE,
    ) -> Self:
        """Pool from the tasks of each named pool.

        >>> Pool.grouped({"law": ["a", "b"], "s2d": ["c"]}).names
        ('law', 's2d')
        """
        if not isinstance(pools, Mapping):
            raise PoolError(f"grouped needs {{pool: tasks}}, got {pools!r}.")
        tasks, labels = _of_groups(pools)
        return cls(tasks, pools=labels, weights=weights, costs=costs, scale=scale)

    def grown(
        self,
        tasks: Iterable[Id] | Mapping[str, Iterable[Id]],
        *,
        pools: Sequence[str] | Mapping[Id, str] | None = None,
        weights: Mapping[str, float] | None = None,
        costs: Sequence[float] | Mapping[Id, float] | None = None,
    ) -> Self:
        """This pool with more tasks at the end.

        Args:
            tasks: The new ids, as for a new pool.
            pools: The pool of each new task; needed if there are several pools.
            weights: Weights of all pools. Needed if a pool is new and the weights are not equal.
            costs: The cost of each new task, if the tasks have costs.

        >>> Pool(["a", "b"]).grown(["c"]).tasks
        ('a', 'b', 'c')
        """
        if pools is None and self.names != ("all",) and not isinstance(tasks, Mapping):
            raise PoolError(
                f"there are pools {list(self.names)}; say which pool each new task belongs to."
            )
        if (self.costs is None) != (costs is None):
            raise PoolError("new tasks need costs if, and only if, the others have them.")
        added = type(self)(tasks, pools=pools, costs=costs)
        for task in added.tasks:
            if task in self._position:
                raise PoolError(f"task {task!r} is already in the pool; new ids must be new.")
        names = tuple(dict.fromkeys((*self.names, *added.names)))
        if weights is None and names == self.names:
            weights = dict(zip(self.names, self.weights.tolist(), strict=True))
        elif weights is None and np.ptp(self.weights) > 1e-12:
            raise PoolError(
                f"pool {names[-1]!r} is new and the pools have different weights; give the "
                "weights of all pools."
            )
        both = None
        if self.costs is not None and added.costs is not None:
            both = np.concatenate([self.costs, added.costs]).tolist()
        return type(self)(
            (*self.tasks, *added.tasks),
            pools=(*self.labels, *added.labels),
            weights=weights,
            costs=both,
            scale=self.scale,
        )

    def __len__(self) -> int:
        return len(self.tasks)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n}: {len(m)}" for n, m in zip(self.names, self._members, strict=True))
        scores = "" if self.scale == UNIT_SCALE else "; scores {:.15g} to {:.15g}"
        return f"Pool({len(self)} tasks; {sizes}{scores.format(*self.scale)})"

    def members(self, name: str) -> Indices:
        """Positions in `tasks` of the tasks of one pool."""
        if name not in self.names:
            raise PoolError(f"there is no pool {name!r}.{nearest(name, self.names)}")
        return self._members[self.names.index(name)]

    @property
    def labels(self) -> list[str]:
        """The name of the pool of each task."""
        labels = np.empty(len(self), dtype=object)
        for name, members in zip(self.names, self._members, strict=True):
            labels[members] = name
        found: list[str] = labels.tolist()
        return found

    def to_unit(self, scores: Floats) -> Floats:
        """Scores on the scale from 0 to 1."""
        if self.scale == UNIT_SCALE:
            return scores
        low, high = self.scale
        return np.asarray((scores - low) / (high - low))

    def from_unit(self, scores: Floats) -> Floats:
        """Scores from 0 to 1 on the scale of the pool."""
        if self.scale == UNIT_SCALE:
            return scores
        low, high = self.scale
        return np.asarray(low + (high - low) * scores)

    def position(self, task: Id) -> int:
        """Position of a task in `tasks`."""
        try:
            return self._position[frozen(task) if isinstance(task, list) else task]
        except (KeyError, TypeError):
            known = self.tasks if len(self) <= _SUGGEST_AMONG else ()
            raise UnknownTaskError(
                f"task {task!r} is not among the {len(self)} tasks of the pool."
                + nearest(task, known)
            ) from None

    def positions(self, tasks: Iterable[Id]) -> Indices:
        """Positions of several tasks, in their order."""
        tasks = list(tasks)
        try:
            return np.array([self._position[task] for task in tasks], dtype=np.int64)
        except (KeyError, TypeError):
            return np.array([self.position(task) for task in tasks], dtype=np.int64)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON from which `from_json` makes an equal pool."""
        data = {
            "tasks": all_plain(self.tasks),
            "pools": None if self.names == ("all",) else self.labels,
            "weights": dict(zip(self.names, self.weights.tolist(), strict=True)),
            "costs": None if self.costs is None else self.costs.tolist(),
        }
        return data if self.scale == UNIT_SCALE else data | {"scale": list(self.scale)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The pool `to_json` described."""
        return cls(
            data["tasks"],
            pools=data["pools"],
            weights=data["weights"],
            costs=data["costs"],
            scale=tuple(data.get("scale", UNIT_SCALE)),
        )


def _are_pools(tasks: Mapping[Any, Any]) -> bool:
    """Whether a mapping has the tasks of each pool: all values are lists."""
    return bool(tasks) and all(
        isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
        for value in tasks.values()
    )


def _of_groups(pools: Mapping[str, Iterable[Id]]) -> tuple[list[Id], list[str]]:
    """The tasks of all pools, and the pool of each."""
    groups: dict[str, tuple[Id, ...]] = {}
    for name, group in pools.items():
        if isinstance(group, str) or not isinstance(group, Iterable):
            raise PoolError(f"pool {name!r} must be a collection of ids, got {group!r}.")
        groups[name] = tuple(group)
        if not groups[name]:
            raise PoolError(f"pool {name!r} has no task; leave it out or give it one.")
    tasks = [task for group in groups.values() for task in group]
    return tasks, [name for name, group in groups.items() for _ in group]


def _scale(scale: tuple[float, float]) -> tuple[float, float]:
    pair = tuple(scale) if isinstance(scale, Sequence) and not isinstance(scale, str) else ()
    if len(pair) != 2 or not all(isinstance(end, Real) for end in pair):
        raise PoolError(f"scale must be the lowest and the highest score, got {scale!r}.")
    low, high = float(pair[0]), float(pair[1])
    if not (-1e15 <= low < high <= 1e15) or high - low < 1e-9 * max(abs(low), abs(high)):
        raise PoolError(
            "scale must be two different numbers from -1e15 to 1e15, the lower first, got "
            f"{scale!r}."
        )
    return low, high


def _positions(tasks: tuple[Id, ...]) -> dict[Id, int]:
    if not tasks:
        raise PoolError("a pool needs at least one task, got none.")
    for task in tasks:
        if not is_id(task):
            raise PoolError(f"the id of a task must be {KINDS}, got {task!r}.")
    positions = {task: position for position, task in enumerate(tasks)}
    if len(positions) < len(tasks):
        twice = next(task for position, task in enumerate(tasks) if positions[task] != position)
        raise PoolError(f"task {twice!r} appears more than once; ids must be distinct.")
    return positions


def _in_order(tasks: tuple[Id, ...], given: Any, what: str) -> tuple[Any, ...]:
    """Values per task in the order of the tasks, from a mapping or a sequence."""
    if not isinstance(given, Mapping):
        return tuple(given)
    if (lacking := next((task for task in tasks if task not in given), None)) is not None:
        raise PoolError(f"{what} has no entry for task {lacking!r}; give every task one.")
    return tuple(given[task] for task in tasks)


def _grouped(labels: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[Indices, ...]]:
    for name in labels:
        if not isinstance(name, str) or not name:
            raise PoolError(f"pool names must be non-empty strings, got {name!r}.")
    code = {name: number for number, name in enumerate(dict.fromkeys(labels))}
    codes = np.fromiter((code[label] for label in labels), dtype=np.int64, count=len(labels))
    order = np.argsort(codes, kind="stable")
    splits = np.cumsum(np.bincount(codes))[:-1]
    return tuple(code), tuple(np.split(order, splits))


def _weights(names: tuple[str, ...], weights: Mapping[str, float] | None) -> Floats:
    if weights is None:
        return np.full(len(names), 1 / len(names))
    if not isinstance(weights, Mapping):
        raise PoolError(f"weights must be a mapping from pool to weight, got {weights!r}.")
    for name in weights:
        if name not in names:
            raise PoolError(
                f"weights names pool {name!r}, which has no task." + nearest(name, names)
            )
    for name in names:
        if name not in weights:
            raise PoolError(f"weights has no entry for pool {name!r}; give every pool one.")
        weight = weights[name]
        if not isinstance(weight, Real) or not 0 < weight < 1e100:
            raise PoolError(f"the weight of pool {name!r} must be positive, got {weight!r}.")
    values = np.array([weights[name] for name in names], dtype=np.float64)
    total = float(values.sum())
    return values if abs(total - 1) < 1e-12 else values / total


def _costs(tasks: tuple[Id, ...], costs: Sequence[float] | Mapping[Id, float]) -> Floats:
    try:
        values = np.array(_in_order(tasks, costs, "costs"), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise PoolError(f"costs must be numbers, one per task: {error}") from error
    if values.shape != (len(tasks),):
        raise PoolError(f"costs has shape {values.shape}, but there are {len(tasks)} tasks.")
    bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if len(bad):
        raise PoolError(
            f"the cost of task {tasks[bad[0]]!r} must be positive, got {values[bad[0]]}."
        )
    return values
