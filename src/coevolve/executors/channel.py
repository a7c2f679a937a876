"""Messages between worker and engine: a length of four bytes, then that much JSON."""

import asyncio
import json
import socket
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from coevolve.core.outcomes import Usage
from coevolve.errors import CoevolveError
from coevolve.search.trials import Blame, Fault, Prepared, Result

Message = dict[str, Any]

MOST_BYTES = 16_000_000
_HEAD = 4
_CHUNK = 1 << 18


class PipeError(CoevolveError):
    """Bytes that are no message, or a message too large to send."""


def pack(message: Mapping[str, Any]) -> bytes:
    r"""A message as bytes.

    >>> pack({"op": "check"})
    b'\x00\x00\x00\x0e{"op":"check"}'
    """
    try:
        body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise PipeError(f"not plain JSON: {error}.") from error
    if len(body) > MOST_BYTES:
        raise PipeError(f"{len(body):,} bytes of JSON; at most {MOST_BYTES:,} are allowed.")
    return len(body).to_bytes(_HEAD, "big") + body


class Inbox:
    """Bytes as they come in, and the messages in them.

    >>> inbox = Inbox()
    >>> inbox.feed(pack({"op": "check"})[:7]); inbox.take() is None
    True
    >>> inbox.feed(pack({"op": "check"})[7:]); inbox.take()
    {'op': 'check'}
    """

    __slots__ = ("_bytes",)

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        """Take bytes in."""
        self._bytes += data

    def take(self) -> Message | None:
        """The next message, or None while it is incomplete."""
        if len(self._bytes) < _HEAD:
            return None
        end = _HEAD + int.from_bytes(self._bytes[:_HEAD], "big")
        if end - _HEAD > MOST_BYTES:
            raise PipeError(f"a message of {end - _HEAD:,} bytes was announced.")
        if len(self._bytes) < end:
            return None
        body = bytes(self._bytes[_HEAD:end])
        del self._bytes[:end]
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise PipeError(f"a message is not JSON: {body[:80]!r}.") from error
        if not isinstance(message, dict):
            raise PipeError(f"a message is no JSON object: {body[:80]!r}.")
        return message


class Pipe:
    """One end of a socket that carries messages, for a process that waits for them."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._inbox = Inbox()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message."""
        self._end.sendall(pack(message))

    def receive(self) -> Message | None:
        """The next message, or None when the other end is gone."""
        while (message := self._inbox.take()) is None:
            data = self._end.recv(_CHUNK)
            if not data:
                return None
            self._inbox.feed(data)
        return message

    def close(self) -> None:
        """Close this end."""
        self._end.close()


class AsyncPipe:
    """One end of a socket that carries messages, for a process with an event loop."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end = end
        self._inbox = Inbox()

    async def send(self, packed: bytes) -> None:
        """Send one message."""
        await asyncio.get_running_loop().sock_sendall(self._end, packed)

    async def receive(self) -> Message | None:
        """The next message, or None when the other end is gone."""
        loop = asyncio.get_running_loop()
        while (message := self._inbox.take()) is None:
            data = await loop.sock_recv(self._end, _CHUNK)
            if not data:
                return None
            self._inbox.feed(data)
        return message

    def close(self) -> None:
        """Close this end; the other sees it."""
        self._end.close()


Json = dict[str, Any]


def fault_to_json(fault: Fault) -> Json:
    """Plain JSON.

    >>> fault_from_json(fault_to_json(Fault(blame=Blame.CANDIDATE, kind="memory", reason="-")))
    Fault(blame=<Blame.CANDIDATE: 'candidate'>, kind='memory', reason='-', advice='')
    """
    return {name: str(getattr(fault, name)) for name in ("blame", "kind", "reason", "advice")}


def fault_from_json(data: Mapping[str, Any]) -> Fault:
    """The fault `fault_to_json` described."""
    return Fault(**{**data, "blame": Blame(data["blame"])})


def done_to_json(done: Result | Prepared) -> Json:
    """Plain JSON, without what is not there."""
    message: Json = {"usage": asdict(done.usage)}
    if done.fault is not None:
        message["fault"] = fault_to_json(done.fault)
    if done.trace is not None:
        message["trace"] = done.trace
    value = done.score if isinstance(done, Result) else done.state
    if value is not None:
        message["value"] = value
    return message


def result_from_json(data: Mapping[str, Any]) -> Result:
    """The result `done_to_json` described.

    >>> result_from_json(done_to_json(Result(score=0.5))) == Result(score=0.5)
    True
    """
    return Result(score=data.get("value"), **_common(data))


def prepared_from_json(data: Mapping[str, Any]) -> Prepared:
    """What `done_to_json` described of checking or preparing."""
    return Prepared(state=data.get("value"), **_common(data))


def _common(data: Mapping[str, Any]) -> Json:
    fault = data.get("fault")
    return {
        "fault": None if fault is None else fault_from_json(fault),
        "usage": Usage(**data["usage"]),
        "trace": data.get("trace"),
    }
