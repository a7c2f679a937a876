"""What an agent used, read off what it prints; never an error, whatever that is."""

import json
from collections.abc import Mapping
from typing import Any

from coevolve.core.outcomes import MOST_USAGE

type Event = Mapping[str, Any]


class Meter:
    """Reads what was used, as far as the agent has said it; None is unknown.

    A subclass understands the events of one agent. `error` is the last thing the agent itself
    called an error.

    >>> meter = UsageFile()
    >>> meter.report({"tokens_in": 900, "dollars": 0.2})
    >>> meter.tokens_in, meter.tokens_out, meter.dollars
    (900, None, 0.2)
    """

    def __init__(self) -> None:
        self.tokens_in: int | None = None
        self.tokens_out: int | None = None
        self.dollars: float | None = None
        self.error = ""

    @property
    def silent(self) -> bool:
        """Whether nothing is known of what was used."""
        return self.tokens_in is None and self.tokens_out is None and self.dollars is None

    def line(self, text: str) -> None:
        """Take one line of the agent's standard output."""
        if text.startswith("{"):
            event = decoded(text)
            if isinstance(event, dict):
                self.event(event)

    def event(self, event: Event) -> None:
        """Take one event of the stream."""

    def report(self, data: object) -> None:
        """Take the file that the agent left, as JSON; called once, in the end."""


class UsageFile(Meter):
    """The meter of any other agent: a file `usage.json` with tokens_in, tokens_out, dollars."""

    def report(self, data: object) -> None:
        self.tokens_in = count(at(data, "tokens_in"))
        self.tokens_out = count(at(data, "tokens_out"))
        self.dollars = number(at(data, "dollars"))


def decoded(text: str | bytes) -> object:
    """The JSON of a text; None for anything that is none.

    >>> decoded('{"type": "result"'), decoded("[" * 100_000)
    (None, None)
    """
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found


def at(data: object, *path: str) -> Any:
    """What lies at a path of nested objects; None where there is nothing.

    >>> at({"message": {"usage": {"input_tokens": 3}}}, "message", "usage", "input_tokens")
    3
    """
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return data


def number(value: object) -> float | None:
    """A number that can be a usage, else None.

    >>> number(0.5), number(-1), number("3"), number(True), number(10**400)
    (0.5, None, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= MOST_USAGE else None


def count(value: object) -> int | None:
    """A number of tokens, else None."""
    found = number(value)
    return None if found is None else int(found)


def total[N: (int, float)](*values: N | None) -> N | None:
    """The sum of what is known; None if nothing is.

    >>> total(1, None, 2), total(None, None)
    (3, None)
    """
    known = [value for value in values if value is not None]
    return sum(known[1:], start=known[0]) if known else None
