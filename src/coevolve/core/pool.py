"""The tasks candidates are judged on, in named pools."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from coevolve.core.arrays import Floats, Indices
from coevolve.errors import PoolError, UnknownTaskError, nearest

_SUGGEST_AMONG = 10_000
"""Pools larger than this are not searched for a task of a similar name: it takes too long."""


class Pool:
    """Task ids, each in one named pool, with a weight per pool and maybe a cost per task.

    Pools are estimated separately and their estimates averaged with the pool weights, which are
    equal unless given (the paper's Avg column): Ŝ = Σ_p W_p Ŝ_p, Σ_p W_p = 1.

    Args:
        tasks: Distinct, non-empty ids.
        pools: The pool of each task, in the order of `tasks`; one pool "all" when left out.
        weights: Weight of each pool by name; scaled to sum to 1.
        costs: Expected cost of each task (tokens, seconds, dollars), in the order of `tasks`.

    >>> pool = Pool(["a", "b", "c"], pools=["law", "law", "s2d"], weights={"law": 3, "s2d": 1})
    >>> pool.names, pool.weights.tolist(), len(pool)
    (('law', 's2d'), [0.75, 0.25], 3)
    """

    __slots__ = ("_members", "_position", "costs", "names", "tasks", "weights")

    def __init__(
        self,
        tasks: Iterable[str],
        *,
        pools: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
        costs: Sequence[float] | None = None,
    ) -> None:
        if isinstance(tasks, str):
            raise PoolError(f"tasks must be a collection of ids, got the single string {tasks!r}.")
        self.tasks: tuple[str, ...] = tuple(tasks)
        self._position = _positions(self.tasks)
        labels = ("all",) * len(self) if pools is None else tuple(pools)
        if len(labels) != len(self):
            raise PoolError(f"pools names {len(labels)} tasks, but there are {len(self)}.")
        self.names, self._members = _grouped(labels)
        self.weights = _weights(self.names, weights)
        self.costs = None if costs is None else _costs(self.tasks, costs)

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
        groups = {name: tuple(tasks) for name, tasks in pools.items()}
        for name, group in groups.items():
            if not group:
                raise PoolError(f"pool {name!r} has no task; leave it out or give it one.")
        tasks = [task for group in groups.values() for task in group]
        if costs is not None and (lacking := next((t for t in tasks if t not in costs), None)):
            raise PoolError(f"costs has no entry for task {lacking!r}; give every task a cost.")
        return cls(
            tasks,
            pools=[name for name, group in groups.items() for _ in group],
            weights=weights,
            costs=None if costs is None else [costs[task] for task in tasks],
        )

    def __len__(self) -> int:
        return len(self.tasks)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n}: {len(m)}" for n, m in zip(self.names, self._members, strict=True))
        return f"Pool({len(self)} tasks; {sizes})"

    def members(self, name: str) -> Indices:
        """Positions in `tasks` of the tasks of one pool."""
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


def _grouped(labels: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[Indices, ...]]:
    code = {name: number for number, name in enumerate(dict.fromkeys(labels))}
    for name in code:
        if not isinstance(name, str) or not name:
            raise PoolError(f"pool names must be non-empty strings, got {name!r}.")
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
        if weight is None or not math.isfinite(weight) or weight <= 0:
            raise PoolError(f"the weight of pool {name!r} must be positive, got {weight}.")
    values = np.array([weights[name] for name in names], dtype=np.float64)
    total = float(values.sum())
    return values if abs(total - 1) < 1e-12 else values / total


def _costs(tasks: tuple[str, ...], costs: Sequence[float]) -> Floats:
    values = np.asarray(costs, dtype=np.float64)
    if values.shape != (len(tasks),):
        raise PoolError(f"costs has shape {values.shape}, but there are {len(tasks)} tasks.")
    bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if len(bad):
        raise PoolError(
            f"the cost of task {tasks[bad[0]]!r} must be positive, got {values[bad[0]]}."
        )
    return values
