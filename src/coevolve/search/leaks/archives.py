"""What is in archives and compressed bytes, up to where they are damaged.

Nothing is believed of what an archive says about itself: zip files are read by the heads of
their members, and every byte that comes out is paid for before the next is asked for.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from coevolve.search.leaks.work import PLAIN, Work

_STREAM = 50_000
"""What a compressed stream costs, whatever is in it."""
_QUICK, _SLOW = 10, 60
"""What a byte costs that goes in or comes out: of deflate, and of others."""
_FIRST, _BLOCK, _STEP = 1_024, 65_536, 1_000_000
_LARGEST = 1_000_000
"""What may come out of damaged bytes unseen: a block of bzip2."""
_RATIO = 1_000
"""What a damaged byte may have grown to before that shows."""
_MOST_MEMORY = 100_000_000
_ZIP = b"PK\x03\x04"
_HEAD = struct.Struct("<8xH16xHH")
_DEFLATE, _BZIP2, _LZMA = 8, 12, 14


def unpacked(data: bytes, work: Work | None = None) -> Iterator[bytes]:
    """What is in an archive, or in compressed bytes, as far as the work goes.

    >>> list(unpacked(zlib.compress(b"one") + zlib.compress(b" and two")))
    [b'one and two']
    """
    work = Work() if work is None else work
    if data.startswith(_ZIP):
        yield from _members(data, work)
        return
    content, at = bytearray(), 0
    while (make := _decompressor(data[at : at + 6])) is not None:
        piece, end = _inflated(make, data, at, work)
        content += piece
        if end <= at:
            break
        at = end
    if content:
        yield bytes(content)


def _members(data: bytes, work: Work) -> Iterator[bytes]:
    """What is packed in a zip file; what is stored there as it is can be read without."""
    at = 0
    while 0 <= at <= len(data) - _HEAD.size:
        method, name, extra = _HEAD.unpack_from(data, at)
        content, end = _member(data, at + _HEAD.size + name + extra, method, work)
        if content:
            yield content
        at = data.find(_ZIP, max(end, at + 1))


def _member(data: bytes, start: int, method: int, work: Work) -> tuple[bytes, int]:
    if method == _LZMA and work.take(len(data), 1) == len(data):
        alone = data[start + 4 : start + 9] + b"\xff" * 8 + data[start + 9 :]
        content, end = _inflated(_lzma, alone, 0, work)
        return content, end and end + start - 4
    make = {_DEFLATE: _raw, _BZIP2: _bz2}.get(method, _nothing)
    return _inflated(make, data, start, work)


def _decompressor(head: bytes) -> Callable[[], Any] | None:
    """What can unpack bytes that begin like this."""
    if head.startswith(b"BZh"):
        return _bz2
    if head.startswith((b"\xfd7zXZ", b"]\x00\x00")):
        return _lzma
    known = len(head) > 1 and head[0] & 15 == 8 and int.from_bytes(head[:2]) % 31 == 0
    return _zlib if known or head.startswith(b"\x1f\x8b") else None


def _inflated(make: Callable[[], Any], data: bytes, at: int, work: Work) -> tuple[bytes, int]:
    """What compressed bytes hold from a place on, and where they end; 0 if that is not known."""
    content, start = bytearray(), at
    price = _QUICK if make in (_zlib, _raw) else _SLOW
    if not work.take(1, _STREAM):
        return b"", 0
    try:
        machine, fed, size = make(), b"", _FIRST
        while not machine.eof:
            if not fed and getattr(machine, "needs_input", True):
                fed, size = data[at : at + size], min(2 * size, _BLOCK)
                at += len(fed)
            fresh = len(fed)
            piece = machine.decompress(fed, _STEP)
            fed = getattr(machine, "unconsumed_tail", b"")
            content += piece
            paid = len(piece) + fresh - len(fed) - len(machine.unused_data)
            if work.take(paid, price) < paid or not (piece or fresh):
                return bytes(content), 0
            if len(content) * PLAIN > work.left:  # more could not be read
                work.short = True
                return bytes(content), 0
        return bytes(content), at - len(machine.unused_data)
    except Exception:  # damaged: every library has an error of its own for it, if it is here
        work.take(min(_LARGEST, _RATIO * (at - start)), price)
    return bytes(content), 0


def _nothing() -> Any:
    raise ValueError("not packed, or in a way that cannot be undone here")


def _zlib() -> Any:
    return zlib.decompressobj(wbits=47)  # with either header


def _raw() -> Any:
    return zlib.decompressobj(wbits=-15)


def _bz2() -> Any:
    import bz2  # some builds of Python lack it, and the next one

    return bz2.BZ2Decompressor()


def _lzma() -> Any:
    import lzma

    return lzma.LZMADecompressor(memlimit=_MOST_MEMORY)
