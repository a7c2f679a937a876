"""Messages on a pipe: four bytes of length, then JSON; strict where a candidate writes them."""

import json
import math
from collections.abc import Callable, Iterable
from typing import Any

from coevolve.errors import InputError
from coevolve.executors.isolation.launch import HarnessFault

MOST_DEPTH = 200

_HEADER = 4


def framed(body: bytes) -> bytes:
    r"""A body with its length in front.

    >>> framed(b"{}")
    b'\x00\x00\x00\x02{}'
    """
    return len(body).to_bytes(_HEADER, "big") + body


class Inbox:
    """Collects bytes until a message is complete.

    Args:
        most: The largest allowed length of a message.
        decode: Turns the bytes of a message into the message.
        too_large: The error for a length above the limit, raised before the bytes arrive.

    >>> inbox = candidate_inbox(most=100)
    >>> inbox.feed(packed({"id": 1}))
    >>> inbox.take(), inbox.take()
    ({'id': 1}, None)
    """

    def __init__(
        self,
        most: int,
        *,
        decode: Callable[[bytes], dict[str, Any]],
        too_large: Callable[[int, int], Exception],
    ) -> None:
        self._most, self._decode, self._too_large = most, decode, too_large
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        """Append what was read."""
        self._bytes += data

    @property
    def waiting(self) -> bool:
        """Whether anything was read that was not taken."""
        return bool(self._bytes)

    @property
    def complete(self) -> bool:
        """Whether a whole message waits."""
        return len(self._bytes) >= _HEADER + self._length()

    def take(self) -> dict[str, Any] | None:
        """The next message, or None while it is incomplete."""
        if len(self._bytes) < _HEADER:
            return None
        length = self._length()
        if length > self._most:
            raise self._too_large(length, self._most)
        if not self.complete:
            return None
        end = _HEADER + length
        body = bytes(self._bytes[_HEADER:end])
        del self._bytes[:end]
        return self._decode(body)

    def _length(self) -> int:
        return int.from_bytes(self._bytes[:_HEADER], "big")


def candidate_inbox(most: int) -> Inbox:
    """An inbox for messages that a candidate wrote: anything irregular is its fault."""
    return Inbox(most, decode=_message, too_large=_too_large)


def packed(message: object) -> bytes:
    r"""A message to a candidate as bytes; InputError if a value is not JSON.

    >>> packed({"id": 1})
    b'\x00\x00\x00\t{"id": 1}'
    """
    try:
        return framed(_encode(message).encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"only JSON values can be sent to a candidate: {error}.") from None


def unpacked(data: bytes) -> Any:
    """The JSON value that a candidate wrote; anything else is its fault.

    >>> unpacked(b'{"answer": 0.5}')
    {'answer': 0.5}
    """
    try:
        value = _decode(data.decode())
        if data.count(b"[") + data.count(b"{") > MOST_DEPTH and _too_deep(value):
            raise RecursionError  # before anything prints or copies it recursively
        if b"\\ud" in data or b"\\uD" in data:
            _encode(value).encode()  # an unpaired surrogate is not a character
    except RecursionError:
        raise HarnessFault("not-json", f"its answer is nested deeper than {MOST_DEPTH}") from None
    except (ValueError, MemoryError) as error:
        raise HarnessFault("not-json", f"its answer is not JSON: {error}") from None
    return value


def _message(data: bytes) -> dict[str, Any]:
    message = unpacked(data)
    if not isinstance(message, dict):
        raise HarnessFault("protocol", "wrote something other than messages to its pipe")
    return message


def _too_large(length: int, most: int) -> HarnessFault:
    return HarnessFault("answer-limit", f"its answer has {length:,} bytes; the limit is {most:,}")


def _too_deep(value: object) -> bool:
    level = [value]
    for _ in range(MOST_DEPTH):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def _children(item: object) -> Iterable[object]:
    if isinstance(item, list):
        return item
    return item.values() if isinstance(item, dict) else ()


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is not a finite number")
    return value


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not a number")


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_decode = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant).decode
