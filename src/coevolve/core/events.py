"""Events: what a selector did, as plain JSON; a hash links each event to the one before.

An event is a dictionary with "seq" (0, 1, 2, ...), "type", its own fields, and "seal": a hash of
all of that and of the seal before, which detects a changed, lost or reordered event.
`docs/events.md` lists the types.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, NamedTuple

from coevolve.errors import CoevolveError, DamageError, EventError, StateError

Event = dict[str, Any]

SCHEMA = 2


class Line(NamedTuple):
    """An event and its text, which is JSON with sorted keys and the seal at the end."""

    event: Event
    text: str


def sealed(seq: int, kind: str, body: Mapping[str, Any], before: str) -> Line:
    """An event with its seal.

    >>> sealed(0, "opened", {"seed": 7}, "").text
    '{"seed":7,"seq":0,"type":"opened","seal":"e9ec64eab5c758cb"}'
    """
    return _line({"seq": seq, "type": kind, **body}, before)


def verified(events: Iterable[Mapping[str, Any]]) -> Iterator[Line]:
    """The same events, checked one by one for order and damage."""
    if not isinstance(events, Iterable):
        raise EventError(f"events must be a sequence of events, got {events!r}.")
    before = ""
    for seq, event in enumerate(events):
        line = checked_line(event, seq, before)
        before = line.event["seal"]
        yield line


def checked_line(event: Mapping[str, Any], seq: int, before: str) -> Line:
    """An event that must have this number and follow the event with seal `before`."""
    if not isinstance(event, Mapping) or not {"seq", "type", "seal"} <= event.keys():
        raise EventError(f"event {seq} is not an event: {str(event)[:80]!r}.")
    if event["seq"] != seq:
        raise EventError(
            f"event {seq} has number {event['seq']!r}: events are missing or out of order."
        )
    line = _line({key: value for key, value in event.items() if key != "seal"}, before)
    if event["seal"] != line.event["seal"]:
        raise EventError(
            f"event {seq} ({event['type']!r}) is damaged: its seal does not match. The "
            f"{seq} events before it are intact and can be restored."
        )
    return line


class Log:
    """Sealed events, kept as text, which is compact and cannot be changed.

    >>> log = Log()
    >>> log.append(sealed(0, "opened", {"seed": 7}, log.seal))
    >>> len(log), log.since(0)[0]["seed"], log.seal
    (1, 7, 'e9ec64eab5c758cb')
    """

    __slots__ = ("_forgotten", "_lines", "seal")

    def __init__(self) -> None:
        self._forgotten = 0
        self._lines: list[str] = []
        self.seal = ""

    def __len__(self) -> int:
        return self._forgotten + len(self._lines)

    def append(self, line: Line) -> None:
        """Add the next event."""
        self._lines.append(line.text)
        self.seal = line.event["seal"]

    def forget(self) -> None:
        """Drop the texts; numbers and seals continue."""
        self._forgotten = len(self)
        self._lines.clear()

    def since(self, seq: int) -> tuple[Event, ...]:
        """Events from a number on, as fresh copies."""
        if seq < self._forgotten:
            raise StateError(
                f"events before number {self._forgotten} were dropped, got {seq}; read them from "
                "the journal that keeps them."
            )
        return tuple(json.loads(line) for line in self._lines[seq - self._forgotten :])


def _line(event: Event, before: str) -> Line:
    try:
        text = json.dumps(event, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise EventError(f"an event must be plain JSON: {error}.") from error
    seal = blake2b((before + text).encode(), digest_size=8).hexdigest()
    return Line({**event, "seal": seal}, f'{text[:-1]},"seal":"{seal}"}}')


MISFITS = (
    CoevolveError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""Errors raised while applying an event that does not fit the state."""


NO_SELECTOR = "The events are not those of a selector, or another version wrote them."
"""What to say where the events of a selector do not fit."""


@contextmanager
def fitting(event: Event, advice: str = NO_SELECTOR) -> Iterator[None]:
    """Turn an error raised while applying an event into one that names the event.

    >>> with fitting({"seq": 3, "type": "told"}, "Repair it."):
    ...     {}["batch"]
    Traceback (most recent call last):
    coevolve.errors.EventError: event 3 ('told') cannot be applied: 'batch' is missing. Repair it.
    """
    try:
        yield
    except MISFITS as error:
        raise misfit(event, error, advice) from error


def misfit(event: Event, error: Exception, advice: str) -> EventError:
    """The error for an event that cannot be applied."""
    if isinstance(error, DamageError):
        return error
    if isinstance(error, CoevolveError):  # may be about an event of a selector in this event
        why = str(error).removesuffix(NO_SELECTOR).rstrip(". ")
    elif isinstance(error, KeyError):
        why = f"{error} is missing"
    else:
        why = f"{type(error).__name__}: {error}"
    what = f"event {event['seq']} ({event['type']!r})"
    return EventError(f"{what} cannot be applied: {why}. {advice}")
