"""Which estimator, from what Phase 0 showed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from coevolve.core.estimators import Difference, Estimator, Hajek
from coevolve.errors import InputError


@runtime_checkable
class EstimatorRule(Protocol):
    """Settles on an estimator once, before the first draw."""

    def decide(self, means: Mapping[str, float]) -> Estimator:
        """The estimator for pools with these mean scores of the starting harnesses."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseZeroRule:
    """The paper's rule: Hájek for several pools that are all easy or hard, else difference.

    Hájek if there are two or more pools and every pool has |mean - 1/2| >= threshold.

    >>> PhaseZeroRule().decide({"uspto": 0.08, "s2d": 0.71, "law": 0.14})
    Hajek()
    >>> PhaseZeroRule().decide({"terminal-bench": 0.51})
    Difference()
    """

    threshold: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 0.5:
            raise InputError(f"threshold must be in [0, 0.5], got {self.threshold}.")

    def decide(self, means: Mapping[str, float]) -> Estimator:
        extreme = all(abs(mean - 0.5) >= self.threshold - 1e-12 for mean in means.values())
        return Hajek() if len(means) > 1 and extreme else Difference()
