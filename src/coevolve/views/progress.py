"""The progress of a search: every candidate in order, and the best so far."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from coevolve.formatting import is_exact
from coevolve.views.milestones import Milestone
from coevolve.views.report import CandidateRow, Report


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredCandidate:
    """A candidate of a search with its score; `order` counts proposals from 0.

    `value`, `low` and `high` are the estimate and its interval, None where unknown. An `exact`
    score is not estimated: every task has one. `full` is the score on every validation task where
    it is known, `test` that on the sealed test.
    """

    order: int
    name: str
    round: int
    start: bool
    status: str
    reason: str
    value: float | None
    low: float | None
    high: float | None
    tasks: int
    exact: bool
    full: float | None
    test: float | None
    best: bool

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class BestSoFar:
    """The candidate that was best after a round: its estimate then, and today's.

    `round` is 0 after Phase 0. `final` marks the choice at the end. `value`, `low` and `high` are
    as they were known then, `today` is the estimate now.
    """

    round: int
    final: bool
    candidate: str
    value: float
    low: float | None
    high: float | None
    today: float | None
    probability: float | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Every candidate in the order of proposal, and the best so far after every round."""

    candidates: tuple[ScoredCandidate, ...]
    best: tuple[BestSoFar, ...]
    rounds: int
    tasks: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


def progress(now: Report, milestones: Sequence[Milestone]) -> Progress:
    """The progress of a run, from its report and its milestones."""
    rows = {row.name: row for row in now.candidates}
    return Progress(
        candidates=tuple(
            _scored(order, row, best=row.name == now.best)
            for order, row in enumerate(rows.values())
        ),
        best=tuple(
            _best(one, one.estimate, rows.get(one.best))
            for one in milestones
            if one.best is not None and one.estimate is not None
        ),
        rounds=now.rounds,
        tasks=now.tasks,
    )


def _scored(order: int, row: CandidateRow, *, best: bool) -> ScoredCandidate:
    found = row.estimate or {"value": None, "low": None, "high": None, "tasks": 0}
    exact = row.estimate is not None and is_exact(row.estimate)
    return ScoredCandidate(
        order=order,
        name=row.name,
        round=row.round,
        start=row.start,
        status=row.status,
        reason=row.reason,
        value=found["value"],
        low=found["low"],
        high=found["high"],
        tasks=found["tasks"],
        exact=exact,
        full=row.true_score,
        test=row.test,
        best=best,
    )


def _best(one: Milestone, then: dict[str, Any], row: CandidateRow | None) -> BestSoFar:
    today = None if row is None or row.estimate is None else row.estimate["value"]
    return BestSoFar(
        round=one.round,
        final=one.kind == "choice",
        candidate=str(one.best),
        value=then["value"],
        low=then["low"],
        high=then["high"],
        today=today,
        probability=one.probability,
    )
