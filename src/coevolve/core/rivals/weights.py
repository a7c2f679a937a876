"""Weights of rival rules."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coevolve.core.arrays import Floats
from coevolve.core.search_view import TaskView
from coevolve.core.variance import expected_success
from coevolve.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class MidRangeWeights:
    """Tasks with 30% to 70% past success first, all others only where these do not suffice.

    Args:
        low: Least success rate p̄_t of a task that is kept.
        high: Largest success rate of a task that is kept.
        rest: Weight of the others, positive, so that they can fill up.

    >>> from coevolve.core.outcome_table import History
    >>> view = TaskView(history=History(mean=np.array([0.1, 0.3, 0.7]), count=np.full(3, 9)))
    >>> MidRangeWeights()(view).tolist()
    [0.001, 1.0, 1.0]
    """

    low: float = 0.3
    high: float = 0.7
    rest: float = 1e-3
    needs_history: ClassVar[bool] = True
    needs_model: ClassVar[bool] = False
    window: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high <= 1:
            raise InputError(
                f"low and high must be in order and in [0, 1], got {self.low} and {self.high}."
            )
        if not 0 < self.rest <= 1:
            raise InputError(f"rest must be in (0, 1], got {self.rest}.")

    def __call__(self, view: TaskView) -> Floats:
        p = view.history.anchors
        inside = (p >= self.low - 1e-9) & (p <= self.high + 1e-9)
        return np.where(inside, 1.0, self.rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedScoreWeights:
    """Active testing's acquisition: in proportion to what a surrogate expects of the task.

    The surrogate is the beta-binomial model of the history (`coevolve.core.variance`): w_t = θ_t.
    Drawn in this proportion, x_t / w_t varies least [Kossen2021].

    >>> from coevolve.core.outcome_table import History
    >>> view = TaskView(history=History(mean=np.array([0.0, 1.0]), count=np.array([2, 2])))
    >>> ExpectedScoreWeights()(view).round(2).tolist()
    [0.1, 0.9]
    """

    needs_history: ClassVar[bool] = True
    needs_model: ClassVar[bool] = False
    window: ClassVar[int | None] = None

    def __call__(self, view: TaskView) -> Floats:
        return np.maximum(expected_success(view.history), 1e-6)
