"""The state of a run: its candidates, rounds, wave under way, and what it has spent."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from coevolve.core.estimators import Estimate
from coevolve.core.events import Event
from coevolve.core.outcomes import Missing
from coevolve.core.pool import Pool
from coevolve.core.selector import Selector
from coevolve.errors import EventError, NoOutcomeError
from coevolve.search.budget import SCHEMA, Ledger, Settings, Spending
from coevolve.search.candidate import Candidate
from coevolve.search.past_outcomes import PastOutcomes
from coevolve.search.request import Requested
from coevolve.search.trials import Cell
from coevolve.search.wave import Durations, Tally, Wave

EVALUATION = "evaluate"
"""The key of a recorded configuration if the journal is that of an evaluation, not of a run."""


def full_selector(pool: Pool, trials: int) -> Selector:
    """A selector of candidates that are scored on every task of a pool."""
    return Selector(pool, protocol="full", trials=trials)


class Status(StrEnum):
    """The progress of a candidate.

    >>> Status.REFUSED.value
    'refused'
    """

    PROPOSED = "proposed"
    BROKEN = "broken"
    """It failed its check and waits for repair."""
    CHECKED = "checked"
    READY = "ready"
    EVALUATED = "evaluated"
    REFUSED = "refused"


@dataclass(slots=True, kw_only=True)
class CandidateState:
    """A candidate and its progress; `reason` says why it was refused.

    `state` is the address of what it has learned, `leaks` are the places where it mentions tasks
    it must not know. A candidate is sent back for repair once. `preparing` is the cost of its
    checks and its preparation.
    """

    candidate: Candidate
    status: Status = Status.PROPOSED
    reason: str = ""
    state: str | None = None
    leaks: tuple[str, ...] = ()
    repaired: bool = False
    preparing: Ledger = field(default_factory=Ledger)

    @property
    def name(self) -> str:
        return self.candidate.name

    @property
    def start(self) -> bool:
        """Whether it is a starting harness."""
        return self.candidate.round == 0

    def refuse(self, reason: str) -> None:
        """Exclude it before any of its trials."""
        self.status, self.reason = Status.REFUSED, reason

    def to_json(self) -> dict[str, Any]:
        """A candidate that was just proposed, as the event "proposed" lists it."""
        return {
            "candidate": self.candidate.to_json(),
            "refused": self.reason,
            "leaks": list(self.leaks),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The candidate `to_json` described."""
        candidate = Candidate.from_json(data["candidate"])
        known = cls(candidate=candidate, leaks=tuple(data.get("leaks", ())))
        if data["refused"]:
            known.refuse(data["refused"])
        return known


