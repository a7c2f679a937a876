"""Texts that are packed or encoded, as far as that is cheap to undo."""

import base64
import binascii
import codecs
import re
from collections.abc import Callable, Iterator
from itertools import islice

from coevolve.search.leaks.archives import unpacked
from coevolve.search.leaks.work import Work

SHORTEST = 24
"""Characters of an encoded text; shorter ones hold no question."""

_HEX = re.compile(r"(?:[0-9a-fA-F]{2})++")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]++={0,2}+")
_BASE32 = re.compile(r"[A-Z2-7]++={0,6}+")
_BASE85 = re.compile(r"[0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]++")
_SPACE = re.compile(r"\s++")
_LINE = 20
"""Characters of a line of encoded text, at least on average; words are shorter."""
_CODED = 20_000
_FAST, _SLOW = 10, 150
"""What a coded text costs, and each character of it."""


def text_of(data: bytes) -> str:
    r"""The text of a file; of one that is none, the bytes that can be read.

    >>> text_of("Größe".encode("utf-16")), text_of(b"\xff\x00label")
    ('Größe', '\x00label')
    """
    for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        if data.startswith(mark):
            return data.decode("utf-16", errors="ignore")
    return data.decode("utf-8-sig", errors="ignore")


def decoded(text: str, work: Work | None = None) -> Iterator[str]:
    """What a text may say once it is decoded: base64, base85, base32 or hexadecimal.

    >>> list(decoded("SSBoYXZlIGEgc29yZSB0aHJvYXQu"))
    ['I have a sore throat.']
    """
    if len(text) < SHORTEST:
        return
    work = Work() if work is None else work
    most = len(text) // _LINE
    if sum(1 for _ in islice(_SPACE.finditer(text), most + 1)) > most:
        return
    lines = text.split()
    compact = "".join(lines)
    if len(compact) < max(SHORTEST, _LINE * len(lines)):
        return
    for shape, price, decode in _DECODERS:
        if not shape.fullmatch(compact):
            continue
        if not work.take(1, _CODED + price * len(compact)):
            return
        try:
            data = decode(compact)
        except (ValueError, binascii.Error):
            continue
        yield from _readable(data)
        yield from (text for inner in unpacked(data, work) for text in _readable(inner))


def _readable(data: bytes) -> Iterator[str]:
    """The text that some bytes are, if they are one."""
    try:
        yield data.decode()
    except UnicodeDecodeError:
        return


def _base64(text: str) -> bytes:
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(plain + "=" * (-len(plain) % 4))


_DECODERS: tuple[tuple[re.Pattern[str], int, Callable[[str], bytes]], ...] = (
    (_HEX, _FAST, bytes.fromhex),
    (_BASE64, _FAST, _base64),
    (_BASE32, _SLOW, base64.b32decode),
    (_BASE85, _SLOW, base64.b85decode),
)
