"""Successive halving over candidates that arrive one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np

from coevolve.core.allocation import Request, granted, share, split
from coevolve.core.arrays import Floats
from coevolve.core.outcomes import is_whole
from coevolve.core.pool import Pool
from coevolve.core.search_view import SearchView
from coevolve.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Halving:
    """A small share for everybody, twice as much for the better half of each rung, and so on.

    Asynchronous successive halving [Li2020]: a candidate of a rung is promoted when its raw mean
    is in the top 1/η of all that reached this rung, as long as the budget m per candidate lasts.

    Args:
        fraction: ρ.
        factor: η, by how much the field shrinks and the number of tasks grows.

    >>> Halving(fraction=0.2).sizes(Pool(map(str, range(100))), np.ones(100))
    (10,)
    """

    fraction: float = 0.2
    factor: int = 2
    needs_model: ClassVar[bool] = False

    def __post_init__(self) -> None:
        share(self.fraction, Pool(["any"]))
        if not is_whole(self.factor, least=2):
            raise InputError(f"factor must be a whole number of at least 2, got {self.factor!r}.")

    def at(self, fraction: float) -> Self:
        return replace(self, fraction=fraction)

    def sizes(self, pool: Pool, weights: Floats) -> tuple[int, ...]:
        return tuple(max(1, size // self.factor) for size in share(self.fraction, pool))

    def further(self, view: SearchView) -> Sequence[Request]:
        budget = granted(self.fraction, view) - view.spent
        first = sum(self.sizes(view.pool, np.empty(0)))
        rungs = [first]
        while rungs[-1] * self.factor < len(view.pool):
            rungs.append(rungs[-1] * self.factor)
        rungs.append(len(view.pool))
        for here, above in reversed(list(pairwise(rungs))):
            reached = np.flatnonzero(view.asked >= here)
            best = reached[np.argsort(-view.means[reached], kind="stable")]
            keep = max(1, len(best) // self.factor) if view.final else len(best) // self.factor
            waiting = [int(i) for i in best[:keep] if view.asked[i] < above]
            if waiting and (size := min(above - int(view.asked[waiting[0]]), budget)) > 0:
                return [Request(waiting[0], split(size, view.left[waiting[0]]))]
        return []
