"""An allocation that spends where contenders are hard to tell apart."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from coevolve.core.allocation import Request, share
from coevolve.core.arrays import Floats
from coevolve.core.pool import Pool
from coevolve.core.view import SearchView


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveShare:
    """provisional."""

    fraction: float = 0.2
    first: float = 0.5
    reserve: float = 0.5
    batch: float = 0.25
    needs_model: ClassVar[bool] = True

    def at(self, fraction: float) -> Self:
        return replace(self, fraction=fraction)

    def sizes(self, pool: Pool, weights: Floats) -> tuple[int, ...]:
        return tuple(max(1, round(self.first * n)) for n in share(self.fraction, pool))

    def further(self, view: SearchView) -> Sequence[Request]:
        m = np.array(share(self.fraction, view.pool))
        granted = int(m.sum()) * len(view.candidates)
        allowed = granted if view.final else int(granted * (1 - self.reserve))
        sizes = np.maximum(1, np.floor(self.batch * m).astype(int))
        if view.spent + sizes.sum() > allowed:
            return []
        index = view.posterior.scores + view.posterior.sd
        index[view.left.sum(axis=1) == 0] = -np.inf
        top = int(index.argmax())
        return [Request(top, tuple(sizes.tolist()))] if np.isfinite(index[top]) else []
