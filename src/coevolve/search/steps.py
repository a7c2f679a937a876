"""What a run does next, which follows from its state alone."""

from enum import StrEnum

from coevolve.search.entry import Entry, Status
from coevolve.search.state import RunState


class Step(StrEnum):
    """What there is to do.

    >>> Step.ASK.value
    'ask'
    """

    PREPARE = "prepare"
    REPAIR = "repair"
    EVALUATE = "evaluate"
    TELL = "tell"
    PROPOSE = "propose"
    ASK = "ask"
    FURTHER = "further"
    SETTLE = "settle"
    FINISH = "finish"
    CHOOSE = "choose"
    END = "end"


def next_step(state: RunState) -> Step | None:
    """The next thing to do, or nothing when the run has ended."""
    if state.ended is not None:
        return None
    if state.wave is not None:
        return Step.TELL if state.wave.complete else Step.EVALUATE
    if state.chosen is not None:
        return Step.END
    if state.exhausted is not None:
        return Step.CHOOSE
    if _waiting(state, state.starts):
        return Step.PREPARE
    if state.finishing:
        return Step.FINISH
    return _in_round(state)


def _in_round(state: RunState) -> Step:
    turn = state.turn
    if turn is None:
        return Step.FINISH if len(state.turns) >= state.settings.rounds else Step.PROPOSE
    if turn.asked:
        return Step.FURTHER
    if _waiting(state, turn.names):
        return Step.PREPARE
    if broken(state):
        return Step.REPAIR
    return Step.ASK if accepted(state) else Step.SETTLE


def unready(state: RunState) -> list[Entry]:
    """The candidates that are still to be checked or prepared."""
    turn = state.turn
    return _waiting(state, state.starts if turn is None else turn.names)


def accepted(state: RunState) -> list[str]:
    """The candidates of the round under way that can be evaluated."""
    return _in_turn(state, Status.READY)


def broken(state: RunState) -> list[str]:
    """The candidates of the round under way that are to be mended."""
    return _in_turn(state, Status.BROKEN)


def _in_turn(state: RunState, status: Status) -> list[str]:
    names = () if state.turn is None else state.turn.names
    return [name for name in names if state.entries[name].status == status]


def _waiting(state: RunState, names: tuple[str, ...] | list[str]) -> list[Entry]:
    entries = [state.entries[name] for name in names]
    return [e for e in entries if e.status in (Status.PROPOSED, Status.CHECKED)]
