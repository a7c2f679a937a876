"""The tasks that candidates are evaluated on, in named pools."""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, Self

import numpy as np

from coevolve.core.arrays import Floats, Indices
from coevolve.errors import PoolError, UnknownTaskError, nearest

_SUGGEST_AMONG = 10_000
"""Larger pools are not searched for a task with a similar name, which takes too long."""


class Pool:
    """Task ids, each in one named pool, with a weight per pool and optionally a cost per task.

    Pools are estimated separately, and their estimates are averaged with the pool weights, which
    are equal by default (the paper's Avg column): Ŝ = Σ_p W_p Ŝ_p, Σ_p W_p = 1.

    Args:
        tasks: Distinct, non-empty ids.
        pools: The pool of each task, by its id or in the order of `tasks`; one pool "all" when
            left out.
        weights: Weight of each pool by name; scaled to sum to 1.
        costs: Expected cost of each task (tokens, seconds, dollars), by its id or in order.

    >>> pool = Pool(["a", "b", "c"], pools=["law", "law", "s2d"], weights={"law": 3, "s2d": 1})
    >>> pool.names, pool.weights.tolist(), len(pool)
    (('law', 's2d'), [0.75, 0.25], 3)
    """

    __slots__ = ("_members", "_position", "costs", "names", "tasks", "weights")

    def __init__(
        self,
        tasks: Iterable[str],
        *,
        pools: Sequence[str] | Mapping[str, str] | None = None,
        weights: Mapping[str, float] | None = None,
        costs: Sequence[float] | Mapping[str, float] | None = None,
    ) -> None:
        if isinstance(tasks, str) or not isinstance(tasks, Iterable):
            raise PoolError(f"tasks must be a collection of ids, got {tasks!r}.")
        self.tasks: tuple[str, ...] = tuple(tasks)
        self._position = _positions(self.tasks)
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
        pools: Mapping[str, Iterable[str]],
        *,
        weights: Mapping[str, float] | None = None,
        costs: Mapping[str, float] | None = None,
    ) -> Self:
        """Pool from the tasks of each named pool.

        >>> Pool.grouped({"law": ["a", "b"], "s2d": ["c"]}).names
        ('law', 's2d')
        """
        if not isinstance(pools, Mapping):
            raise PoolError(f"grouped needs {{pool: tasks}}, got {pools!r}.")
        groups: dict[str, tuple[str, ...]] = {}
        for name, group in pools.items():
            if isinstance(group, str) or not isinstance(group, Iterable):
                raise PoolError(f"pool {name!r} must be a collection of ids, got {group!r}.")
            groups[name] = tuple(group)
            if not groups[name]:
                raise PoolError(f"pool {name!r} has no task; leave it out or give it one.")
        return cls(
            [task for group in groups.values() for task in group],
            pools=[name for name, group in groups.items() for _ in group],
            weights=weights,
            costs=costs,
        )

    def __len__(self) -> int:
        return len(self.tasks)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n}: {len(m)}" for n, m in zip(self.names, self._members, strict=True))
        return f"Pool({len(self)} tasks; {sizes})"

    def members(self, name: str) -> Indices:
        """Positions in `tasks` of the tasks of one pool."""
        if name not in self.names:
            raise PoolError(f"there is no pool {name!r}.{nearest(name, self.names)}")
        return self._members[self.names.index(name)]

    def position(self, task: str) -> int:
        """Position of a task in `tasks`."""
        try:
            return self._position[task]
        except (KeyError, TypeError):
            known = self.tasks if len(self) <= _SUGGEST_AMONG else ()
            raise UnknownTaskError(
                f"task {task!r} is not among the {len(self)} tasks of the pool."
                + nearest(task, known)
            ) from None

    def positions(self, tasks: Iterable[str]) -> Indices:
        """Positions of several tasks, in their order."""
        tasks = list(tasks)
        try:
            return np.array([self._position[task] for task in tasks], dtype=np.int64)
        except (KeyError, TypeError):
            return np.array([self.position(task) for task in tasks], dtype=np.int64)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON from which `from_json` makes an equal pool."""
        labels = np.empty(len(self), dtype=object)
        for name, members in zip(self.names, self._members, strict=True):
            labels[members] = name
        return {
            "tasks": list(self.tasks),
            "pools": None if self.names == ("all",) else labels.tolist(),
            "weights": dict(zip(self.names, self.weights.tolist(), strict=True)),
            "costs": None if self.costs is None else self.costs.tolist(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The pool `to_json` described."""
        return cls(
            data["tasks"], pools=data["pools"], weights=data["weights"], costs=data["costs"]
        )


def _positions(tasks: tuple[str, ...]) -> dict[str, int]:
    if not tasks:
        raise PoolError("a pool needs at least one task, got none.")
    for task in tasks:
        if not isinstance(task, str) or not task:
            raise PoolError(f"task ids must be non-empty strings, got {task!r}.")
    positions = {task: position for position, task in enumerate(tasks)}
    if len(positions) < len(tasks):
        twice = next(task for position, task in enumerate(tasks) if positions[task] != position)
        raise PoolError(f"task {twice!r} appears more than once; ids must be distinct.")
    return positions


def _in_order(tasks: tuple[str, ...], given: Any, what: str) -> tuple[Any, ...]:
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
    for name in weights:
        if name not in names:
            raise PoolError(
                f"weights names pool {name!r}, which has no task." + nearest(name, names)
            )
    for name in names:
        weight = weights.get(name)
        if not isinstance(weight, Real) or not 0 < weight < 1e100:
            raise PoolError(f"the weight of pool {name!r} must be positive, got {weight}.")
    values = np.array([weights[name] for name in names], dtype=np.float64)
    total = float(values.sum())
    return values if abs(total - 1) < 1e-12 else values / total


def _costs(tasks: tuple[str, ...], costs: Sequence[float] | Mapping[str, float]) -> Floats:
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
