"""Messages over a pipe to a candidate: four bytes of length, then strict JSON."""

import json
import math
from collections.abc import Iterable
from typing import Any

from coevolve.errors import InputError
from coevolve.executors.isolation.launch import HarnessFault

MOST_DEPTH = 200

_HEADER = 4


def packed(message: object) -> bytes:
    r"""A message as bytes; what is no JSON is a mistake of the caller.

    >>> packed({"id": 1})
    b'\x00\x00\x00\t{"id": 1}'
    """
    try:
        data = _encode(message).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"a candidate can only be given JSON values: {error}.") from None
    return len(data).to_bytes(_HEADER, "big") + data


def unpacked(data: bytes) -> Any:
    """The JSON value in some bytes of a candidate; anything else is its fault.

    >>> unpacked(b'{"answer": 0.5}')
    {'answer': 0.5}
    """
    try:
        value = _decode(data.decode())
        if data.count(b"[") + data.count(b"{") > MOST_DEPTH and _too_deep(value):
            raise RecursionError  # before anybody shows or copies it by recursion
        if b"\\ud" in data or b"\\uD" in data:
            _encode(value).encode()  # half a surrogate pair is no character
    except RecursionError:
        raise HarnessFault("not-json", f"its answer is nested deeper than {MOST_DEPTH}") from None
    except (ValueError, MemoryError) as error:
        raise HarnessFault("not-json", f"its answer is not JSON: {error}") from None
    return value


class Inbox:
    """Collects bytes until a message is whole; never holds more than one of allowed size.

    >>> inbox = Inbox(most=100)
    >>> inbox.add(packed({"id": 1}))
    >>> inbox.take(), inbox.take()
    ({'id': 1}, None)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = bytearray()

    def add(self, data: bytes) -> None:
        """Append what was read; a length past the limit is a fault at once."""
        self._bytes += data

    def take(self) -> Any | None:
        """The next message, or None while it is not whole."""
        if len(self._bytes) < _HEADER:
            return None
        length = int.from_bytes(self._bytes[:_HEADER], "big")
        if length > self._most:
            raise too_large(length, self._most)
        end = _HEADER + length
        if len(self._bytes) < end:
            return None
        data = bytes(self._bytes[_HEADER:end])
        del self._bytes[:end]
        message = unpacked(data)
        if not isinstance(message, dict):
            raise HarnessFault("protocol", "wrote something else than messages to its pipe")
        return message


def too_large(length: int, most: int) -> HarnessFault:
    """The fault of an answer past the limit."""
    return HarnessFault("answer-limit", f"its answer has {length:,} bytes, past its {most:,}")


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
        raise ValueError(f"{text[:20]} is no finite number")
    return value


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no number")


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_decode = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant).decode
