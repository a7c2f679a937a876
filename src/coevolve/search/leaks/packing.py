"""Texts that are packed or encoded, as far as that is cheap to undo."""

import base64
import binascii
import codecs
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

SHORTEST = 24
"""Characters of an encoded text; shorter ones hold no question."""
MOST_BYTES = 20_000_000
"""What is unpacked of one candidate; the rest is left alone."""

_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_BASE32 = re.compile(r"[A-Z2-7]+={0,6}")
_BASE85 = re.compile(r"[0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]+")
_ZIP = b"PK\x03\x04"
_LINE = 20
"""Characters of a line of encoded text, at least on average; words are shorter."""
_STEP = 1_000_000
_RATIO = 1_000
"""What a byte that cannot be unpacked is charged: about what one may grow to before that shows."""
_MOST_MEMORY = 100_000_000
_MOST_MEMBERS = 1_000


@dataclass(slots=True)
class Room:
    """How many bytes may still be unpacked: a small text can hold a huge one, many times over."""

    left: int = MOST_BYTES

    @property
    def step(self) -> int:
        """How many to unpack next; at least one, since 0 would be all there is."""
        return max(1, min(_STEP, self.left))


def text_of(data: bytes) -> str:
    r"""The text of a file; of one that is none, the bytes that can be read.

    >>> text_of("Größe".encode("utf-16")), text_of(b"\xff\x00label")
    ('Größe', '\x00label')
    """
    for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        if data.startswith(mark):
            return data.decode("utf-16", errors="ignore")
    return data.decode("utf-8-sig", errors="ignore")


def decoded(text: str, room: Room | None = None) -> Iterator[str]:
    """What a text may say once it is decoded: base64, base85, base32 or hexadecimal.

    >>> list(decoded("SSBoYXZlIGEgc29yZSB0aHJvYXQu"))
    ['I have a sore throat.']
    """
    if len(text) < SHORTEST:
        return
    lines = text.split()
    compact = "".join(lines)
    if len(compact) < max(SHORTEST, _LINE * len(lines)):
        return
    for shape, decode in _DECODERS:
        if not shape.fullmatch(compact):
            continue
        try:
            data = decode(compact)
        except (ValueError, binascii.Error):
            continue
        yield from _readable(data)
        yield from (text for inner in unpacked(data, room) for text in _readable(inner))


def _readable(data: bytes) -> Iterator[str]:
    """The text that some bytes are, if they are one."""
    try:
        yield data.decode()
    except UnicodeDecodeError:
        return


def unpacked(data: bytes, room: Room | None = None) -> Iterator[bytes]:
    """What is in an archive, or in compressed bytes, as far as there is room."""
    room = Room() if room is None else room
    if data.startswith(_ZIP):
        yield from _members(data, room)
    elif (make := _decompressor(data)) is not None and (content := _inflated(make, data, room)):
        yield content


def _members(data: bytes, room: Room) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist()[:_MOST_MEMBERS]:
                if room.left <= 0:
                    return
                with archive.open(name) as member:
                    content = member.read(room.left)
                room.left -= len(content)
                yield content
    except Exception:  # damaged, locked, or packed in a way this Python cannot read
        return


def _decompressor(data: bytes) -> Callable[[], Any] | None:
    """What can unpack bytes that begin like this."""
    if data.startswith(b"BZh"):
        return _bz2
    if data.startswith((b"\xfd7zXZ", b"]\x00\x00")):
        return _lzma
    known = data[:1] and data[0] & 15 == 8 and int.from_bytes(data[:2]) % 31 == 0
    return _zlib if known or data.startswith(b"\x1f\x8b") else None


def _inflated(make: Callable[[], Any], data: bytes, room: Room) -> bytes:
    """What compressed bytes hold, up to where they are damaged."""
    content = bytearray()
    try:
        machine = make()
        while room.left > 0 and not machine.eof:
            piece = machine.decompress(data, room.step)
            data = getattr(machine, "unconsumed_tail", b"")
            content += piece
            room.left -= len(piece)
            if not piece:
                break
    except Exception:  # damaged: every library has an error of its own for it, if it is here
        room.left -= min(_STEP, _RATIO * len(data))
    return bytes(content)


def _zlib() -> Any:
    return zlib.decompressobj(wbits=47)  # with either header


def _bz2() -> Any:
    import bz2  # some builds of Python lack it, and the next one

    return bz2.BZ2Decompressor()


def _lzma() -> Any:
    import lzma

    return lzma.LZMADecompressor(memlimit=_MOST_MEMORY)


def _base64(text: str) -> bytes:
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(plain + "=" * (-len(plain) % 4))


_DECODERS: tuple[tuple[re.Pattern[str], Callable[[str], bytes]], ...] = (
    (_HEX, bytes.fromhex),
    (_BASE64, _base64),
    (_BASE32, base64.b32decode),
    (_BASE85, base64.b85decode),
)
