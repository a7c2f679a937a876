"""From the events of a journal to the state of its run."""

from collections.abc import Iterable

from coevolve.core.events import Event, fitting
from coevolve.errors import EventError
from coevolve.search.effects import apply
from coevolve.search.state import RunState


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
