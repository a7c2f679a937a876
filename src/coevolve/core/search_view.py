"""What the parts of a protocol may look at when they decide."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coevolve.core.arrays import Floats, Indices
from coevolve.core.outcome_table import History
from coevolve.core.pool import Pool
from coevolve.core.posterior import Posterior
from coevolve.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskView:
    """What is known of the tasks that may be drawn.

    `history` holds their past outcomes, `costs` what each is expected to cost (1 where no costs
    are given). `chances` are the joint model's probabilities that the candidate at hand solves
    them; None for a weighting that does not need the model.

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
        chances = None if self.chances is None else self.chances[positions]
        return TaskView(
            history=self.history.select(positions),
            costs=self.costs[positions],
            chances=chances,
        )

    def solvable(self) -> Floats:
        """`chances`, for a weighting that needs them."""
        if self.chances is None:
            raise InputError("this weighting needs a protocol whose estimator is a joint model.")
        return self.chances


class SearchView:
    """What is known of the search when an adaptive allocation decides how to go on.

    Attributes:
        pool: The tasks.
        candidates: The generated candidates, in the order of proposal.
        newest: Indices of those of the last round.
        asked: Number of tasks each candidate was asked about.
        left: Number of tasks each candidate (row) was not asked about yet, per pool (column).
        spent: Tasks asked in all assignments so far.
        round: Number of the last round.
        final: Whether no further round will come.
        rng: Generator of this decision.
    """

    def __init__(
        self,
        *,
        pool: Pool,
        candidates: tuple[str, ...],
        newest: Indices,
        left: Indices,
        spent: int,
        round: int,
        final: bool,
        rng: np.random.Generator,
        model: Callable[[], Posterior],
        outcomes: Callable[[str], tuple[Indices, Floats]],
    ) -> None:
        self.pool = pool
        self.candidates = candidates
        self.newest = newest
        self.left = left
        self.asked = np.asarray(len(pool) - left.sum(axis=1))
        self.spent = spent
        self.round = round
        self.final = final
        self.rng = rng
        self._model = model
        self._outcomes = outcomes

    @cached_property
    def posterior(self) -> Posterior:
        """The joint model's view of the generated candidates."""
        return self._model()

    def outcomes(self, candidate: int) -> tuple[Indices, Floats]:
        """Tasks a candidate has a score on, ascending, and its mean over trials on each."""
        return self._outcomes(self.candidates[candidate])

    @cached_property
    def means(self) -> Floats:
        """Raw mean of each candidate over the tasks it has a score on; NaN without any."""
        scores = (self.outcomes(index)[1] for index in range(len(self.candidates)))
        return np.array([float(s.mean()) if len(s) else np.nan for s in scores])

    @cached_property
    def scored(self) -> Floats:
        """Number of tasks each candidate has a score on."""
        return np.array([len(self.outcomes(i)[1]) for i in range(len(self.candidates))])

    @cached_property
    def solved(self) -> Floats:
        """Sum of each candidate's scores."""
        return np.array([float(self.outcomes(i)[1].sum()) for i in range(len(self.candidates))])
