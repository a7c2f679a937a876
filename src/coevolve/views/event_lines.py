"""Events of a run as lines of text, for logs and terminals."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from coevolve.core.events import Event
from coevolve.formatting import CLIPPED, amount, duration, estimate, plural, score
from coevolve.search.past_outcomes import Import
from coevolve.search.run_state import RunState, Status
from coevolve.views.report import best, rescored, tested

QUIET = 60.0
"""Seconds without a line after which the next outcome reports progress."""
_MARKED = re.compile(r"[≤≥]\d")


@dataclass(slots=True)
class Narrator:
    """Turns events into lines; call `lines` with each event after it was applied to the state."""

    state: RunState
    phase_0: bool = False
    rescored: int = 0
    last: float = 0.0
    explained: bool = False

    def __post_init__(self) -> None:
        self.phase_0 = bool(self.state.selector.starts)
        self.rescored = len(self.state.rescored.starts)
        self.last = self.state.clock

    def lines(self, event: Event) -> Iterator[str]:
        """The lines for an event; most events have none."""
        for text in _LINES.get(event["type"], _nothing)(self, event):
            self.last, time = event["clock"], duration(event["clock"])
            yield f"[{time}] {text}"
            if not self.explained and _MARKED.search(text):
                self.explained = True
                yield f"[{time}] {CLIPPED}"

    def session(self, event: Event) -> Iterator[str]:
        """A session started."""
        state = self.state
        again = "" if state.sessions == 1 else f", session {state.sessions}"
        test = "" if state.test is None else f" and {len(state.test.pool)} sealed"
        rounds = plural(state.settings.rounds, "round")
        beside = "" if not state.rolling else f", {state.settings.in_flight} in flight"
        yield (
            f"{state.name}{again}: {plural(len(state.selector.pool), 'task')}{test}, {rounds} of "
            f"{plural(state.settings.candidates, 'candidate')}{beside}, protocol "
            f"{state.selector.protocol.name}, {plural(event['capacity'], 'worker')}, "
            f"isolation {event['isolation']}"
        )
        if state.sessions > 1:
            yield f"limits: {self._limits()}"
        for one in state.past.imports:
            yield f"history: {imported(one)}"
        if event["isolation"] == "process-as-root":
            yield (
                "warning: candidates run as root and can do anything on this machine. Unless you "
                "trust them, install bubblewrap: apt install bubblewrap"
            )
        if event["isolation"] == "process":
            yield (
                "warning: candidates run as plain processes. They can read your files, including "
                "the answers, and use the network. Install bubblewrap unless you trust them."
            )

    def readied(self, event: Event) -> Iterator[str]:
        """A candidate was checked or prepared."""
        if event["fault"] is not None:
            entry = self.state.candidates[event["candidate"]]
            if entry.status == Status.BROKEN:
                reason = entry.reason.removeprefix("check failed: ").rstrip(".")
                yield f"{event['candidate']} failed its check; sent back for repair: {reason}"
            else:
                yield f"{event['candidate']} refused: {entry.reason}"

    def proposed(self, event: Event) -> Iterator[str]:
        """A proposal ended."""
        names = [row["candidate"]["name"] for row in event["candidates"] if not row["refused"]]
        where = f"round {event['round']} of {self.state.settings.rounds}"
        yield f"{where}: proposed {', '.join(names) or 'nothing'}"
        for row in event["candidates"]:
            yield from self._judged(row["candidate"]["name"], row)
        if event["note"]:
            yield f"note: {event['note']}"

    def repaired(self, event: Event) -> Iterator[str]:
        """A repair ended."""
        yield f"{event['candidate']} {'repaired' if event['to'] else 'not repaired'}"
        yield from self._judged(event["candidate"], event)
        if event["note"]:
            yield f"note: {event['note']}"

    def _judged(self, name: str, row: Event) -> Iterator[str]:
        """Why a candidate is refused before its check, or a warning about its leaks."""
        if row["refused"]:
            yield f"{name} refused: {row['refused']}"
        elif leaks := row["leaks"]:
            more = f" (and {len(leaks) - 1} more)" if len(leaks) > 1 else ""
            yield f"warning: {name} may know answers: {leaks[0]}{more}"

    def outcome(self, event: Event) -> Iterator[str]:
        """A trial has an outcome."""
        wave = self.state.wave
        if wave is not None and event["clock"] - self.last >= QUIET:
            yield f"{wave.recorded:,} of {plural(wave.size, 'trial')} done"

    def requested(self, event: Event) -> Iterator[str]:
        """The operator requested an evaluation."""
        where = "the sealed test" if event["split"] == "test" else "every validation task"
        where = where if event["tasks"] is None else plural(len(event["tasks"]), "task")
        yield f"evaluating {', '.join(event['candidates'])} on {where}"

    def scored(self, event: Event) -> Iterator[str]:
        """A requested trial has an outcome."""
        wave = self.state.requested[event["split"]].wave
        if event["clock"] - self.last >= QUIET:
            yield f"{len(wave.done):,} of {plural(wave.size, 'trial')} done"
        yield from self._rescored()

    def closed(self, event: Event) -> Iterator[str]:
        """A wave ended; the first one is Phase 0."""
        if not self.phase_0 and self.state.selector.starts:
            self.phase_0 = True
            scores = ", ".join(f"{name} {self._score(name)}" for name in self.state.starts)
            yield f"phase 0 done: {scores}"
        yield from self._rescored()

    def _rescored(self) -> Iterator[str]:
        for name in self.state.rescored.starts[self.rescored :]:
            self.rescored += 1
            yield f"{name} on every validation task: {_known(rescored(self.state, name))}"

    def reopened(self, event: Event) -> Iterator[str]:
        """Missing trials of starting harnesses are run again."""
        yield f"running the missing trials of {', '.join(event['candidates'])} again"

    def settled(self, event: Event) -> Iterator[str]:
        """A round ended."""
        ended = self.state.rounds[event["round"] - 1]
        names = [name for name in ended.names if self.state.estimate(name) is not None]
        scores = ", ".join(f"{name} {self._score(name)}" for name in names) or "no candidate"
        missing = f", {ended.missing} of {ended.trials} missing" if ended.missing else ""
        thin = " (under half of its outcomes have a score)" if ended.thin else ""
        yield f"round {ended.number} done: {scores}{missing}{thin}{self._best()}"

    def imported(self, event: Event) -> Iterator[str]:
        """Past outcomes were imported."""
        yield f"history: {imported(self.state.past.imports[-1])}"

    def extended(self, event: Event) -> Iterator[str]:
        """The limits of the run were raised."""
        yield f"extended: {self._limits()}"

    def fingerprinted(self, event: Event) -> Iterator[str]:
        """The parts of the benchmark were recorded, for the first time or after a change."""
        if changed := event["changed"]:
            more = f" and {len(changed) - 3:,} more" if len(changed) > 3 else ""
            mixed = "; scores mix versions of the benchmark" if self.state.changes else ""
            yield f"warning: changed since the last session: {', '.join(changed[:3])}{more}{mixed}"
        elif self.state.sessions:
            yield (
                "note: an earlier version began this run without a fingerprint of its benchmark. "
                "It has one now; changes before this session are unknown."
            )

    def exhausted(self, event: Event) -> Iterator[str]:
        """A cap of the budget is reached, or the next step may exceed it."""
        name, spent = event["cap"], event["spent"][event["cap"]]
        cap = getattr(self.state.settings.budget, name)
        if cap is not None and spent < cap:
            yield (
                f"budget of {name}: {amount(name, spent)} of {amount(name, cap)} spent; the next "
                "step may exceed it"
            )
        else:
            yield f"budget of {name} reached: {amount(name, spent)} spent"

    def chosen(self, event: Event) -> Iterator[str]:
        """The final choice was made."""
        if event["candidate"] is None:
            yield f"chosen: none, {event['why']}"
        else:
            yield f"chosen: {event['candidate']} {estimate(event['estimate'])}, {event['why']}"

    def ended(self, event: Event) -> Iterator[str]:
        """The run ended."""
        if self.state.test is not None and self.state.test.starts:
            names = self.state.test.starts
            scores = [f"{name} {_known(tested(self.state, name))}" for name in names]
            yield f"sealed test: {', '.join(scores)}"
        yield f"ended: {event['why']}"

    def _limits(self) -> str:
        """The limits of the run, which may have been extended."""
        caps = self.state.settings.budget.to_json().items()
        known = [amount(name, cap) for name, cap in caps if cap is not None]
        return ", ".join([plural(self.state.settings.rounds, "round"), *known])

    def _best(self) -> str:
        name = best(self.state)
        found = None if name is None else self.state.estimate(name)
        return "" if found is None else f"; best {name} {score(found.value)}"

    def _score(self, name: str) -> str:
        found = self.state.estimate(name)
        return "?" if found is None else estimate(found.to_json())


def imported(one: Import) -> str:
    """What an import brought."""
    parts = [
        _rows(one.phase_0, "stands for a trial of Phase 0", "stand for trials of Phase 0"),
        _rows(one.observed, "informs the history of the tasks", "inform the history of the tasks"),
        _rows(one.known, "was known", "were known"),
        _rows(one.unscored, "has no score", "have no score"),
        _rows(
            one.left_out,
            "of another split or task is left out",
            "of other splits or tasks are left out",
        ),
    ]
    found = ", ".join(filter(None, parts))
    return f"{one.file} ({one.format}, {plural(one.rows, 'row')}): {found}"


def _rows(number: int, single: str, several: str) -> str:
    return f"{number:,} {single if number == 1 else several}" if number else ""


def _known(value: float | None) -> str:
    return "missing" if value is None else score(value)


def _nothing(narrator: Narrator, event: Event) -> Iterator[str]:
    yield from ()


_LINES: dict[str, Callable[[Narrator, Event], Iterator[str]]] = {
    "session": Narrator.session,
    "checked": Narrator.readied,
    "prepared": Narrator.readied,
    "proposed": Narrator.proposed,
    "repaired": Narrator.repaired,
    "outcome": Narrator.outcome,
    "reopened": Narrator.reopened,
    "told": Narrator.closed,
    "requested": Narrator.requested,
    "scored": Narrator.scored,
    "settled": Narrator.settled,
    "exhausted": Narrator.exhausted,
    "extended": Narrator.extended,
    "fingerprinted": Narrator.fingerprinted,
    "imported": Narrator.imported,
    "chosen": Narrator.chosen,
    "ended": Narrator.ended,
}
