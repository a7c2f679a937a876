"""Missing outcomes that count as failures: more than others lost, and without an explanation.

A missing outcome leaves the sample, which is right if its cause has nothing to do with the
candidate. A candidate that can bring about missing outcomes could drop every task it cannot
solve. So outcomes that others lost too are missing, and what a candidate lost beyond that counts
as failed.

Let a candidate have n outcomes, of which M are missing without an explanation, and let b be the
base rate: the share that others lost. Then ⌈M - bn⌉ of the M outcomes count as 0, chosen at
random, and the rest leaves the sample. A candidate that drops s outcomes on purpose loses others
by chance at the rate b: E[M - s] = b(n - s). By Jensen's inequality at least
E[(M - bn)⁺] ≥ s(1 - b) outcomes count as 0. As many zeros would have remained of s honest
failures, because some of those would have been lost by chance too: dropping a task never pays more
than failing it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np

from coevolve.core.identifiers import Id, text_of

Cell = tuple[int, int]
"""Position of a task, and the number of the trial."""

_ROUNDING = 1e-9


@dataclass(slots=True, kw_only=True)
class Losses:
    """The outcomes that each candidate lost without an explanation.

    >>> losses = Losses(seed=0)
    >>> losses.add("start", told=20, lost=[(3, 0)])
    >>> losses.add("new", told=10, lost=[(0, 0), (1, 0), (2, 0)])
    >>> losses.base_rate(starts=["start"], siblings=[]), len(losses.failures("new", 0.05))
    (0.05, 3)
    >>> len(losses.failures("new", base_rate=0.1)), len(losses.failures("new", base_rate=0.3))
    (2, 0)
    """

    seed: int
    told: dict[Id, int] = field(default_factory=dict)
    lost: dict[Id, list[Cell]] = field(default_factory=dict)

    def add(self, candidate: Id, *, told: int, lost: Iterable[Cell]) -> None:
        """Count outcomes of a candidate, and those of them that it lost."""
        self.told[candidate] = self.told.get(candidate, 0) + told
        if cells := list(lost):
            self.lost.setdefault(candidate, []).extend(cells)

    def base_rate(self, starts: Iterable[Id], siblings: Iterable[Id]) -> float:
        """The share of outcomes that others lost, whatever the candidate does.

        It is that of the starting harnesses, or that of the candidate of the same round that lost
        the least, if this is more: a fault at the time of the round hits all of its candidates.

        Args:
            starts: The starting harnesses.
            siblings: The other candidates of the round.
        """
        rates = [self._rate([name]) for name in siblings if self.told.get(name)]
        return max(self._rate(starts), min(rates, default=0.0))

    def failures(self, candidate: Id, base_rate: float) -> Sequence[Cell]:
        """The lost outcomes of a candidate that count as failed."""
        lost = sorted(self.lost.get(candidate, ()))
        allowed = base_rate * self.told.get(candidate, 0)
        failed = max(0, math.ceil(len(lost) - allowed - _ROUNDING))
        if failed in (0, len(lost)):
            return lost[:failed]
        rng = np.random.default_rng([self.seed, crc32(text_of(candidate).encode())])
        return [lost[at] for at in sorted(rng.permutation(len(lost))[:failed].tolist())]

    def _rate(self, candidates: Iterable[Id]) -> float:
        names = list(candidates)
        told = sum(self.told.get(name, 0) for name in names)
        return sum(len(self.lost.get(name, ())) for name in names) / told if told else 0.0
