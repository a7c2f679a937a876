"""An allocation that spends where contenders are hard to tell apart."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from coevolve.core.allocation import Request, granted, share, split
from coevolve.core.arrays import Floats
from coevolve.core.outcomes import is_whole
from coevolve.core.pool import Pool
from coevolve.core.posterior import Posterior
from coevolve.core.view import SearchView
from coevolve.errors import InputError

_WIDER = 1.3
"""Whom to look at is decided with wider posteriors: a model that is too sure would never look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveShare:
    """A first look at every candidate, and the rest of the budget for those who may be the best.

    The search as a whole asks for no more than a fixed share would: m tasks per candidate. A new
    candidate gets the share `first` of m. After that the leader (the highest posterior mean) and
    those with the highest expected improvement over it, of whatever round, get further batches:
    E max(S_h - S_leader, 0) under the joint posterior. Whoever is clearly behind gets nothing
    more. The share `reserve` of the budget is kept until no further round will come, which
    `ask(final=True)` says.

    Args:
        fraction: ρ.
        first: Share of m that a new candidate gets at once.
        reserve: Share of the whole budget that is kept for the final decision. More of it finds
            the best of the candidates more surely; less of it shows better, while the search is
            on, which candidate to build on (`benchmarks/choosing.py`).
        batch: Tasks per further look, as a share of m.
        contenders: How many candidates are looked at together.
        regret: Stop when the expected regret is below this, whatever is left of the budget; 0 to
            spend all of it.

    >>> AdaptiveShare(fraction=0.2).sizes(Pool(map(str, range(100))), np.ones(100))
    (10,)
    """

    fraction: float = 0.2
    first: float = 0.5
    reserve: float = 0.4
    batch: float = 0.25
    contenders: int = 2
    regret: float = 0.0
    needs_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        share(self.fraction, Pool(["any"]))
        for name in ("first", "batch"):
            if not 0 < getattr(self, name) <= 1:
                raise InputError(f"{name} must be in (0, 1], got {getattr(self, name)!r}.")
        for name in ("reserve", "regret"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} must be in [0, 1], got {getattr(self, name)!r}.")
        if not is_whole(self.contenders, least=1):
            raise InputError(
                f"contenders must be a whole number of at least 1, got {self.contenders!r}."
            )

    def at(self, fraction: float) -> Self:
        return replace(self, fraction=fraction)

    def sizes(self, pool: Pool, weights: Floats) -> tuple[int, ...]:
        return tuple(math.ceil(self.first * m) for m in share(self.fraction, pool))

    def further(self, view: SearchView) -> Sequence[Request]:
        budget = granted(self.fraction, view)
        kept = 0 if view.final else math.ceil(self.reserve * budget)
        budget -= kept + view.spent
        if budget <= 0 or self._settled(view):
            return []
        left = view.left.sum(axis=1)
        wanted: list[Request] = []
        batch = math.ceil(self.batch * sum(share(self.fraction, view.pool)))
        for index in contenders(view.posterior):
            size = min(batch, budget, int(left[index]))
            if size > 0 and len(wanted) < self.contenders:
                wanted.append(Request(index, split(size, view.left[index])))
                budget -= size
        return wanted

    def _settled(self, view: SearchView) -> bool:
        if self.regret == 0:
            return False
        leader = int(view.posterior.scores.argmax())
        return view.posterior.confidence(leader, view.rng).regret < self.regret


def contenders(posterior: Posterior) -> list[int]:
    """The leader, then the others by their expected improvement over it.

    >>> contenders(Posterior(scores=np.array([0.5, 0.6, 0.58]), covariance=1e-3 * np.eye(3),
    ...     chances=np.full((3, 2), 0.5), newcomer=np.full(2, 0.5), parameters=None))
    [1, 2, 0]
    """
    from scipy.special import ndtr  # on first use: it takes long to import

    scores, covariance = posterior.scores, posterior.covariance
    leader = int(scores.argmax())
    behind = scores - scores[leader]
    variance = np.diag(covariance) + covariance[leader, leader] - 2 * covariance[leader]
    sd = _WIDER * np.sqrt(np.maximum(variance, 1e-18))
    z = behind / sd
    gain = sd * (np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) + z * ndtr(z))
    gain[leader] = -1.0
    order = np.argsort(-gain, kind="stable")
    return [leader, *(int(i) for i in order if i != leader)]
