"""The usage of an agent, read from its output.

Written for claude 2.1.325 (`--output-format stream-json`), codex-cli 0.166.0 (`exec --json`,
events in codex-rs/exec/src/exec_events.rs), gemini 0.61.0 (`--output-format stream-json`, in
packages/core/src/output/types.ts), opencode 1.18.33 (`run --format json`) and mini-swe-agent 2.4.6
(its trajectory, format mini-swe-agent-1.1). Cached tokens count as tokens in, tokens of hidden
reasoning as tokens out.
"""

import json
from collections.abc import Mapping
from typing import Any

from coevolve.core.outcomes import MOST_USAGE

type Event = Mapping[str, Any]

_MOST_MESSAGES = 1_000
_LONGEST_ID = 200
_CACHED = ("cacheReadInputTokens", "cacheCreationInputTokens")


class Meter:
    """Reads the usage that an agent reports; None is unknown.

    A subclass reads the events of one agent. `error` is the last error that the agent reported.

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
        """Whether no usage is known."""
        return self.tokens_in is None and self.tokens_out is None and self.dollars is None

    def line(self, text: str) -> None:
        """Read one line of the agent's standard output."""
        if text.startswith("{"):
            event = decoded(text)
            if isinstance(event, dict):
                self.event(event)

    def event(self, event: Event) -> None:
        """Read one event of the stream."""

    def report(self, data: object) -> None:
        """Read the JSON report that the agent wrote; called once, at the end."""


class UsageFile(Meter):
    """For any other agent: a file `usage.json` with tokens_in, tokens_out, dollars."""

    def report(self, data: object) -> None:
        self.tokens_in = count(at(data, "tokens_in"))
        self.tokens_out = count(at(data, "tokens_out"))
        self.dollars = number(at(data, "dollars"))


def decoded(text: str | bytes) -> object:
    """The JSON value in a text; None if it is not JSON.

    >>> decoded('{"type": "result"'), decoded("[" * 100_000)
    (None, None)
    """
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found


def at(data: object, *path: str) -> Any:
    """The value at a path in nested objects; None if there is none.

    >>> at({"message": {"usage": {"input_tokens": 3}}}, "message", "usage", "input_tokens")
    3
    """
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return data


def number(value: object) -> float | None:
    """A number that is a plausible usage, else None.

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
    """The sum of the known values; None if there are none.

    >>> total(1, None, 2), total(None, None)
    (3, None)
    """
    known = [value for value in values if value is not None]
    return sum(known[1:], start=known[0]) if known else None


class ClaudeMeter(Meter):
    """Claude Code: each message states its usage, and the result states the total.

    A message comes in several events with one id. Before the result, the count of tokens out is
    too low, because messages are announced before they are written.
    """

    def __init__(self) -> None:
        super().__init__()
        self._messages: dict[str, tuple[int, int]] = {}

    def event(self, event: Event) -> None:
        if event.get("type") == "assistant":
            self._message(at(event, "message"))
        elif event.get("type") == "result":
            self._result(event)

    def _message(self, message: object) -> None:
        usage, name = at(message, "usage"), at(message, "id")
        if not isinstance(usage, dict) or not isinstance(name, str):
            return
        before = self._messages.pop(name[:_LONGEST_ID], (0, 0))
        self._messages[name[:_LONGEST_ID]] = read, written = _claude_tokens(usage)
        if len(self._messages) > _MOST_MESSAGES:
            del self._messages[next(iter(self._messages))]  # the least recent one
        self.tokens_in = (self.tokens_in or 0) + read - before[0]
        self.tokens_out = (self.tokens_out or 0) + written - before[1]

    def _result(self, event: Event) -> None:
        models = at(event, "modelUsage")
        rows = list(models.values()) if isinstance(models, dict) else []
        tokens_in = total(*(_each(row, "inputTokens", *_CACHED) for row in rows))
        tokens_out = total(*(_each(row, "outputTokens") for row in rows))
        if tokens_in is None and tokens_out is None:  # an older version
            usage = at(event, "usage")
            tokens_in, tokens_out = _claude_tokens(usage) if usage else (None, None)
        self.tokens_in = self.tokens_in if tokens_in is None else tokens_in
        self.tokens_out = self.tokens_out if tokens_out is None else tokens_out
        dollars = number(at(event, "total_cost_usd"))
        self.dollars = self.dollars if dollars is None else dollars
        if event.get("is_error") is True:
            self.error = _text(event.get("result")) or _text(event.get("subtype")) or "an error"


def _claude_tokens(usage: object) -> tuple[int, int]:
    cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
    read = _each(usage, "input_tokens", *cached)
    return read or 0, _each(usage, "output_tokens") or 0


class CodexMeter(Meter):
    """Codex: the end of a turn states the usage of the thread so far; never dollars."""

    def event(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "turn.completed":
            self.tokens_in = count(at(event, "usage", "input_tokens"))
            self.tokens_out = count(at(event, "usage", "output_tokens"))
            self.error = ""  # earlier errors were overcome
        elif kind == "turn.failed":
            self.error = _text(at(event, "error", "message")) or "the turn failed"
        elif kind == "error":
            self.error = _text(event.get("message"))


class GeminiMeter(Meter):
    """Gemini CLI: the result states the usage of all models; never dollars."""

    def event(self, event: Event) -> None:
        if event.get("type") == "result":
            self.tokens_in = count(at(event, "stats", "input_tokens"))
            self.tokens_out = _beyond(at(event, "stats"), self.tokens_in)
            if event.get("status") == "error":
                self.error = _text(at(event, "error", "message")) or "an error"
        elif event.get("type") == "error":
            self.error = _text(event.get("message"))


def _beyond(stats: object, tokens_in: int | None) -> int | None:
    """Tokens out including hidden ones, which only the total contains."""
    written, everything = count(at(stats, "output_tokens")), count(at(stats, "total_tokens"))
    if tokens_in is None or everything is None:
        return written
    return max(written or 0, everything - tokens_in)


class OpenCodeMeter(Meter):
    """OpenCode: each step states its usage."""

    def event(self, event: Event) -> None:
        if event.get("type") == "step_finish":
            tokens, part = at(event, "part", "tokens"), at(event, "part")
            cached = _each(at(tokens, "cache"), "read", "write")
            self.tokens_in = total(self.tokens_in, _each(tokens, "input"), cached)
            self.tokens_out = total(self.tokens_out, _each(tokens, "output", "reasoning"))
            self.dollars = total(self.dollars, number(at(part, "cost")))
        elif event.get("type") == "error":
            error = at(event, "error")
            message = _text(at(error, "data", "message")) or _text(at(error, "name"))
            self.error = message or _text(error) or "an error"


class TrajectoryMeter(Meter):
    """mini-swe-agent: its trajectory contains every reply of the model with its usage.

    It reports 0 dollars for a model without a known price, which means unknown.
    """

    def report(self, data: object) -> None:
        messages = at(data, "messages")
        for message in messages if isinstance(messages, list) else ():
            usage = at(message, "extra", "response", "usage")
            self.tokens_in = total(self.tokens_in, _each(usage, "prompt_tokens", "input_tokens"))
            written = _each(usage, "completion_tokens", "output_tokens")
            self.tokens_out = total(self.tokens_out, written)
        self.dollars = number(at(data, "info", "model_stats", "instance_cost")) or None
        if at(data, "info", "exit_status") not in ("Submitted", "", None):
            self.error = _text(at(data, "info", "exit_status"))


def _each(data: object, *names: str) -> int | None:
    return total(*(count(at(data, name)) for name in names))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
