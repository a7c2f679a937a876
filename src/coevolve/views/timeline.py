"""A run over time: one pass over its events, kept up to date with every further one."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from coevolve.core.events import Event
from coevolve.errors import EventError
from coevolve.search.effects import apply
from coevolve.search.journal import Journal
from coevolve.search.run_state import RunState
from coevolve.views.certainty import Certainty, certainty
from coevolve.views.draw_log import DrawLog, TaskDraw
from coevolve.views.failure_log import Failures, IncidentLog, failures
from coevolve.views.lineage import Lineage, lineage
from coevolve.views.milestones import Milestone, MilestoneLog
from coevolve.views.outcome_grid import GridSplit, OutcomeGrid, outcome_grid
from coevolve.views.progress import Progress, progress
from coevolve.views.provenance import Provenance, SessionLog
from coevolve.views.report import Report, report
from coevolve.views.run_columns import RunColumns
from coevolve.views.spend_timeline import SpendTimeline, spend_timeline

_OF_A_WAVE = ("outcome", "failed", "reopened")
"""Events that a fold may leave out if the event "told" follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """The solvability of the tasks over time, and the draws that followed from it.

    `milestones` count the tasks by solvability after Phase 0, every round and the choice. `draws`
    have weights and inclusion probabilities of the tasks that were drawn; `tasks` are their names.
    """

    milestones: tuple[Milestone, ...]
    draws: tuple[TaskDraw, ...]
    tasks: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "milestones": [one.to_json() for one in self.milestones],
            "draws": [one.to_json() for one in self.draws],
            "tasks": list(self.tasks),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that displays show of a run at one time, except the matrix of outcomes."""

    report: Report
    progress: Progress
    certainty: Certainty
    spend: SpendTimeline
    frontier: Frontier
    lineage: Lineage
    failures: Failures
    seed: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "seed": self.seed,
            "report": self.report.to_json(),
            "progress": self.progress.to_json(),
            "certainty": self.certainty.to_json(),
            "spend": self.spend.to_json(),
            "frontier": self.frontier.to_json(),
            "lineage": self.lineage.to_json(),
            "failures": self.failures.to_json(),
        }


class Timeline:
    """The projections of a run over time; an event costs a few microseconds.

    `of` reads a whole journal. `follow` applies the next event to the state of this timeline and
    takes it. A process that has the state already, because it works on the run, calls `take`
    instead, after the event was applied.

    Args:
        opened: The first event of the run.
        state: The state of the run after it; a new one if left out.
    """

    def __init__(self, opened: Event, state: RunState | None = None) -> None:
        self.state = RunState.opened(opened) if state is None else state
        self.columns = RunColumns()
        self.draws = DrawLog()
        self._milestones = MilestoneLog()
        self._incidents = IncidentLog()
        self._sessions = SessionLog()
        self.take(opened)

    @classmethod
    def of(cls, journal: Journal, until: int | None = None) -> Self:
        """The timeline of a journal, or of its events before number `until`."""
        return cls.of_events(journal.events(until=until))

    @classmethod
    def of_events(cls, events: Iterable[Event]) -> Self:
        """The timeline of the events of a run, from the first on."""
        events = iter(events)
        first = next(events, None)
        if first is None:
            raise EventError("the journal has no events: the run was never opened.")
        timeline = cls(first)
        held: list[Event] = []
        for event in events:
            if event["type"] in _OF_A_WAVE:
                held.append(event)
                timeline._take_early(event)
                continue
            if event["type"] == "told":
                held.clear()
            apply(timeline.state, event)
            timeline.take(event)
        for event in held:  # of the wave that is still open
            apply(timeline.state, event)
        return timeline

    def _take_early(self, event: Event) -> None:
        """Take an event of a wave, of which nothing here needs the effect."""
        self.columns.take(event)
        self._sessions.take(event)
        if event["type"] == "reopened":
            self._incidents.take(event, self.state)

    def follow(self, event: Event) -> None:
        """Apply the next event, and take it."""
        apply(self.state, event)
        self.take(event)

    def take(self, event: Event) -> None:
        """Take an event that was applied to the state."""
        self.columns.take(event)
        self.draws.take(event)
        self._milestones.take(event, self.state)
        self._incidents.take(event, self.state)
        self._sessions.take(event)

    @property
    def provenance(self) -> Provenance:
        """What the run was made with, and which events this timeline has taken."""
        return self._sessions.provenance(self.state)

    @property
    def milestones(self) -> tuple[Milestone, ...]:
        """What was known after Phase 0, every round and the choice."""
        return tuple(self._milestones.milestones)

    def snapshot(self, *, clock: float | None = None, under_way: int = 0) -> Snapshot:
        """The run as it is now, or after `clock` seconds."""
        state = self.state
        now = report(state, clock=clock, under_way=under_way)
        milestones = self.milestones
        return Snapshot(
            report=now,
            progress=progress(now, milestones),
            certainty=certainty(state),
            spend=spend_timeline(self.columns, now.spend, now.seconds),
            frontier=Frontier(
                milestones=milestones,
                draws=tuple(self.draws.draws),
                tasks=tuple(self.columns.tasks),
            ),
            lineage=lineage(now),
            failures=failures(self.columns, now, self._incidents.incidents),
            seed=state.settings.seed,
        )

    def grid(self, split: GridSplit = "validation") -> OutcomeGrid:
        """The matrix of outcomes on the validation tasks, or on those of the sealed test."""
        rows = report(self.state).candidates
        return outcome_grid(self.columns, self.state, rows, self.draws.draws, split)
