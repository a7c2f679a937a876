"""What past outcomes say about each task."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from coevolve.core.arrays import Bools, Floats, Indices

UNIT = 1 << 46
"""Sums of scores are kept in integer units of 2^-46, which add up the same in any order."""

GROUPS = ("never", "sometimes", "mixed", "mostly", "unseen")
"""Solvability groups of the paper's Table `difficulty`; "unseen" tasks have no outcome yet."""

_EDGE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """Success rate p̄_t and number of outcomes n_t of every task over some rounds.

    Each candidate counts once per task, with its mean over trials. p̄_t is NaN where n_t = 0.

    >>> from coevolve.core.table import OutcomeTable
    >>> table = OutcomeTable(2)
    >>> for name, scores in {"a": [1.0, 0.0], "b": [0.0, 0.0]}.items():
    ...     table.open(name, round=0)
    ...     table.add(name, np.arange(2), np.zeros(2, dtype=int), np.array(scores))
    >>> history = table.history()
    >>> history.mean.tolist(), history.count.tolist(), history.never_solved.tolist()
    ([0.5, 0.0], [2, 2], [False, True])
    """

    mean: Floats
    count: Indices

    @classmethod
    def from_sums(cls, sums: Indices, counts: Indices) -> Self:
        """History from sums of scores in units of 2^-46."""
        mean = np.full(len(sums), np.nan)
        np.divide(sums / UNIT, counts, out=mean, where=counts > 0)
        return cls(mean=mean, count=counts.copy())

    @property
    def never_solved(self) -> Bools:
        """Whether every observed outcome of the task is 0 (and there is one)."""
        return np.asarray(self.mean == 0)

    @property
    def anchors(self) -> Floats:
        """p̄_t, with the mean of the seen tasks standing in where nothing was seen."""
        unseen = self.count == 0
        if not unseen.any():
            return self.mean
        stand_in = 0.5 if unseen.all() else float(self.mean[~unseen].mean())
        return np.where(unseen, stand_in, self.mean)

    def select(self, positions: Indices) -> "History":
        """The history of some of the tasks."""
        return History(mean=self.mean[positions], count=self.count[positions])

    def groups(self) -> dict[str, int]:
        """Number of tasks in each solvability group.

        never: p̄ = 0; sometimes: 0 < p̄ < 1/3; mixed: 1/3 <= p̄ <= 2/3; mostly: p̄ > 2/3.

        >>> History(mean=np.array([0, 0.2, 0.5, 1]), count=np.full(4, 5)).groups()
        {'never': 1, 'sometimes': 1, 'mixed': 1, 'mostly': 1, 'unseen': 0}
        """
        p = self.mean
        members = (
            p == 0,
            (p > 0) & (p < 1 / 3 - _EDGE),
            (p >= 1 / 3 - _EDGE) & (p <= 2 / 3 + _EDGE),
            p > 2 / 3 + _EDGE,
            self.count == 0,
        )
        return {name: int(m.sum()) for name, m in zip(GROUPS, members, strict=True)}
