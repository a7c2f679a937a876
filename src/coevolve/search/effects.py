"""What each event does to the state of a run."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from coevolve.core.events import MISFITS, Event, fitting, misfit
from coevolve.core.outcomes import Missing, Told
from coevolve.core.pool import Pool
from coevolve.errors import EventError
from coevolve.search.budget import Budget
from coevolve.search.candidate import Candidate
from coevolve.search.run_state import CandidateState, RunRound, RunState, Status
from coevolve.search.wave import Group, Wave


def apply(state: RunState, event: Event) -> None:
    """Take in the next event: the only way a state changes."""
    handler = _HANDLERS.get(event["type"])
    if handler is None:
        raise EventError(f"event {event['seq']} has the unknown type {event['type']!r}.")
    try:
        handler(state, event)
    except MISFITS as error:
        raise misfit(event, error) from error
    state.note(event)


def _session(state: RunState, event: Event) -> None:
    state.sessions += 1
    state.session_at, state.empty_rounds = event["seq"], 0
    state.stopped = None


def _checked(state: RunState, event: Event) -> None:
    entry = state.candidates[event["candidate"]]
    state.totals.ledger.spend(event["usage"])
    fault = event["fault"]
    if fault is None:
        entry.status = Status.CHECKED
        return
    entry.refuse(f"check failed: {fault['reason']}")
    mendable = entry.candidate.round > 0 and fault["blame"] == "candidate"
    if state.settings.repair and mendable and not entry.repaired:
        entry.status = Status.BROKEN
    _ready(state)


def _repaired(state: RunState, event: Event) -> None:
    """Take the mended files, or set the candidate aside for what its check said."""
    entry, round = state.candidates[event["candidate"]], state.current_round
    state.proposing.spend(event["usage"])
    entry.repaired = True
    if round is not None:
        if event["transcript"] is not None:
            round.repairs[entry.candidate.name] = event["transcript"]
        if event["note"]:
            said = f"Mending {entry.candidate.name}: {event['note']}"
            round.note = f"{round.note} {said}".lstrip()
    if event["to"] is None:
        entry.refuse(entry.reason)
    else:
        entry.candidate = Candidate.from_json(event["to"])
        entry.leaks = tuple(event["leaks"])
        entry.status, entry.reason = Status.PROPOSED, ""
        if event["refused"]:
            entry.refuse(event["refused"])


def _prepared(state: RunState, event: Event) -> None:
    entry = state.candidates[event["candidate"]]
    state.totals.ledger.spend(event["usage"])
    if event["fault"] is not None:
        entry.refuse(f"preparing failed: {event['fault']['reason']}")
    else:
        entry.status, entry.state = Status.READY, event["state"]
    _ready(state)


def _ready(state: RunState) -> None:
    """Begin Phase 0 when every starting harness is ready."""
    if state.rounds:
        return
    starts = [entry for entry in state.candidates.values() if entry.candidate.round == 0]
    if all(entry.status == Status.READY for entry in starts):
        state.wave = _whole(state, "start", state.starts, state.selector.pool)


def _whole(state: RunState, kind: Any, names: Iterable[str], pool: Pool) -> Wave:
    trials = tuple(range(state.trials))
    groups = tuple(Group(candidate=n, tasks=pool.tasks, trials=trials) for n in names)
    parts = tuple(frozenset(pool.tasks[i] for i in pool.members(p)) for p in pool.names)
    return Wave(kind=kind, groups=groups, parts=parts)


def _proposing(state: RunState, event: Event) -> None:
    state.proposing_since = event["seq"]


def _proposed(state: RunState, event: Event) -> None:
    state.proposing_since = None
    state.proposing.spend(event["usage"])
    round = RunRound(number=event["round"], transcript=event["transcript"], note=event["note"])
    for row in event["candidates"]:
        candidate = Candidate.from_json(row["candidate"])
        leaks = tuple(row.get("leaks", ()))
        state.candidates[candidate.name] = entry = CandidateState(candidate=candidate, leaks=leaks)
        if row["refused"]:
            entry.refuse(row["refused"])
    round.names = tuple(row["candidate"]["name"] for row in event["candidates"])
    state.rounds.append(round)


def _asked(state: RunState, event: Event) -> None:
    for drawn in event["events"]:
        state.selector.follow(drawn)
    state.finishing = event["final"]
    if state.current_round is not None:
        state.current_round.asked = True
    groups = tuple(
        Group(candidate=a.candidate, tasks=a.tasks, trials=a.trials, assignment=a)
        for a in state.selector.outstanding()
    )
    state.wave = Wave(kind="round", groups=groups)


def _outcome(state: RunState, event: Event) -> None:
    _waiting(state).take(event)


def _failed(state: RunState, event: Event) -> None:
    _waiting(state).failed(event)


def _reopened(state: RunState, event: Event) -> None:
    _waiting(state).reopen(event["candidates"], event["seq"])


def _told(state: RunState, event: Event) -> None:
    """Close the wave: tell the selector what came out, in the order it was asked.

    The outcomes are known from their own events, or else from this one alone.
    """
    wave = _waiting(state)
    if wave.untouched:
        wave.restore(event)
    elif wave.to_json() != {name: event[name] for name in ("scores", "missing", "tally")}:
        raise EventError("it does not sum up the outcomes before it.")
    state.wave, round = None, state.current_round
    state.totals.add(wave.tally)
    if wave.kind in ("start", "round"):
        state.cut = wave if wave.open else None
    if wave.kind == "start" and not wave.complete:
        return
    for group in wave.groups:
        told = wave.told(group)
        _tell(state, wave, group, told, event["rest"])
        if told.tasks:
            state.candidates[group.candidate].status = Status.EVALUATED
        if wave.kind == "round" and round is not None:
            round.trials += len(told.tasks)
            round.missing += len(told.missing)
            round.told_at = event["seq"]
    state.selector.forget_events()
    if wave.kind == "rescore":
        state.wave = _test_wave(state)


def _tell(state: RunState, wave: Wave, group: Group, told: Told, rest: str) -> None:
    if group.assignment is not None:
        state.selector.tell(group.assignment, told)
        return
    whole = {"rescore": state.rescored, "test": state.test}
    selector = whole.get(wave.kind, state.selector)
    if selector is None:
        raise EventError("it tells outcomes of a sealed test, and there is none.")
    selector.tell_full(group.candidate, wave.told(group, rest=rest) if rest else told)
    selector.forget_events()


def _settled(state: RunState, event: Event) -> None:
    round = state.current_round
    if round is None or round.number != event["round"]:
        raise EventError(f"round {event['round']} is not the one under way.")
    round.settled = True
    state.empty_rounds = 0 if round.asked else state.empty_rounds + 1


def _exhausted(state: RunState, event: Event) -> None:
    state.exhausted = event["cap"]


def _chosen(state: RunState, event: Event) -> None:
    state.chosen = _plain(event)
    winner = event["candidate"]
    known = (*state.starts, *state.rescored.starts, None)
    if state.settings.rescore and winner not in known:
        state.wave = _whole(state, "rescore", [winner], state.rescored.pool)
    else:
        state.wave = _test_wave(state)


def _test_wave(state: RunState) -> Wave | None:
    """The sealed test of the starting harnesses and the winner, if there is one of each.

    A run that was extended has tested some of them before.
    """
    winner = None if state.chosen is None else state.chosen["candidate"]
    if state.test is None or winner is None:
        return None
    names = [n for n in dict.fromkeys([*state.starts, winner]) if n not in state.test.starts]
    return _whole(state, "test", names, state.test.pool) if names else None


def _stopped(state: RunState, event: Event) -> None:
    state.stopped = _plain(event)


def _ended(state: RunState, event: Event) -> None:
    state.ended = _plain(event)


def _extended(state: RunState, event: Event) -> None:
    """Take the new limits; a run that had ended continues where they ended it."""
    budget = Budget.from_json(event["budget"])
    state.settings = replace(state.settings, rounds=event["rounds"], budget=budget)
    if state.ended is None:
        return
    state.ended = state.chosen = state.exhausted = None
    state.finishing = False
    if state.cut is None:
        return
    state.wave, turn = state.cut.continued(), state.current_round
    if state.cut.kind == "round" and turn is not None:  # counted again when the rest is told
        turn.trials -= len(state.cut.done)
        turn.missing -= sum(isinstance(score, Missing) for score in state.cut.done.values())
    state.cut = None


def _waiting(state: RunState) -> Wave:
    if state.wave is None:
        raise EventError("it tells an outcome while none is waited for.")
    return state.wave


_STAMPS = frozenset({"seq", "type", "at", "clock", "seal"})

_HANDLERS: dict[str, Callable[[RunState, Event], None]] = {
    "session": _session,
    "checked": _checked,
    "prepared": _prepared,
    "proposing": _proposing,
    "proposed": _proposed,
    "repaired": _repaired,
    "asked": _asked,
    "outcome": _outcome,
    "failed": _failed,
    "reopened": _reopened,
    "told": _told,
    "settled": _settled,
    "exhausted": _exhausted,
    "chosen": _chosen,
    "stopped": _stopped,
    "ended": _ended,
    "extended": _extended,
}


def _plain(event: Event) -> dict[str, Any]:
    """What an event says, without when it was recorded."""
    return {key: value for key, value in event.items() if key not in _STAMPS}


def fold(events: Iterable[Event]) -> RunState:
    """The state of the run that these events record, from the first on."""
    lines = iter(events)
    first = next(lines, None)
    if first is None:
        raise EventError("the journal has no events: the run was never opened.")
    with fitting(first):
        state = RunState.opened(first)
    for event in lines:
        apply(state, event)
    return state
