"""Messages between the engine and its workers, and the records they carry, as JSON."""

import asyncio
import json
import socket
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from coevolve.core.outcomes import Usage
from coevolve.errors import CoevolveError
from coevolve.executors.isolation.framing import Inbox, framed
from coevolve.search.trials import Blame, Fault, Prepared, Result

Message = dict[str, Any]

MOST_BYTES = 16_000_000
_CHUNK = 1 << 18


class PipeError(CoevolveError):
    """Bytes that are not a message, or a message that cannot be sent."""


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
    return framed(body)


def worker_inbox() -> Inbox:
    """An inbox for messages between engine and worker.

    >>> inbox = worker_inbox()
    >>> inbox.feed(pack({"op": "check"})[:7]); inbox.take() is None
    True
    >>> inbox.feed(pack({"op": "check"})[7:]); inbox.take()
    {'op': 'check'}
    """
    return Inbox(MOST_BYTES, decode=_unpack, too_large=_too_large)


def _unpack(body: bytes) -> Message:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise PipeError(f"a message is not JSON: {body[:80]!r}.") from error
    if not isinstance(message, dict):
        raise PipeError(f"a message is not a JSON object: {body[:80]!r}.")
    return message


def _too_large(length: int, most: int) -> PipeError:
    return PipeError(f"a message of {length:,} bytes was announced; at most {most:,} are allowed.")


class Pipe:
    """One end of a socket that carries messages, for a process that blocks on it."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._inbox = worker_inbox()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message."""
        self._end.sendall(pack(message))

    def receive(self) -> Message | None:
        """The next message, or None when the other end is closed."""
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
        self._inbox = worker_inbox()

    async def send(self, packed: bytes) -> None:
        """Send one message."""
        await asyncio.get_running_loop().sock_sendall(self._end, packed)

    async def receive(self) -> Message | None:
        """The next message, or None when the other end is closed."""
        loop = asyncio.get_running_loop()
        while (message := self._inbox.take()) is None:
            data = await loop.sock_recv(self._end, _CHUNK)
            if not data:
                return None
            self._inbox.feed(data)
        return message

    def close(self) -> None:
        """Close this end."""
        self._end.close()


def fault_to_json(fault: Fault) -> Message:
    """A fault as plain JSON.

    >>> fault_from_json(fault_to_json(Fault(blame=Blame.CANDIDATE, kind="memory", reason="-")))
    Fault(blame=<Blame.CANDIDATE: 'candidate'>, kind='memory', reason='-', advice='', shared=False)
    """
    plain = {name: str(getattr(fault, name)) for name in ("blame", "kind", "reason", "advice")}
    return {**plain, "shared": fault.shared}


def fault_from_json(data: Mapping[str, Any]) -> Fault:
    """The fault that `fault_to_json` described."""
    return Fault(**{**data, "blame": Blame(data["blame"])})


def done_to_json(done: Result | Prepared) -> Message:
    """A result as plain JSON; absent parts are left out."""
    message: Message = {"usage": asdict(done.usage)}
    if done.fault is not None:
        message["fault"] = fault_to_json(done.fault)
    if done.trace is not None:
        message["trace"] = done.trace
    value = done.score if isinstance(done, Result) else done.state
    if value is not None:
        message["value"] = value
    return message


def result_from_json(data: Mapping[str, Any]) -> Result:
    """The result that `done_to_json` described.

    >>> result_from_json(done_to_json(Result(score=0.5))) == Result(score=0.5)
    True
    """
    return Result(score=data.get("value"), **_common(data))


def prepared_from_json(data: Mapping[str, Any]) -> Prepared:
    """The outcome of a check or a preparation that `done_to_json` described."""
    return Prepared(state=data.get("value"), **_common(data))


def _common(data: Mapping[str, Any]) -> Message:
    fault = data.get("fault")
    return {
        "fault": None if fault is None else fault_from_json(fault),
        "usage": Usage(**data["usage"]),
        "trace": data.get("trace"),
    }
