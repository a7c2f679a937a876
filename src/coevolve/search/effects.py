"""What each event does to the state of a run."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal

from coevolve.core.events import MISFITS, Event, fitting, misfit
from coevolve.core.outcomes import Missing, Told
from coevolve.core.pool import Pool
from coevolve.errors import EventError
from coevolve.search.budget import Budget
from coevolve.search.candidate import Candidate
from coevolve.search.request import Requested
from coevolve.search.run_state import (
    CandidateState,
    Change,
    RunRound,
    RunState,
    Status,
    full_selector,
)
from coevolve.search.wave import Group, Wave

ADVICE = "The journal is damaged or was written by another version; run `coevolve doctor`."


def fold(events: Iterable[Event]) -> RunState:
    """The state of the run that these events record, from the first on."""
    lines = iter(events)
    first = next(lines, None)
    if first is None:
        raise EventError("the journal has no events: the run was never opened.")
    with fitting(first, ADVICE):
        state = RunState.opened(first)
    for event in lines:
        apply(state, event)
    return state


def apply(state: RunState, event: Event) -> None:
    """Apply the next event: the only way a state changes."""
    kind = event["type"]
    handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
    if handler is None:
        raise EventError(f"event {event['seq']} has the unknown type {kind!r:.80}. {ADVICE}")
    try:
        handler(state, event)
        state.note(event)
    except MISFITS as error:
        raise misfit(event, error, ADVICE) from error


def _session(state: RunState, event: Event) -> None:
    state.sessions += 1
    state.session_at, state.empty_rounds = event["seq"], 0
    state.stopped = None


def _checked(state: RunState, event: Event) -> None:
    known, fault = state.candidates[event["candidate"]], event["fault"]
    state.totals.ledger.spend(event["usage"])
    known.preparing.spend(event["usage"])
    if fault is None:
        known.status = Status.CHECKED
        return
    known.refuse(f"check failed: {fault['reason']}")
    repairable = not known.start and fault["blame"] == "candidate" and not known.repaired
    if state.settings.repair and repairable:
        known.status = Status.BROKEN
    _begin_phase_0(state)


def _prepared(state: RunState, event: Event) -> None:
    known, fault = state.candidates[event["candidate"]], event["fault"]
    state.totals.ledger.spend(event["usage"])
    known.preparing.spend(event["usage"])
    if fault is None:
        known.status, known.state = Status.READY, event["state"]
    else:
        known.refuse(f"preparing failed: {fault['reason']}")
    _begin_phase_0(state)


def _begin_phase_0(state: RunState) -> None:
    """Begin Phase 0 when every starting harness is ready."""
    starts = [known.status for known in state.candidates.values() if known.start]
    if starts and not state.rounds and all(status == Status.READY for status in starts):
        state.wave = _on_every_task(state, "start", state.starts, state.selector.pool)
        state.wave.give(state.past.given)


def _on_every_task(
    state: RunState, kind: Literal["start", "rescore", "test"], names: Iterable[str], pool: Pool
) -> Wave:
    """A wave on every task; what a wave cut by a budget has recorded is not run again."""
    trials, names = tuple(range(state.trials)), list(names)
    groups = tuple(Group(candidate=n, tasks=pool.tasks, trials=trials) for n in names)
    parts = tuple(frozenset(pool.tasks[i] for i in pool.members(p)) for p in pool.names)
    wave = Wave(kind=kind, groups=groups, parts=parts)
    wave.keep(state.closing_outcomes(kind, names))
    return wave


def _proposing(state: RunState, event: Event) -> None:
    state.proposing_since = event["seq"]


def _probed(state: RunState, event: Event) -> None:
    state.proposing.spend(event["usage"])


def _proposed(state: RunState, event: Event) -> None:
    state.proposing_since = None
    state.proposing.spend(event["usage"])
    new = [CandidateState.from_json(row) for row in event["candidates"]]
    state.candidates |= {known.name: known for known in new}
    state.rounds.append(
        RunRound(
            number=event["round"],
            names=tuple(known.name for known in new),
            transcript=event["transcript"],
            note=event["note"],
        )
    )


def _repaired(state: RunState, event: Event) -> None:
    """Use the repaired files, or refuse the candidate because its check failed."""
    known, round = state.candidates[event["candidate"]], state.current_round
    state.proposing.spend(event["usage"])
    known.repaired = True
    if round is not None:
        if event["transcript"] is not None:
            round.repairs[known.name] = event["transcript"]
        if event["note"]:
            round.note = f"{round.note} Repair of {known.name}: {event['note']}".lstrip()
    if event["to"] is None:
        known.refuse(known.reason)
        return
    known.candidate = Candidate.from_json(event["to"])
    known.leaks = tuple(event["leaks"])
    known.status, known.reason = Status.PROPOSED, ""
    if event["refused"]:
        known.refuse(event["refused"])


def _asked(state: RunState, event: Event) -> None:
    for drawn in event["events"]:
        state.selector.follow(drawn)
    state.finishing = event["final"]
    groups = tuple(
        Group(candidate=a.candidate, tasks=a.tasks, trials=a.trials, assignment=a)
        for a in state.selector.outstanding()
    )
    if state.rolling:
        _roll(state, event["events"], groups)
        return
    if state.current_round is not None:
        state.current_round.asked = True
    state.wave = Wave(kind="round", groups=groups)


def _roll(state: RunState, draws: Iterable[Event], groups: Iterable[Group]) -> None:
    """Add the trials of some draws to those under way."""
    drawn = {name: draw["kind"] for draw in draws for name in draw["candidates"]}
    for name, kind in drawn.items():
        if kind == "first":
            state.round_of(name).asked = True
            state.empty_rounds = 0
    state.wave = state.wave or Wave(kind="round", groups=(), rolling=True)
    state.wave.add([group for group in groups if group.candidate in drawn])


def _outcome(state: RunState, event: Event) -> None:
    _wave(state).take(event)


def _failed(state: RunState, event: Event) -> None:
    _wave(state).failed(event)


def _reopened(state: RunState, event: Event) -> None:
    _wave(state).reopen(event["candidates"], event["seq"])


def _wave(state: RunState) -> Wave:
    if state.wave is None:
        raise EventError("no wave of trials is under way.")
    return state.wave


_TOLD = ("scores", "missing", "unexplained", "attempts", "tally")


def _told(state: RunState, event: Event) -> None:
    """Close the wave: tell the selector its outcomes, in the order they were asked.

    The outcomes are known from their own events, or from this event alone.
    """
    wave = _wave(state)
    if wave.untouched:
        wave.restore(event)
    elif wave.to_json() != {name: event[name] for name in _TOLD if name in event}:
        raise EventError("its scores or sums differ from the outcomes before it.")
    state.wave, round = None, state.current_round
    state.totals.add(wave.tally)
    if wave.rolling:
        _tell_rolling(state, wave, event)
        return
    if wave.kind in ("start", "round"):
        state.cut = wave if wave.open else None
    else:
        state.closed.append(wave)
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
        state.wave = _sealed_test(state)


def _tell_rolling(state: RunState, wave: Wave, event: Event) -> None:
    """Tell the outcomes so far; the open trials stay, unless a budget ended them."""
    for group in wave.groups:
        told = wave.told(group)
        if told.tasks:
            _tell(state, wave, group, told, "")
            state.candidates[group.candidate].status = Status.EVALUATED
            round = state.round_of(group.candidate)
            round.trials += len(told.tasks)
            round.missing += len(told.missing)
            round.told_at = event["seq"]
    wave.advance()
    state.selector.forget_events()
    state.wave = wave if wave.open and not event["rest"] else None
    state.cut = wave if wave.open and event["rest"] else None


def _tell(state: RunState, wave: Wave, group: Group, told: Told, rest: str) -> None:
    if group.assignment is not None:
        state.selector.tell(group.assignment, told)
        return
    selectors = {"rescore": state.rescored, "test": state.test}
    selector = selectors.get(wave.kind, state.selector)
    if selector is None:
        raise EventError("it tells outcomes of a sealed test, but the run has none.")
    selector.tell_full(group.candidate, wave.told(group, rest=rest) if rest else told)
    selector.forget_events()


def _settled(state: RunState, event: Event) -> None:
    current = state.open_rounds if state.rolling else [state.current_round]
    round = next((one for one in current if one and one.number == event["round"]), None)
    if round is None:
        raise EventError(f"round {event['round']} is not under way.")
    round.settled = True
    if not round.asked:
        state.empty_rounds += 1
    elif not state.rolling:  # there, an earlier round may end after an empty one
        state.empty_rounds = 0


def _exhausted(state: RunState, event: Event) -> None:
    state.exhausted = event["cap"]


def _chosen(state: RunState, event: Event) -> None:
    state.chosen = _body(event)
    winner = event["candidate"]
    known = (*state.starts, *state.rescored.starts, None)
    if state.settings.rescore and winner not in known:
        state.wave = _on_every_task(state, "rescore", [winner], state.rescored.pool)
    else:
        state.wave = _sealed_test(state)


def _sealed_test(state: RunState) -> Wave | None:
    """The sealed test of the starting harnesses and the winner, if there is one of each.

    A run that was extended has tested some of them before.
    """
    winner = None if state.chosen is None else state.chosen["candidate"]
    if state.test is None or winner is None:
        return None
    names = [n for n in dict.fromkeys([*state.starts, winner]) if n not in state.test.starts]
    return _on_every_task(state, "test", names, state.test.pool) if names else None


def _stopped(state: RunState, event: Event) -> None:
    state.stopped = _body(event)


def _ended(state: RunState, event: Event) -> None:
    state.ended = _body(event)


def _extended(state: RunState, event: Event) -> None:
    """Apply the new limits; a run that the old limits had ended continues."""
    budget = Budget.from_json(event["budget"])
    state.earlier.append(state.settings)
    state.settings = replace(state.settings, rounds=event["rounds"], budget=budget)
    if state.ended is None:
        return
    state.ended = state.chosen = state.exhausted = None
    state.finishing = False
    if event.get("complete", False):  # earlier versions left a sealed test incomplete
        _reopen_closing(state)
    if state.cut is not None:
        _continue_cut(state, state.cut)
    _use_past(state)


def _continue_cut(state: RunState, cut: Wave) -> None:
    """Continue the wave that a budget ended before its last trial."""
    state.wave, round = cut.continued(), state.current_round
    recounted = cut.kind == "round" and not cut.rolling
    if recounted and round is not None:  # counted again when the rest is told
        round.trials -= len(cut.done)
        round.missing -= sum(isinstance(score, Missing) for score in cut.done.values())
    state.cut = None


def _reopen_closing(state: RunState) -> None:
    """Forget the candidates that a budget kept from a whole sealed test or rescoring."""
    if not any(wave.open for wave in state.closed):
        return
    state.rescored = full_selector(state.rescored.pool, state.trials)
    if state.test is not None:
        state.test = full_selector(state.test.pool, state.trials)
    for wave in state.closed:
        cut = {cell.candidate for cell in wave.open}
        for group in wave.groups:
            if group.candidate not in cut:
                _tell(state, wave, group, wave.told(group), "")
    for requested in state.requested.values():
        for name in requested.told:
            _tell_requested(state, requested, name)


def _fingerprinted(state: RunState, event: Event) -> None:
    trials = state.evaluating.trials
    if event["changed"] and trials:
        parts, round = tuple(event["changed"]), len(state.rounds)
        state.changes.append(Change(parts=parts, round=round, trials=trials))
    state.fingerprint = event["parts"]


def _imported(state: RunState, event: Event) -> None:
    """Let past outcomes stand for trials of Phase 0, or only inform the selector.

    After the end of the run they wait for its extension, so that the estimates behind its choice
    do not change.
    """
    state.past.waiting += state.past.take(event, state.selector.pool).items()
    if state.ended is None:
        _use_past(state)


def _use_past(state: RunState) -> None:
    for name, told in state.past.waiting:
        state.selector.observe(name, told)
    state.past.waiting.clear()
    state.selector.forget_events()
    if state.wave is not None and state.wave.kind == "start":
        state.wave.give(state.past.given)


def _added(state: RunState, event: Event) -> None:
    """Add a harness to an evaluation, or one whose check failed once more."""
    if not state.evaluation:
        raise EventError("only an evaluation adds harnesses; a run proposes them.")
    known = CandidateState.from_json({**event, "refused": ""})
    state.candidates[known.name] = known


def _requested(state: RunState, event: Event) -> None:
    split, tasks = event["split"], event["tasks"]
    if tasks is None:
        selector = state.test if split == "test" else state.selector
        if selector is None:
            raise EventError("it requests a sealed test, but the run has none.")
        tasks = selector.pool.tasks
    requested = state.requested.setdefault(split, Requested(split=split))
    requested.add(event["candidates"], tasks, event["trials"])
    state.requested_seconds += event["clock"] - event["since"]
    state.requested_clock = event["clock"]


def _scored(state: RunState, event: Event) -> None:
    """Record a requested outcome; a candidate of a run is told in full after its last one."""
    requested = _take_time(state, event)
    name = requested.take(event).candidate
    if not state.evaluation:
        _tell_requested(state, requested, name)


def _tell_requested(state: RunState, requested: Requested, name: str) -> None:
    """Tell a candidate in full, unless an outcome is open or the run itself has scored it."""
    selector = state.test if requested.split == "test" else state.rescored
    if selector is None:
        raise EventError("it tells outcomes of a sealed test, but the run has none.")
    group = requested.group(name, selector.pool.tasks, state.trials)
    if group is None or (name in selector.starts and name not in requested.told):
        return
    if name not in requested.told:
        requested.told.append(name)
    selector.tell_full(name, requested.wave.told(group))
    selector.forget_events()


def _retried(state: RunState, event: Event) -> None:
    _take_time(state, event).failed(event)


def _take_time(state: RunState, event: Event) -> Requested:
    """What the event belongs to; the time it took does not count towards the budget."""
    state.requested_seconds += max(0.0, event["clock"] - state.requested_clock)
    state.requested_clock = event["clock"]
    return state.requested[event["split"]]


def _body(event: Event) -> dict[str, Any]:
    """The fields of an event, without those that every event has."""
    stamps = ("seq", "type", "at", "clock", "seal")
    return {key: value for key, value in event.items() if key not in stamps}


_HANDLERS: dict[str, Callable[[RunState, Event], None]] = {
    "session": _session,
    "checked": _checked,
    "prepared": _prepared,
    "proposing": _proposing,
    "proposed": _proposed,
    "probed": _probed,
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
    "fingerprinted": _fingerprinted,
    "imported": _imported,
    "added": _added,
    "requested": _requested,
    "scored": _scored,
    "retried": _retried,
}
