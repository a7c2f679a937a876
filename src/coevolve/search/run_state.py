"""The state of a run: a fold over its events."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from coevolve.core.events import Event
from coevolve.core.pool import Pool
from coevolve.core.selector import Selector
from coevolve.errors import EventError
from coevolve.search.budget import SCHEMA, Ledger, Settings, Spending
from coevolve.search.candidate import Candidate
from coevolve.search.wave import Durations, Tally, Wave


class Status(StrEnum):
    """How far a candidate has come.

    >>> Status.REFUSED.value
    'refused'
    """

    PROPOSED = "proposed"
    BROKEN = "broken"
    CHECKED = "checked"
    READY = "ready"
    EVALUATED = "evaluated"
    REFUSED = "refused"


@dataclass(slots=True, kw_only=True)
class CandidateState:
    """A candidate and how far it has come; `reason` says why it was refused.

    A broken one failed its check, and waits to be mended by its proposer, which happens once.
    `leaks` are the places where it speaks of tasks it may not know.
    """

    candidate: Candidate
    status: Status = Status.PROPOSED
    reason: str = ""
    state: str | None = None
    leaks: tuple[str, ...] = ()
    repaired: bool = False

    def refuse(self, reason: str) -> None:
        """Set it aside for good, before any trial of it."""
        self.status, self.reason = Status.REFUSED, reason


@dataclass(slots=True, kw_only=True)
class RunRound:
    """One round of the run: what was proposed for it, and whether it is over.

    `note` says what went wrong with the proposal, if anything; `repairs` are the transcripts of
    what was mended, by candidate; `told_at` is the number of the last event that told outcomes
    of it.
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


@dataclass(slots=True, kw_only=True)
class RunState:
    """All that is known of a run; only `effects.apply` changes it.

    `cut` is the last wave if a budget ended it before its last trial.
    `session_at` is the number of the last event "session"; `empty_rounds` counts the rounds in a
    row, up to the last one and in this session, without a candidate that could be evaluated.
    """

    name: str
    settings: Settings
    selector: Selector
    trials: int
    test: Selector | None
    rescored: Selector
    config: dict[str, Any]
    candidates: dict[str, CandidateState] = field(default_factory=dict)
    rounds: list[RunRound] = field(default_factory=list)
    wave: Wave | None = None
    cut: Wave | None = None
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
        test = event["test"] and Selector(
            Pool.from_json(event["test"]), protocol="full", trials=trials
        )
        state = cls(
            name=event["name"],
            settings=Settings.from_json(event["settings"]),
            selector=selector,
            trials=trials,
            test=test,
            rescored=Selector(selector.pool, protocol="full", trials=trials),
            config=event["config"],
            totals=Tally(durations=Durations.of(selector.pool)),
            candidates={start.name: CandidateState(candidate=start) for start in starts},
        )
        state.note(event)
        return state

    @property
    def starts(self) -> list[str]:
        """Names of the starting harnesses."""
        return [name for name, entry in self.candidates.items() if entry.candidate.round == 0]

    @property
    def current_round(self) -> RunRound | None:
        """The first round that is not over: one of the last two, the last being proposed ahead."""
        return next((round for round in self.rounds[-2:] if not round.settled), None)

    @property
    def tally(self) -> Tally:
        """What all trials came to, those of the wave under way included."""
        both = Tally(durations=Durations(costs=self.totals.durations.costs))
        both.add(self.totals)
        if self.wave is not None:
            both.add(self.wave.tally)
        return both

    @property
    def evaluating(self) -> Ledger:
        """What evaluating has spent."""
        both = Ledger()
        both.add(self.totals.ledger)
        if self.wave is not None:
            both.add(self.wave.tally.ledger)
        return both

    @property
    def durations(self) -> Durations:
        """How long trials take, as of before the wave under way."""
        return self.totals.durations

    def spending(self, clock: float | None = None) -> Spending:
        """What the run has spent so far, `clock` seconds into it."""
        evaluating = self.evaluating
        return Spending(
            trials=evaluating.trials,
            tokens=self.proposing.tokens + evaluating.tokens,
            dollars=self.proposing.dollars + evaluating.dollars,
            hours=max(clock or 0.0, self.clock) / 3600,
        )

    def note(self, event: Event) -> None:
        """Note how far the state has come."""
        self.events = max(self.events, event["seq"] + 1)
        if event["clock"] > self.clock:
            self.clock = event["clock"]
