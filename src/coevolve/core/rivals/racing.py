"""Paired racing: candidates on shared tasks, dropped as soon as they are significantly behind."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from coevolve.core.allocation import Request, granted, share, split
from coevolve.core.arrays import Floats, ranks
from coevolve.core.pool import Pool
from coevolve.core.search_view import SearchView
from coevolve.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRacing:
    """Every candidate runs the same tasks in the same order until a paired test drops it.

    Use it with a design that does not redraw. The champion is the best of those evaluated on the
    most tasks. Whoever is not significantly behind it on the tasks they share gets the next batch;
    when all have caught up or dropped out, the champion goes on alone.

    Args:
        fraction: ρ; together the candidates spend no more than m each.
        test: Student's t or Wilcoxon's signed ranks, both on the paired differences.
        level: A candidate is dropped where the one-sided p-value is below this.

    >>> PairedRacing(fraction=0.2).sizes(Pool(map(str, range(100))), np.ones(100))
    (5,)
    """

    fraction: float = 0.2
    test: Literal["t", "wilcoxon"] = "t"
    level: float = 0.1
    needs_model: ClassVar[bool] = False

    def __post_init__(self) -> None:
        share(self.fraction, Pool(["any"]))
        if self.test not in ("t", "wilcoxon"):
            raise InputError(f"test must be 't' or 'wilcoxon', got {self.test!r}.")
        if not 0 < self.level < 0.5:
            raise InputError(f"level must be in (0, 0.5), got {self.level}.")

    def at(self, fraction: float) -> Self:
        return replace(self, fraction=fraction)

    def sizes(self, pool: Pool, weights: Floats) -> tuple[int, ...]:
        return tuple(max(1, n // 4) for n in share(self.fraction, pool))

    def further(self, view: SearchView) -> Sequence[Request]:
        batch = sum(self.sizes(view.pool, np.empty(0)))
        batch = min(batch, granted(self.fraction, view) - view.spent)
        if batch <= 0:
            return []
        ahead = np.flatnonzero(view.asked == view.asked.max())
        champion = int(ahead[np.argmax(np.nan_to_num(view.means[ahead], nan=-1.0))])
        behind = [i for i in range(len(view.candidates)) if view.asked[i] < view.asked[champion]]
        for racer in sorted(behind, key=lambda i: -view.asked[i]):
            size = min(batch, int(view.asked[champion] - view.asked[racer]))
            if _p_value(view, racer, champion, self.test) >= self.level:
                return [Request(racer, split(size, view.left[racer]))]
        return [Request(champion, split(batch, view.left[champion]))]


def _p_value(view: SearchView, racer: int, champion: int, test: str) -> float:
    """One-sided p-value of the racer being worse on the tasks both have a score on."""
    tasks, scores = view.outcomes(racer)
    others, marks = view.outcomes(champion)
    _, mine, theirs = np.intersect1d(tasks, others, assume_unique=True, return_indices=True)
    gap = scores[mine] - marks[theirs]
    if len(gap) < 2 or np.ptp(gap) == 0:
        return 0.0 if len(gap) and gap[0] < 0 else 1.0
    from scipy.special import ndtr, stdtr  # on first use: it takes long to import

    if test == "wilcoxon":
        return float(ndtr(signed_rank(gap)))
    t = gap.mean() / (gap.std(ddof=1) / np.sqrt(len(gap)))
    return float(stdtr(len(gap) - 1, t))


def signed_rank(gap: Floats) -> float:
    """Wilcoxon's signed-rank statistic in standard deviations, for differences not all zero.

    >>> round(signed_rank(np.array([-1.0, -1.0, -0.5, 0.25, 0.0])), 3)
    -1.473
    """
    gap = gap[gap != 0]
    rank = ranks(np.abs(gap))
    return float((np.sign(gap) @ rank) / np.sqrt(rank @ rank))
