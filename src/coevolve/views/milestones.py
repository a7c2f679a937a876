"""What was known after Phase 0, after every round and at the choice, as it was known then."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from coevolve.core.choice import Choice
from coevolve.core.events import Event
from coevolve.core.posterior import JointModel
from coevolve.errors import NoOutcomeError
from coevolve.search.run_state import RunState

Kind = Literal["phase 0", "round", "choice"]
_LARGE, _EVERY = 100_000, 8
"""With a joint model of more cells than this, only every so many rounds are a milestone.

A fit of such a model takes about a second. A fold needs it no more often.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Milestone:
    """The best candidate, the solvability of the tasks, and the spending at one time.

    `best` and its `estimate` are what was known then; a later round may know better.
    `probability` is that of the best candidate being the best, and `regret` what is expected to
    be lost by choosing it, both under a joint model and None without one. `groups` counts the
    tasks by solvability, and `pools` does so in each pool. `evaluations` are the trials of
    generated candidates, `trials` those of all.
    """

    kind: Kind
    round: int
    clock: float
    best: str | None
    estimate: dict[str, Any] | None
    probability: float | None
    regret: float | None
    groups: dict[str, int]
    pools: dict[str, dict[str, int]]
    evaluations: int
    trials: int
    tokens: int
    dollars: float
    hours: float

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


class MilestoneLog:
    """The milestones of a run; call `take` with every event after it was applied."""

    def __init__(self) -> None:
        self.milestones: list[Milestone] = []

    def take(self, event: Event, state: RunState) -> None:
        """Add a milestone, if the event ends Phase 0 or a round, or is the choice."""
        match event["type"]:
            case "told" if not self.milestones and state.selector.starts:
                self._add("phase 0", 0, event, state)
            case "settled" if not _costly(state, event["round"]):
                over = len(state.rounds) - len(state.open_rounds)
                self._add("round", over if state.rolling else event["round"], event, state)
            case "chosen":
                self._add("choice", len(state.rounds), event, state)

    def _add(self, kind: Kind, round: int, event: Event, state: RunState) -> None:
        choice = choice_of(state)
        best = choice.candidate if choice is not None else _best_start(state)
        if kind == "choice":
            best = event["candidate"]
        estimate = state.estimate(str(best)) if best is not None else None
        confidence = None if choice is None else choice.confidence
        selector, spent = state.selector, state.spending(event["clock"])
        history, pool = selector.history(), selector.pool
        named = pool.names if len(pool.names) > 1 else ()
        self.milestones.append(
            Milestone(
                kind=kind,
                round=round,
                clock=event["clock"],
                best=None if best is None else str(best),
                estimate=None if estimate is None else estimate.to_json(),
                probability=None if confidence is None else confidence.probability,
                regret=None if confidence is None else confidence.regret,
                groups=history.groups(),
                pools={name: history.select(pool.members(name)).groups() for name in named},
                evaluations=selector.evaluations,
                trials=int(spent.trials),
                tokens=int(spent.tokens),
                dollars=spent.dollars,
                hours=spent.hours,
            )
        )


def choice_of(state: RunState) -> Choice | None:
    """The choice as it would be made now; None before any generated candidate has a score."""
    if not state.selector.candidates:
        return None
    try:
        return state.selector.best()
    except NoOutcomeError:
        return None


def _best_start(state: RunState) -> str | None:
    return state.best_start if state.selector.starts else None


def _costly(state: RunState, round: int) -> bool:
    """Whether the estimates after a round need a fit that the fold itself does not need."""
    protocol = state.selector.protocol
    if not isinstance(protocol.estimator, JointModel) or protocol.draws_by_model:
        return False
    cells = len(state.candidates) * len(state.selector.pool)
    return cells > _LARGE and round % _EVERY != 0 and round < state.settings.rounds
