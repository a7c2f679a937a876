"""How much each task is worth drawing."""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from coevolve.core.arrays import Floats
from coevolve.core.history import History
from coevolve.core.outcomes import is_whole
from coevolve.errors import InputError


@runtime_checkable
class Weighting(Protocol):
    """Gives every task a positive weight from its history.

    `needs_history` says whether Phase 0 must come first; `window` how many of the last rounds
    count (None: all of them).
    """

    @property
    def needs_history(self) -> bool: ...

    @property
    def window(self) -> int | None: ...

    def __call__(self, history: History) -> Floats:
        """Weights w_t > 0 of the tasks of the history."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformWeights:
    """The same weight for every task.

    >>> UniformWeights()(History(mean=np.array([0.0, 0.5]), count=np.array([2, 2]))).tolist()
    [1.0, 1.0]
    """

    needs_history: ClassVar[bool] = False

    window: ClassVar[int | None] = None

    def __call__(self, history: History) -> Floats:
        return np.ones(len(history.count))


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceWeights:
    """Weight of each task from the Bernoulli variance of its past outcomes.

    w_t = max(p̄_t (1 - p̄_t), ℓ_t) + λ / √n_t, where ℓ_t = ℓ for a task never solved, else 0
    (the paper's equation `vws_weight`). A task without any outcome is as uncertain as can be
    and gets 1/4 + λ.

    Args:
        floor: ℓ, what a never-solved task is worth: it may become solvable.
        bonus: λ, positive, so that every task can be drawn.
        window: Number of last rounds that count; None for all past rounds, as in the paper.

    >>> history = History(mean=np.array([0.0, 0.5, 1.0]), count=np.array([2, 2, 2]))
    >>> VarianceWeights()(history).round(4).tolist()
    [0.1427, 0.2677, 0.0177]
    """

    floor: float = 0.125
    bonus: float = 0.025
    window: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.floor, int | float) or not 0 <= self.floor < np.inf:
            raise InputError(f"floor must be at least 0, got {self.floor}.")
        if not isinstance(self.bonus, int | float) or not 0 < self.bonus < np.inf:
            raise InputError(
                f"bonus must be positive, got {self.bonus}; without it a task that is always "
                "solved has weight 0 and can never be drawn."
            )
        if self.window is not None and not is_whole(self.window, least=1):
            raise InputError(f"window must be at least 1 round, got {self.window}.")

    needs_history: ClassVar[bool] = True

    def __call__(self, history: History) -> Floats:
        seen = history.count > 0
        p = np.where(seen, history.mean, 0.5)
        worth = np.where(history.never_solved, self.floor, p * (1 - p))
        return np.asarray(worth + self.bonus / np.sqrt(np.maximum(history.count, 1)))
