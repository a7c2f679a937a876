"""What happens in a run, as one line each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from coevolve.cli.words import duration, of_cap, plural, score
from coevolve.core.events import Event
from coevolve.search.loop import estimate_json
from coevolve.search.proposing import best_start, estimate_of
from coevolve.search.report import rescored, tested
from coevolve.search.run_state import RunState, Status

QUIET = 60.0
"""Seconds of trials after which a line says how far they are."""


@dataclass(slots=True)
class Narrator:
    """Turns events into lines for people; `told` is called after each event had its effect."""

    state: RunState
    phase_0: bool = False
    rescored: int = 0
    last: float = 0.0

    def __post_init__(self) -> None:
        self.phase_0 = bool(self.state.selector.starts)
        self.rescored = len(self.state.rescored.starts)
        self.last = self.state.clock

    def told(self, event: Event) -> Iterator[str]:
        """The lines an event deserves, most often none."""
        for text in _TELL.get(event["type"], _nothing)(self, event):
            self.last = event["clock"]
            yield f"[{duration(event['clock'])}] {text}"

    def session(self, event: Event) -> Iterator[str]:
        """A session began."""
        state = self.state
        again = "" if state.sessions == 1 else f", session {state.sessions}"
        test = "" if state.test is None else f", {len(state.test.pool)} sealed"
        yield (
            f"{state.name}{again}: {plural(len(state.selector.pool), 'task')}{test}, "
            f"{plural(state.settings.rounds, 'round')} of {state.settings.candidates}, protocol "
            f"{state.selector.protocol.name}, {plural(event['capacity'], 'worker')}, "
            f"isolation {event['isolation']}"
        )
        if event["isolation"] == "process":
            yield (
                "warning: candidates run in plain processes, which can read your files, answers "
                "included, and use the network; install bubblewrap, or trust them"
            )

    def readied(self, event: Event) -> Iterator[str]:
        """A candidate was checked or prepared."""
        if event["fault"] is not None:
            entry = self.state.candidates[event["candidate"]]
            back = entry.status == Status.BROKEN
            what = "gives back" if back else "refused"
            yield f"{what} {event['candidate']}: {entry.reason}"

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
        """A candidate came back to its check, or did not."""
        yield f"{event['candidate']} was {'mended' if event['to'] else 'not mended'}"
        yield from self._judged(event["candidate"], event)
        if event["note"]:
            yield f"note: {event['note']}"

    def _judged(self, name: str, row: Event) -> Iterator[str]:
        """What speaks against a candidate before it is checked."""
        if row["refused"]:
            yield f"refused {name}: {row['refused']}"
        elif leaks := row["leaks"]:
            more = f" (and {len(leaks) - 1} more)" if len(leaks) > 1 else ""
            yield f"warning: {name} may know answers: {leaks[0]}{more}"

    def outcome(self, event: Event) -> Iterator[str]:
        """A trial has an outcome."""
        wave = self.state.wave
        if wave is not None and event["clock"] - self.last >= QUIET:
            yield f"{len(wave.done):,} of {plural(wave.size, 'trial')} done"

    def closed(self, event: Event) -> Iterator[str]:
        """A wave was told; the first one is Phase 0."""
        if not self.phase_0 and self.state.selector.starts:
            self.phase_0 = True
            scores = ", ".join(f"{name} {self._score(name)}" for name in self.state.starts)
            yield f"phase 0 done: {scores}"
        for name in self.state.rescored.starts[self.rescored :]:
            self.rescored += 1
            full = rescored(self.state, name)
            shown = "missing" if full is None else f"{full:.3f}"
            yield f"{name} on every validation task: {shown}"

    def reopened(self, event: Event) -> Iterator[str]:
        """Too much of a starting harness is missing."""
        yield f"running once more what is missing of {', '.join(event['candidates'])}"

    def settled(self, event: Event) -> Iterator[str]:
        """A round is over."""
        turn = self.state.rounds[event["round"] - 1]
        names = [name for name in turn.names if estimate_of(self.state, name) is not None]
        scores = ", ".join(f"{name} {self._score(name)}" for name in names) or "no candidate"
        missing = f", {turn.missing} of {turn.trials} missing" if turn.missing else ""
        thin = " (under half of its outcomes have a score)" if turn.thin else ""
        best = f"; best {self._best()}" if self.state.selector.starts else ""
        yield f"round {turn.number} settled: {scores}{missing}{thin}{best}"

    def exhausted(self, event: Event) -> Iterator[str]:
        """A cap is reached."""
        spent = of_cap(event["cap"], event["spent"][event["cap"]])
        cap = getattr(self.state.settings.budget, event["cap"])
        if cap is not None and event["spent"][event["cap"]] < cap:
            most = of_cap(event["cap"], cap)
            yield f"budget of {event['cap']}: {spent} of {most} spent; the next step may pass it"
        else:
            yield f"budget of {event['cap']} reached: {spent} spent"

    def chosen(self, event: Event) -> Iterator[str]:
        """The final choice was made."""
        if event["candidate"] is None:
            yield f"chosen: nobody, {event['why']}"
        else:
            yield f"chosen: {event['candidate']} {score(event['estimate'])}, {event['why']}"

    def ended(self, event: Event) -> Iterator[str]:
        """The run is over."""
        if self.state.test is not None and self.state.test.starts:
            values = [(name, tested(self.state, name)) for name in self.state.test.starts]
            scores = [f"{n} {'missing' if v is None else format(v, '.3f')}" for n, v in values]
            yield f"sealed test: {', '.join(scores)}"
        yield f"ended: {event['why']}"

    def _best(self) -> str:
        generated = [n for n in self.state.selector.candidates if estimate_of(self.state, n)]
        name = self.state.selector.best().candidate if generated else best_start(self.state)
        return f"{name} {self._score(name).partition(' ')[0]}"

    def _score(self, name: str) -> str:
        estimate = estimate_of(self.state, name)
        return "?" if estimate is None else score(estimate_json(estimate))


def _nothing(narrator: Narrator, event: Event) -> Iterator[str]:
    yield from ()


_TELL: dict[str, Callable[[Narrator, Event], Iterator[str]]] = {
    "session": Narrator.session,
    "checked": Narrator.readied,
    "prepared": Narrator.readied,
    "proposed": Narrator.proposed,
    "repaired": Narrator.repaired,
    "outcome": Narrator.outcome,
    "reopened": Narrator.reopened,
    "told": Narrator.closed,
    "settled": Narrator.settled,
    "exhausted": Narrator.exhausted,
    "chosen": Narrator.chosen,
    "ended": Narrator.ended,
}
