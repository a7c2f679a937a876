"""Weights of tasks, by which they are drawn."""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from coevolve.core.arrays import Floats, Indices
from coevolve.core.outcome_table import History
from coevolve.core.outcomes import is_whole
from coevolve.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskView:
    """The tasks that may be drawn, as a weighting sees them.

    `history` has their past outcomes, `costs` their expected costs (1 if no costs are given).
    `chances` are the joint model's probabilities that the candidate at hand solves them; None for
    a weighting that does not need the model.

    >>> view = TaskView(history=History(mean=np.array([0.5]), count=np.array([2])))
    >>> view.costs.tolist(), view.chances
    ([1.0], None)
    """

    history: History
    costs: Floats = None  # type: ignore[assignment]
    chances: Floats | None = None

    def __post_init__(self) -> None:
        if self.costs is None:
            object.__setattr__(self, "costs", np.ones(len(self.history.count)))

    def select(self, positions: Indices) -> "TaskView":
        """The view of some of the tasks."""
        return TaskView(
            history=self.history.select(positions),
            costs=self.costs[positions],
            chances=None if self.chances is None else self.chances[positions],
        )

    def solvable(self) -> Floats:
        """`chances`, for a weighting that needs them."""
        if self.chances is None:
            raise InputError("this weighting needs a protocol whose estimator is a joint model.")
        return self.chances


@runtime_checkable
class Weighting(Protocol):
    """Gives every task a positive weight from its history, its cost and its chances.

    `needs_history` says whether Phase 0 must come first, `needs_model` whether it uses the chances
    of a joint model, and `window` how many of the last rounds count (None: all of them). A
    weighting may have a text `prefers`, which tells proposers which tasks it draws, such as
    "mostly short tasks".
    """

    @property
    def needs_history(self) -> bool: ...

    @property
    def needs_model(self) -> bool: ...

    @property
    def window(self) -> int | None: ...

    def __call__(self, view: TaskView) -> Floats:
        """Weights w_t > 0 of the tasks in view."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformWeights:
    """The same weight for every task.

    >>> history = History(mean=np.array([0.0, 0.5]), count=np.array([2, 2]))
    >>> UniformWeights()(TaskView(history=history)).tolist()
    [1.0, 1.0]
    """

    needs_history: ClassVar[bool] = False
    needs_model: ClassVar[bool] = False
    window: ClassVar[int | None] = None

    def __call__(self, view: TaskView) -> Floats:
        return np.ones(len(view.history.count))


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceWeights:
    """Weight of each task from the Bernoulli variance of its past outcomes.

    w_t = max(p̄_t (1 - p̄_t), ℓ_t) + λ / √n_t, where ℓ_t = ℓ for a task never solved, else 0
    (the paper's equation `vws_weight`). A task without any outcome is the most uncertain one and
    gets 1/4 + λ.

    Args:
        floor: ℓ, the weight of a task that was never solved, which may become solvable.
        bonus: λ of the term λ/√n; positive, so that every task can be drawn.
        window: Number of last rounds that count; None for all past rounds, as in the paper.
        cost: Exponent of the cost c_t that divides the weight. 0 ignores costs, as the paper does;
            1/2 is Neyman's allocation with w_t as standard deviation; 1 maximises variance per
            unit of cost.

    >>> history = History(mean=np.array([0.0, 0.5, 1.0]), count=np.array([2, 2, 2]))
    >>> VarianceWeights()(TaskView(history=history)).round(4).tolist()
    [0.1427, 0.2677, 0.0177]
    """

    floor: float = 0.125
    bonus: float = 0.025
    window: int | None = None
    cost: float = 0.0
    needs_history: ClassVar[bool] = True
    needs_model: ClassVar[bool] = False
    prefers: ClassVar[str] = "mostly tasks on which candidates differ"

    def __post_init__(self) -> None:
        _check_exponent("cost", self.cost)
        if not isinstance(self.floor, int | float) or not 0 <= self.floor < np.inf:
            raise InputError(f"floor must be at least 0, got {self.floor}.")
        if not isinstance(self.bonus, int | float) or not 0 < self.bonus < np.inf:
            raise InputError(
                f"bonus must be positive, got {self.bonus}; without it a task that is always "
                "solved has weight 0 and can never be drawn."
            )
        if self.window is not None and not is_whole(self.window, least=1):
            raise InputError(f"window must be at least 1 round, got {self.window}.")

    def __call__(self, view: TaskView) -> Floats:
        history = view.history
        seen = history.count > 0
        p = np.where(seen, history.mean, 0.5)
        worth = np.where(history.never_solved, self.floor, p * (1 - p))
        worth = worth + self.bonus / np.sqrt(np.maximum(history.count, 1))
        return np.asarray(worth / view.costs**self.cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class InformationWeights:
    """Weight of each task from how uncertain the joint model is about its outcome.

    w_t = (4 P_t (1 - P_t))^k + `floor`, where P_t is the chance that the candidate at hand solves
    the task. P_t (1 - P_t) is the variance that the outcome removes, and its information about the
    candidate.

    Args:
        floor: Added to every weight; positive, so that every task can be drawn.
        power: k; 1 draws in proportion to the information, larger values prefer tasks with more
            of it.
        cost: Exponent of the cost c_t that divides the weight; 0 ignores costs.

    >>> view = TaskView(history=History(mean=np.full(2, 0.5), count=np.full(2, 9)),
    ...     chances=np.array([0.5, 0.99]))
    >>> InformationWeights()(view).round(4).tolist()
    [1.04, 0.0796]
    """

    floor: float = 0.04
    power: float = 1.0
    cost: float = 0.0
    needs_history: ClassVar[bool] = False
    needs_model: ClassVar[bool] = True
    window: ClassVar[int | None] = None
    prefers: ClassVar[str] = "mostly tasks on which candidates differ"

    def __post_init__(self) -> None:
        _check_exponent("cost", self.cost)
        _check_exponent("power", self.power)
        if not isinstance(self.floor, int | float) or not 0 < self.floor < np.inf:
            raise InputError(f"floor must be positive, got {self.floor}.")

    def __call__(self, view: TaskView) -> Floats:
        p = view.solvable()
        worth = (4 * p * (1 - p)) ** self.power + self.floor
        return np.asarray(worth / view.costs**self.cost)


def _check_exponent(name: str, value: float) -> None:
    if not isinstance(value, int | float) or not 0 <= value <= 100:
        raise InputError(f"{name} must be an exponent from 0 to 100, got {value!r}.")
