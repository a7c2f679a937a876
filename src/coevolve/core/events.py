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
    return {**event, "seal": _seal(event, before)}


def verified(events: Iterable[Mapping[str, Any]]) -> Iterator[Event]:
    """The same events, checked one by one for order and damage."""
    before = ""
    for seq, event in enumerate(events):
        if not isinstance(event, Mapping) or not {"seq", "type", "seal"} <= event.keys():
            raise EventError(f"event {seq} is not an event: {str(event)[:80]!r}.")
        if event["seq"] != seq:
            raise EventError(
                f"event {seq} has number {event['seq']!r}: events are missing or out of order."
            )
        body = {key: value for key, value in event.items() if key != "seal"}
        if event["seal"] != _seal(body, before):
            raise EventError(
                f"event {seq} ({event['type']!r}) is damaged: its seal does not match. The "
                f"{seq} events before it are intact and can be restored."
            )
        before = event["seal"]
        yield dict(event)


def _seal(event: Mapping[str, Any], before: str) -> str:
    try:
        text = json.dumps(event, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise EventError(f"an event must be plain JSON: {error}.") from error
    return blake2b((before + text).encode(), digest_size=8).hexdigest()
