"""Which tasks candidates have been asked about."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from coevolve.core.arrays import Bools
from coevolve.core.assignment import Design
from coevolve.core.pool import Pool


@dataclass(slots=True)
class Asked:
    """The tasks asked of every candidate, what is left of each pool, and how many in all.

    >>> asked = Asked(Pool(["a", "b", "c"]))
    >>> asked.everything("start")
    >>> asked.left["start"], asked.count("start"), asked.total
    ([0], 3, 0)
    """

    pool: Pool
    masks: dict[str, Bools] = field(default_factory=dict)
    left: dict[str, list[int]] = field(default_factory=dict)
    total: int = 0

    def add(self, candidate: str, designs: Sequence[Design], *, anew: bool) -> None:
        """Note a draw; a round drawn again starts anew."""
        if anew:
            self.masks[candidate] = np.zeros(len(self.pool), dtype=np.bool_)
        mask = self.masks[candidate]
        for design in designs:
            mask[design.positions] = True
            self.total += len(design.positions)
        pools = map(self.pool.members, self.pool.names)
        self.left[candidate] = [int(np.count_nonzero(~mask[members])) for members in pools]

    def everything(self, candidate: str) -> None:
        """Note that a candidate is evaluated on every task, by no draw."""
        self.masks[candidate] = np.ones(len(self.pool), dtype=np.bool_)
        self.left[candidate] = [0] * len(self.pool.names)

    def count(self, candidate: str) -> int:
        """Number of tasks asked of a candidate."""
        return int(np.count_nonzero(self.masks[candidate]))
