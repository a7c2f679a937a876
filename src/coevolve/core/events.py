"""Events: what a selector did, as plain JSON, each sealed to the one before.

An event is a dictionary with "seq" (0, 1, 2, ...), "type", its own fields, and "seal": a hash of
all of that and of the seal before, so that a changed, lost or reordered event is noticed.
`docs/events.md` lists the types.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

from coevolve.errors import EventError

Event = dict[str, Any]

SCHEMA = 1


def sealed(seq: int, kind: str, body: Mapping[str, Any], before: str) -> Event:
    """An event with its seal.

    >>> sealed(0, "opened", {"seed": 7}, "")["seal"]
    'e9ec64eab5c758cb'
    """
    event = {"seq": seq, "type": kind, **body}
    return {**event, "seal": _seal(_text(event), before)}


class Log:
    """Sealed events, kept as text: a third of the memory, and nobody can change them.

    >>> log = Log()
    >>> log.append(sealed(0, "opened", {"seed": 7}, log.seal))
    >>> len(log), log.since(0)[0]["seed"], log.seal
    (1, 7, 'e9ec64eab5c758cb')
    """

    __slots__ = ("_lines", "seal")

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.seal = ""

    def __len__(self) -> int:
        return len(self._lines)

    def append(self, event: Event) -> None:
        """Add the next event."""
        self._lines.append(json.dumps(event, separators=(",", ":")))
        self.seal = event["seal"]

    def since(self, seq: int) -> tuple[Event, ...]:
        """Events from a number on, as fresh copies."""
        return tuple(json.loads(line) for line in self._lines[seq:])


def verified(events: Iterable[Mapping[str, Any]]) -> Iterator[Event]:
    """The same events, checked one by one for order and damage."""
    if not isinstance(events, Iterable):
        raise EventError(f"events must be a sequence of events, got {events!r}.")
    before = ""
    for seq, event in enumerate(events):
        if not isinstance(event, Mapping) or not {"seq", "type", "seal"} <= event.keys():
            raise EventError(f"event {seq} is not an event: {str(event)[:80]!r}.")
        if event["seq"] != seq:
            raise EventError(
                f"event {seq} has number {event['seq']!r}: events are missing or out of order."
            )
        body = {key: value for key, value in event.items() if key != "seal"}
        if event["seal"] != _seal(_text(body), before):
            raise EventError(
                f"event {seq} ({event['type']!r}) is damaged: its seal does not match. The "
                f"{seq} events before it are intact and can be restored."
            )
        before = event["seal"]
        yield dict(event)


def _text(event: Mapping[str, Any]) -> str:
    try:
        return json.dumps(event, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise EventError(f"an event must be plain JSON: {error}.") from error


def _seal(text: str, before: str) -> str:
    return blake2b((before + text).encode(), digest_size=8).hexdigest()