@dataclass(slots=True, kw_only=True)
class RunRound:
    """One round of a run: what was proposed for it, and whether it is over.

    `note` says what went wrong with the proposal, if anything; `repairs` has the transcripts of
    repairs by candidate; `told_at` is the number of the last event that told outcomes of it.
    """

    number: int
    names: tuple[str, ...] = ()
    asked: bool = False
    settled: bool = False
    note: str = ""
    transcript: str | None = None
    repairs: dict[str, str] = field(default_factory=dict)
    trials: int = 0
    missing: int = 0
    told_at: int = -1

    @property
    def thin(self) -> bool:
        """Whether under half of its outcomes have a score."""
        return 2 * self.missing > self.trials


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of the benchmark that the operator accepted: its parts, and when.

    The `trials` before it, up to `round`, were scored by another version.
    """

    parts: tuple[str, ...]
    round: int
    trials: int


@dataclass(slots=True, kw_only=True)
class RunState:
    """The state of a run; only `effects.apply` changes it.

    `proposing_since` is the number of the event that began the proposal under way, `session_at`
    that of the last event "session". `cut` is the last wave if a budget ended it before its last
    trial. `closed` are the waves that rescored a winner or ran the sealed test. `empty_rounds`
    counts the rounds in a row, up to the last one and in this session, without a candidate that
    could be evaluated. `fingerprint` has the hashes of everything that can alter scores, by part;
    `changes` are those that were accepted. `earlier` are the settings before each extension.
    `past` are the outcomes that were imported. `requested` has, by split, the evaluations that
    the operator requested, which took `requested_seconds`, the last until `requested_clock`.
    """

    name: str
    settings: Settings
    selector: Selector
    trials: int
    test: Selector | None
    rescored: Selector
    config: dict[str, Any]
    candidates: dict[str, CandidateState]
    rounds: list[RunRound] = field(default_factory=list)
    wave: Wave | None = None
    cut: Wave | None = None
    closed: list[Wave] = field(default_factory=list)
    proposing: Ledger = field(default_factory=Ledger)
    totals: Tally
    proposing_since: int | None = None
    exhausted: str | None = None
    chosen: dict[str, Any] | None = None
    finishing: bool = False
    stopped: dict[str, Any] | None = None
    ended: dict[str, Any] | None = None
    events: int = 0
    clock: float = 0.0
    sessions: int = 0
    session_at: int = -1
    empty_rounds: int = 0
    fingerprint: dict[str, str] | None = None
    changes: list[Change] = field(default_factory=list)
    earlier: list[Settings] = field(default_factory=list)
    past: PastOutcomes = field(default_factory=PastOutcomes)
    requested: dict[str, Requested] = field(default_factory=dict)
    requested_seconds: float = 0.0
    requested_clock: float = 0.0

    @classmethod
    def opened(cls, event: Event) -> "RunState":
        """The state after the first event, which must be "opened"."""
        if event["type"] != "opened":
            raise EventError(f"the first event must be 'opened', got {event['type']!r}.")
        if event["schema"] != SCHEMA:
            raise EventError(
                f"the run has event schema {event['schema']!r}, written by a newer version of "
                f"coevolve; this version reads schema {SCHEMA}. Upgrade with `pip install "
                "--upgrade task-coevolve`, then open the run again."
            )
        selector = Selector.from_events([event["selector"]])
        starts = [Candidate.from_json(start) for start in event["starts"]]
        trials = event["selector"]["trials"]
        test = event["test"] and full_selector(Pool.from_json(event["test"]), trials)
        state = cls(
            name=event["name"],
            settings=Settings.from_json(event["settings"]),
            selector=selector,
            trials=trials,
            test=test,
            rescored=full_selector(selector.pool, trials),
            config=event["config"],
            totals=Tally(durations=Durations.of(selector.pool)),
            candidates={start.name: CandidateState(candidate=start) for start in starts},
        )
        state.note(event)
        return state

    def note(self, event: Event) -> None:
        """Note the number and the clock of an event."""
        self.events = max(self.events, event["seq"] + 1)
        self.clock = max(self.clock, event["clock"])

    @property
    def starts(self) -> list[str]:
        """Names of the starting harnesses."""
        return [name for name, known in self.candidates.items() if known.start]

    @property
    def evaluation(self) -> bool:
        """Whether the journal is that of an evaluation: harnesses without a search."""
        return EVALUATION in self.config

    @property
    def tested(self) -> list[str]:
        """The generated candidates that the sealed test was used for, finished or not."""
        names: list[str] = [] if self.test is None else [str(n) for n in self.test.starts]
        if self.wave is not None and self.wave.kind == "test":
            names += self.wave.cells
        if "test" in self.requested:
            names += self.requested["test"].wave.cells
        return [name for name in dict.fromkeys(names) if not self.candidates[name].start]

    @property
    def rolling(self) -> bool:
        """Whether the search has no rounds: candidates are proposed while others are evaluated."""
        return self.settings.in_flight is not None

    @property
    def current_round(self) -> RunRound | None:
        """The first round that is not over; the round after it may be proposed already.

        In a search without rounds, the last proposal, until it is over.
        """
        last = self.rounds[-1:] if self.rolling else self.rounds[-2:]
        return next((round for round in last if not round.settled), None)

    @property
    def open_rounds(self) -> list[RunRound]:
        """The rounds that are not over."""
        return [round for round in self.rounds if not round.settled]

    def round_of(self, name: str) -> RunRound:
        """The round that a candidate was proposed for."""
        return self.rounds[self.candidates[name].candidate.round - 1]

    @property
    def in_flight(self) -> list[str]:
        """The candidates of the open rounds that are under way."""
        busy = set() if self.wave is None else self.wave.under_way
        names = [name for round in self.open_rounds for name in round.names]
        ended = (Status.REFUSED, Status.EVALUATED)
        return [n for n in names if n in busy or self.candidates[n].status not in ended]

    @property
    def searched(self) -> bool:
        """Whether a search without rounds has nothing more to propose or to tell."""
        over = len(self.rounds) >= self.settings.rounds and not self.open_rounds
        return over and self.wave is None and self.proposing_since is None

    def estimate(self, name: str) -> Estimate | None:
        """The estimate of a candidate's full-set score, if it has any outcome."""
        if self.candidates[name].status != Status.EVALUATED:
            return None
        try:
            return self.selector.estimate(name)
        except NoOutcomeError:
            return None

    @property
    def best_start(self) -> str:
        """The starting harness with the highest score; the first one before any score."""
        known = {name: found.value for name in self.starts if (found := self.estimate(name))}
        return max(known, key=known.__getitem__, default=self.starts[0])

    @property
    def tally(self) -> Tally:
        """The totals of all trials, including those of the current wave."""
        both = Tally(durations=Durations(costs=self.durations.costs))
        both.add(self.totals)
        if self.wave is not None:
            both.add(self.wave.tally)
        return both

    @property
    def durations(self) -> Durations:
        """How long trials took before the current wave."""
        return self.totals.durations

    def closing_outcomes(self, kind: str, names: Iterable[str]) -> dict[Cell, float | Missing]:
        """Outcomes of a sealed test, or of rescoring, that were recorded for some candidates."""
        found = [wave.done for wave in self.closed if wave.kind == kind]
        wanted = set(names)
        return {cell: s for done in found for cell, s in done.items() if cell.candidate in wanted}

    @property
    def evaluating(self) -> Ledger:
        """What evaluating has spent."""
        both = Ledger()
        both.add(self.totals.ledger)
        if self.wave is not None:
            both.add(self.wave.tally.ledger)
        return both

    def spending(self, clock: float | None = None) -> Spending:
        """What the run has spent so far, `clock` seconds into it."""
        seconds = max(clock or 0.0, self.clock) - self.requested_seconds
        return Spending.of_run(self.proposing, self.evaluating, seconds)


def unready(state: RunState) -> list[CandidateState]:
    """The candidates to check or prepare."""
    current = state.current_round
    names = state.starts if current is None else current.names
    known = [state.candidates[name] for name in names]
    return [one for one in known if one.status in (Status.PROPOSED, Status.CHECKED)]


def ready(state: RunState) -> list[str]:
    """The candidates of the current round that can be evaluated."""
    return _in_round(state, Status.READY)


def broken(state: RunState) -> list[str]:
    """The candidates of the current round to repair."""
    return _in_round(state, Status.BROKEN)


def _in_round(state: RunState, status: Status) -> list[str]:
    names = () if state.current_round is None else state.current_round.names
    return [name for name in names if state.candidates[name].status == status]
