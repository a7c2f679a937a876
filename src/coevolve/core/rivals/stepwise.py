"""A fixed share per candidate, drawn in several steps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from coevolve.core.allocation import Request, share
from coevolve.core.arrays import Floats
from coevolve.core.outcomes import is_whole
from coevolve.core.pool import Pool
from coevolve.core.search_view import SearchView
from coevolve.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepwise:
    """The same m tasks for every candidate, but drawn in steps, so that weights can follow.

    Args:
        fraction: ρ.
        steps: Number of draws that make up m; as many as there are tasks where there are fewer.

    >>> Stepwise(fraction=0.2, steps=4).sizes(Pool(map(str, range(100))), np.ones(100))
    (5,)
    """

    fraction: float = 0.2
    steps: int = 4
    needs_model: ClassVar[bool] = False

    def __post_init__(self) -> None:
        share(self.fraction, Pool(["any"]))
        if not is_whole(self.steps, least=1):
            raise InputError(f"steps must be a whole number of at least 1, got {self.steps!r}.")

    def at(self, fraction: float) -> Self:
        return replace(self, fraction=fraction)

    def sizes(self, pool: Pool, weights: Floats) -> tuple[int, ...]:
        return tuple(-(-size // self.steps) for size in share(self.fraction, pool))

    def further(self, view: SearchView) -> Sequence[Request]:
        total = np.array(share(self.fraction, view.pool))
        step = np.array(self.sizes(view.pool, np.empty(0)))
        whole = np.array([len(view.pool.members(name)) for name in view.pool.names])
        wanted = {i: np.minimum(step, total - (whole - view.left[i])) for i in view.newest}
        return [
            Request(int(index), tuple(np.maximum(sizes, 0).tolist()))
            for index, sizes in wanted.items()
            if (sizes > 0).any()
        ]
