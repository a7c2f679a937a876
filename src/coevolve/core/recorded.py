"""The events of a selector: recorded, followed and restored, for one thread at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from threading import RLock
from typing import Any, Concatenate, Self

from coevolve.core.events import Event, Line, Log, checked_line, fitting, sealed, verified
from coevolve.core.pool import Pool
from coevolve.core.protocols import SearchProtocol
from coevolve.core.selector_state import State
from coevolve.errors import EventError


def alone[Owner: "Recorded", **Arguments, Result](
    method: Callable[Concatenate[Owner, Arguments], Result],
) -> Callable[Concatenate[Owner, Arguments], Result]:
    """A method that no other thread interrupts.

    Iterators are read before: they may wait for a thread that uses the selector.
    """

    @wraps(method)
    def locked(self: Owner, /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        given: Any = [list(a) if isinstance(a, Iterator) else a for a in arguments]
        options: Any = {k: list(v) if isinstance(v, Iterator) else v for k, v in named.items()}
        with self._lock:
            return method(self, *given, **options)

    return locked


class Recorded:
    """A state that only events change, with their log and a lock."""

    _state: State

    def __init__(self, opened: Line, protocol: SearchProtocol, pool: Pool) -> None:
        self._lock = RLock()
        self._state = State.opened(opened.event, protocol, pool)
        self._log = Log()
        self._log.append(opened)

    @classmethod
    def from_events(
        cls, events: Iterable[Mapping[str, Any]], *, protocol: SearchProtocol | None = None
    ) -> Self:
        """Restore the selector that made these events.

        Args:
            events: What `events` returned, or any part of it from the beginning.
            protocol: Needed only if the protocol has parts that are neither built in nor
                registered.
        """
        selector = cls.__new__(cls)
        selector._lock = RLock()
        selector._log = Log()
        for line in verified(events):
            with fitting(line.event):
                if len(selector._log):
                    selector._apply(line)
                else:
                    selector._state = State.opened(line.event, protocol)
                    selector._log.append(line)
        if not len(selector._log):
            raise EventError("there are no events; a selector needs at least the first one.")
        return selector

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=RLock())

    @property
    @alone
    def events(self) -> tuple[Event, ...]:
        """All events so far, as plain JSON."""
        return self._log.since(0)

    @alone
    def events_since(self, seq: int) -> tuple[Event, ...]:
        """The events from number `seq` on."""
        return self._log.since(seq)

    @alone
    def forget_events(self) -> None:
        """Drop all events so far to save memory, if a journal keeps them."""
        self._log.forget()

    @alone
    def follow(self, event: Mapping[str, Any]) -> None:
        """Apply the next event, which `plan` or another selector made.

        >>> from coevolve import Selector
        >>> selector = Selector(Pool(["a", "b"]), protocol="naive")
        >>> (drawn,) = selector.plan(["new"])
        >>> selector.candidates
        ()
        >>> selector.follow(drawn)
        >>> selector.candidates
        ('new',)
        """
        line = checked_line(event, len(self._log), self._log.seal)
        with fitting(line.event):
            self._apply(line)

    def _record(self, kind: str, body: Mapping[str, Any]) -> None:
        self._apply(sealed(len(self._log), kind, body, self._log.seal))

    def _apply(self, line: Line) -> None:
        self._state.apply(line.event)
        self._log.append(line)
