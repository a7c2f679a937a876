"""Thompson sampling, one task at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from coevolve.core.allocation import Request, granted, share, split
from coevolve.core.arrays import Floats
from coevolve.core.pool import Pool
from coevolve.core.search_view import SearchView
from coevolve.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Thompson:
    """Candidates as arms of a bandit: the highest draw from their beta posteriors gets a task.

    A new candidate starts with one task per pool; the rest of its m goes, task by task, to whoever
    draws best. Several tasks are asked for at once, each by a draw of its own, so that they can
    run in parallel.

    Args:
        fraction: ρ.
        parallel: How many tasks are asked for at once, as a share of m; 0 for one at a time.

    >>> Thompson(fraction=0.2).sizes(Pool(map(str, range(100))), np.ones(100))
    (1,)
    """

    fraction: float = 0.2
    parallel: float = 0.5
    needs_model: ClassVar[bool] = False

    def __post_init__(self) -> None:
        share(self.fraction, Pool(["any"]))
        if not 0 <= self.parallel <= 1:
            raise InputError(f"parallel must be a share from 0 to 1, got {self.parallel!r}.")

    def at(self, fraction: float) -> Self:
        return replace(self, fraction=fraction)

    def sizes(self, pool: Pool, weights: Floats) -> tuple[int, ...]:
        return (1,) * len(pool.names)

    def further(self, view: SearchView) -> Sequence[Request]:
        many = max(1, int(self.parallel * sum(share(self.fraction, view.pool))))
        many = min(many, granted(self.fraction, view) - view.spent)
        left = view.left.sum(axis=1)
        if many <= 0 or not left.any():
            return []
        failed = view.scored - view.solved
        drawn = view.rng.beta(1 + view.solved, 1 + failed, size=(many, len(left)))
        drawn[:, left == 0] = -1
        times = np.bincount(drawn.argmax(axis=1), minlength=len(left))
        return [
            Request(int(arm), split(int(times[arm]), view.left[arm]))
            for arm in np.flatnonzero(times)
        ]
