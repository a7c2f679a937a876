"""The state of a selector: a fold over its events."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coevolve.core.assignment import Assignment, Design
from coevolve.core.checks import check_settings
from coevolve.core.estimators import Estimator
from coevolve.core.events import SCHEMA, Event
from coevolve.core.outcomes import Usage
from coevolve.core.pool import Pool
from coevolve.core.protocols import (
    SearchProtocol,
    part_from_json,
    part_to_json,
    protocol_from_json,
)
from coevolve.core.results import Told
from coevolve.core.rule import EstimatorRule
from coevolve.core.sample import drawn_samples
from coevolve.core.table import OutcomeTable
from coevolve.errors import EventError


@dataclass(slots=True)
class Round:
    """One round: its candidates and their assignments, those of a second attempt included."""

    number: int
    candidates: tuple[str, ...]
    attempts: int = 0


@dataclass(slots=True)
class Progress:
    """How many trials of an assignment have been told, and how many of these have a score."""

    assignment: Assignment
    asked: frozenset[str]
    told: int = 0
    scored: int = 0
    empty_pool: bool = False

    @property
    def complete(self) -> bool:
        return self.told == len(self.assignment)

    @property
    def note(self) -> str:
        """What is still open about it, if anything."""
        left = len(self.assignment) - self.told
        if left:
            return f"{left} of {len(self.assignment)} trials are not told yet"
        if 2 * self.scored < self.told:
            return "under half of the trials have a score"
        return ""

    def recount(self, table: OutcomeTable, pool: Pool) -> None:
        """Count anew, after outcomes came in by another way."""
        tasks = pool.positions(self.assignment.tasks)
        self.told = self.scored = 0
        for trial in self.assignment.trials:
            known, scores = table.find(
                self.assignment.candidate, tasks, np.full(len(tasks), trial, dtype=np.int64)
            )
            self.told += int(known.sum())
            self.scored += int((~np.isnan(scores)).sum())
        self.look(table)

    def look(self, table: OutcomeTable) -> None:
        """When complete, see whether a pool was left without any score."""
        if self.complete:
            assignment = self.assignment
            tasks, means = table.means(assignment.candidate, assignment.trials)
            samples = drawn_samples(assignment.designs, tasks, means)
            self.empty_pool = any(not len(sample.scores) for sample in samples)


@dataclass(slots=True, kw_only=True)
class State:
    """All a selector knows. `apply` is the only way it changes."""

    pool: Pool
    protocol: SearchProtocol
    seed: int
    trials: int
    draw_per: str
    confidence: float
    table: OutcomeTable
    estimator: Estimator | None = None
    starts: list[str] = field(default_factory=list)
    whole: set[str] = field(default_factory=set)
    rounds: list[Round] = field(default_factory=list)
    progress: dict[tuple[str, int], Progress] = field(default_factory=dict)
    reasons: dict[tuple[str, int, int], str] = field(default_factory=dict)
    evaluations: int = 0
    usage: Usage = field(default_factory=Usage)

    @classmethod
    def opened(
        cls, event: Event, protocol: SearchProtocol | None = None, pool: Pool | None = None
    ) -> "State":
        """The state after the first event, which must be "opened"."""
        if event["type"] != "opened":
            raise EventError(f"the first event must be 'opened', got {event['type']!r}.")
        if event["schema"] != SCHEMA:
            raise EventError(f"events of schema {event['schema']!r}; this is schema {SCHEMA}.")
        pool = pool or Pool.from_json(event["pool"])
        check_settings(
            pool, event["seed"], event["trials"], event["draw_per"], event["confidence"]
        )
        return cls(
            pool=pool,
            protocol=protocol_from_json(event["protocol"], protocol),
            seed=event["seed"],
            trials=event["trials"],
            draw_per=event["draw_per"],
            confidence=event["confidence"],
            table=OutcomeTable(len(pool)),
        )._settled()

    def _settled(self) -> "State":
        """With the estimator of the protocol, unless a rule is still to decide."""
        if not isinstance(self.protocol.estimator, EstimatorRule):
            self.estimator = self.protocol.estimator
        return self

    def apply(self, event: Event) -> None:
        """Take in the next event."""
        handlers: dict[str, Callable[[Event], None]] = {
            "told_full": self._told_full,
            "drawn": self._drawn,
            "told": self._told,
        }
        if event["type"] not in handlers:
            raise EventError(f"event {event['seq']} has the unknown type {event['type']!r}.")
        handlers[event["type"]](event)

    @property
    def candidates(self) -> tuple[str, ...]:
        """The generated candidates, in the order of proposal."""
        return tuple(name for round in self.rounds for name in round.candidates)

    def recorded(self, candidate: str, position: int, trial: int) -> float | None:
        """The score of one trial (NaN where it is missing), if there is an outcome."""
        known, scores = self.table.find(candidate, np.array([position]), np.array([trial]))
        return float(scores[0]) if known[0] else None

    def decided(self) -> Estimator:
        """The estimator, which is settled when the first round is drawn."""
        if self.estimator is None:
            raise EventError("no estimator was decided before the first round.")
        return self.estimator

    def standing(self, candidate: str) -> Progress:
        """The assignment that speaks for a candidate.

        That is the last complete one, unless it has fewer scores than the one before; the first
        while none is complete.
        """
        attempts = self._attempts(candidate)
        complete = [progress for progress in attempts if progress.complete]
        return max(complete, key=lambda p: (p.scored, p.assignment.attempt), default=attempts[0])

    def _attempts(self, candidate: str) -> list[Progress]:
        keys = ((candidate, attempt) for attempt in (0, 1))
        return [self.progress[key] for key in keys if key in self.progress]

    def _told_full(self, event: Event) -> None:
        candidate, told = event["candidate"], _told(event)
        if candidate not in self.table:
            self.table.open(candidate, round=0)
            self.starts.append(candidate)
        self._record(candidate, told)
        self.whole.add(candidate)
        for progress in self._attempts(candidate):
            progress.recount(self.table, self.pool)

    def _decide(self, decision: dict[str, Any]) -> None:
        rule = self.protocol.estimator
        decided = rule.decide(decision["means"]) if isinstance(rule, EstimatorRule) else rule
        same = part_to_json(decided) == decision["estimator"]
        self.estimator = decided if same else part_from_json(decision["estimator"])

    def _drawn(self, event: Event) -> None:
        number, attempt = event["round"], event["attempt"]
        candidates = tuple(event["candidates"])
        draws = [tuple(Design.from_json(d, self.pool) for d in draw) for draw in event["draws"]]
        if event["decision"] is not None:
            self._decide(event["decision"])
        if attempt == 0:
            if number != len(self.rounds) + 1:
                raise EventError(f"round {number} follows round {len(self.rounds)}.")
            self.rounds.append(Round(number, candidates))
            for candidate in candidates:
                self.table.open(candidate, round=number)
        self.rounds[number - 1].attempts = attempt
        tasks = [tuple(task for design in draw for task in design.tasks) for draw in draws]
        asked = [frozenset(drawn) for drawn in tasks]
        for index, candidate in enumerate(candidates):
            which = index if self.draw_per == "candidate" else 0
            self.progress[candidate, attempt] = Progress(
                Assignment(
                    candidate=candidate,
                    round=number,
                    attempt=attempt,
                    tasks=tasks[which],
                    trials=tuple(range(attempt * self.trials, (attempt + 1) * self.trials)),
                    designs=draws[which],
                ),
                asked[which],
            )

    def _told(self, event: Event) -> None:
        told = _told(event)
        progress = self.progress[event["candidate"], event["attempt"]]
        if not progress.asked.issuperset(told.tasks):
            raise EventError("it tells tasks that were not asked.")
        if not set(told.trials) <= set(progress.assignment.trials):
            raise EventError("it tells trials that were not asked.")
        self._record(event["candidate"], told)
        progress.told += len(told.tasks)
        progress.scored += len(told.tasks) - len(told.missing)
        progress.look(self.table)
        self.evaluations += len(told.tasks)

    def _record(self, candidate: str, told: Told) -> None:
        positions, trials = self.pool.positions(told.tasks), np.array(told.trials, dtype=np.int64)
        if self.table.find(candidate, positions, trials)[0].any():
            raise EventError("it tells outcomes that are already recorded.")
        self.table.add(candidate, positions, trials, told.values())
        for at, reason in told.missing.items():
            key = candidate, int(positions[int(at)]), told.trials[int(at)]
            self.reasons[key] = reason
        self.usage += told.total_usage()


def _told(event: dict[str, Any]) -> Told:
    return Told(**{name: event[name] for name in Told.__dataclass_fields__})
