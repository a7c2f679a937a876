"""The state of a run: a fold over its events."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from coevolve.core.events import MISFITS, Event, misfit
from coevolve.core.pool import Pool
from coevolve.core.results import Told
from coevolve.core.selector import Selector
from coevolve.errors import EventError
from coevolve.search.budget import Ledger, Spending
from coevolve.search.candidate import Candidate
from coevolve.search.entry import Entry, Status, Turn
from coevolve.search.pace import Pace
from coevolve.search.settings import SCHEMA, Settings
from coevolve.search.tally import Tally
from coevolve.search.wave import Group, Wave


@dataclass(slots=True, kw_only=True)
class RunState:
    """All that is known of a run. `apply` is the only way it changes."""

    name: str
    settings: Settings
    selector: Selector
    trials: int
    test: Selector | None
    config: dict[str, Any]
    entries: dict[str, Entry] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    wave: Wave | None = None
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

    @classmethod
    def opened(cls, event: Event) -> "RunState":
        """The state after the first event, which must be "opened"."""
        if event["type"] != "opened":
            raise EventError(f"the first event must be 'opened', got {event['type']!r}.")
        if event["schema"] != SCHEMA:
            raise EventError(f"a run of schema {event['schema']!r}; this is schema {SCHEMA}.")
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
            config=event["config"],
            totals=Tally(pace=Pace.of(selector.pool)),
            entries={start.name: Entry(candidate=start) for start in starts},
        )
        state.note(event)
        return state

    @property
    def starts(self) -> list[str]:
        """Names of the starting harnesses."""
        return [name for name, entry in self.entries.items() if entry.candidate.round == 0]

    @property
    def turn(self) -> Turn | None:
        """The first round that is not over: one of the last two, the last being proposed ahead."""
        return next((turn for turn in self.turns[-2:] if not turn.settled), None)

    @property
    def tally(self) -> Tally:
        """What all trials came to, those of the wave under way included."""
        if self.wave is None:
            return self.totals
        both = Tally(pace=Pace(costs=self.totals.pace.costs))
        both.add(self.totals)
        both.add(self.wave.tally)
        return both

    @property
    def evaluating(self) -> Ledger:
        """What evaluating has spent."""
        both = Ledger()
        for ledger in (self.totals.ledger, *([self.wave.tally.ledger] if self.wave else [])):
            both.add(ledger)
        return both

    @property
    def pace(self) -> Pace:
        """How long trials take, as of before the wave under way."""
        return self.totals.pace

    @property
    def dearest(self) -> Spending:
        """The most a single trial has cost."""
        paces = [self.totals.pace, *([self.wave.tally.pace] if self.wave else [])]
        return Spending(
            trials=1,
            tokens=max(pace.tokens for pace in paces),
            dollars=max(pace.dollars for pace in paces),
        )

    def spending(self, clock: float | None = None) -> Spending:
        """What the run has spent so far."""
        seconds = self.clock if clock is None else max(clock, self.clock)
        return Spending.of(self.proposing, self.evaluating, seconds)

    def apply(self, event: Event) -> None:
        """Take in the next event."""
        handler = _HANDLERS.get(event["type"])
        if handler is None:
            raise EventError(f"event {event['seq']} has the unknown type {event['type']!r}.")
        try:
            handler(self, event)
        except MISFITS as error:
            raise misfit(event, error) from error
        self.note(event)

    def note(self, event: Event) -> None:
        """Note how far the state has come."""
        self.events = max(self.events, event["seq"] + 1)
        if event["clock"] > self.clock:
            self.clock = event["clock"]

    def _session(self, event: Event) -> None:
        self.sessions += 1
        self.stopped = None

    def _checked(self, event: Event) -> None:
        entry = self.entries[event["candidate"]]
        self._spend(event)
        if event["fault"] is not None:
            entry.refuse(f"check failed: {event['fault']['reason']}")
            self._ready()
        else:
            entry.status = Status.CHECKED

    def _prepared(self, event: Event) -> None:
        entry = self.entries[event["candidate"]]
        self._spend(event)
        if event["fault"] is not None:
            entry.refuse(f"preparing failed: {event['fault']['reason']}")
        else:
            entry.status, entry.state = Status.READY, event["state"]
        self._ready()

    def _ready(self) -> None:
        """Begin Phase 0 when every starting harness is ready."""
        if self.turns:
            return
        starts = [entry for entry in self.entries.values() if entry.candidate.round == 0]
        if all(entry.status == Status.READY for entry in starts):
            self.wave = self._whole("start", self.starts, self.selector.pool)

    def _whole(self, kind: Any, names: Iterable[str], pool: Pool) -> Wave:
        trials = tuple(range(self.trials))
        groups = tuple(Group(candidate=n, tasks=pool.tasks, trials=trials) for n in names)
        return Wave(kind=kind, groups=groups)

    def _proposing(self, event: Event) -> None:
        self.proposing_since = event["seq"]

    def _proposed(self, event: Event) -> None:
        self.proposing_since = None
        self.proposing.spend(event["usage"])
        turn = Turn(number=event["round"], transcript=event["transcript"], note=event["note"])
        for row in event["candidates"]:
            candidate = Candidate.from_json(row["candidate"])
            self.entries[candidate.name] = entry = Entry(candidate=candidate)
            if row["refused"]:
                entry.refuse(row["refused"])
        turn.names = tuple(row["candidate"]["name"] for row in event["candidates"])
        self.turns.append(turn)

    def _asked(self, event: Event) -> None:
        for drawn in event["events"]:
            self.selector.follow(drawn)
        self.finishing = event["final"]
        if self.turn is not None:
            self.turn.asked = True
        groups = tuple(
            Group(candidate=a.candidate, tasks=a.tasks, trials=a.trials, assignment=a)
            for a in self.selector.outstanding()
        )
        self.wave = Wave(kind="round", groups=groups)

    def _outcome(self, event: Event) -> None:
        self._waiting().take(event)

    def _failed(self, event: Event) -> None:
        self._waiting().failed(event)

    def _told(self, event: Event) -> None:
        """Close the wave: tell the selector what came out, in the order it was asked.

        The outcomes are known from their own events, or else from this one alone.
        """
        wave = self._waiting()
        if not wave.done and not wave.tally.ledger.failed_attempts:
            wave.restore(event)
        elif wave.to_json() != {name: event[name] for name in ("scores", "missing", "tally")}:
            raise EventError("it does not sum up the outcomes before it.")
        self.wave, turn = None, self.turn
        self.totals.add(wave.tally)
        if wave.kind == "start" and not wave.complete:
            return
        for group in wave.groups:
            told = wave.told(group)
            self._tell(wave, group, told, event["rest"])
            if told.tasks:
                self.entries[group.candidate].status = Status.EVALUATED
            if wave.kind == "round" and turn is not None:
                turn.trials += len(told.tasks)
                turn.missing += len(told.missing)
        self.selector.forget_events()

    def _tell(self, wave: Wave, group: Group, told: Told, rest: str) -> None:
        if group.assignment is not None:
            self.selector.tell(group.assignment, told)
            return
        selector = self.test if wave.kind == "test" else self.selector
        if selector is None:
            raise EventError("it tells outcomes of a sealed test, and there is none.")
        selector.tell_full(group.candidate, wave.told(group, rest=rest) if rest else told)
        selector.forget_events()

    def _settled(self, event: Event) -> None:
        turn = self.turn
        if turn is None or turn.number != event["round"]:
            raise EventError(f"round {event['round']} is not the one under way.")
        turn.settled = True

    def _exhausted(self, event: Event) -> None:
        self.exhausted = event["cap"]

    def _chosen(self, event: Event) -> None:
        self.chosen = _plain(event)
        if self.test is not None and event["candidate"] is not None:
            names = dict.fromkeys([*self.starts, event["candidate"]])
            self.wave = self._whole("test", names, self.test.pool)

    def _stopped(self, event: Event) -> None:
        self.stopped = _plain(event)

    def _ended(self, event: Event) -> None:
        self.ended = _plain(event)

    def _spend(self, event: Event) -> None:
        self.totals.ledger.spend(event["usage"])

    def _waiting(self) -> Wave:
        if self.wave is None:
            raise EventError("it tells an outcome while none is waited for.")
        return self.wave


_STAMPS = frozenset({"seq", "type", "at", "clock", "seal"})

_HANDLERS: dict[str, Callable[[RunState, Event], None]] = {
    "session": RunState._session,
    "checked": RunState._checked,
    "prepared": RunState._prepared,
    "proposing": RunState._proposing,
    "proposed": RunState._proposed,
    "asked": RunState._asked,
    "outcome": RunState._outcome,
    "failed": RunState._failed,
    "told": RunState._told,
    "settled": RunState._settled,
    "exhausted": RunState._exhausted,
    "chosen": RunState._chosen,
    "stopped": RunState._stopped,
    "ended": RunState._ended,
}


def _plain(event: Event) -> dict[str, Any]:
    """What an event says, without when it was recorded."""
    return {key: value for key, value in event.items() if key not in _STAMPS}
