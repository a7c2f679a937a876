"""Texts that are packed or encoded, as far as that is cheap to undo."""

import base64
import binascii
import codecs
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator

SHORTEST = 24
"""Characters of an encoded text; shorter ones hold no question."""
MOST_BYTES = 20_000_000
"""What is unpacked of one text; the rest is left alone."""

_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_BASE32 = re.compile(r"[A-Z2-7]+={0,6}")
_BASE85 = re.compile(r"[0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]+")
_ZIP = b"PK\x03\x04"
_LINE = 20
"""Characters of a line of encoded text, at least on average; words are shorter."""


def text_of(data: bytes) -> str:
    r"""The text of a file; of one that is none, the bytes that can be read.

    >>> text_of("Größe".encode("utf-16")), text_of(b"\xff\x00label")
    ('Größe', '\x00label')
    """
    for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        if data.startswith(mark):
            return data.decode("utf-16", errors="ignore")
    return data.decode("utf-8-sig", errors="ignore")


def decoded(text: str) -> Iterator[str]:
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
        yield from (text for inner in unpacked(data) for text in _readable(inner))


def _readable(data: bytes) -> Iterator[str]:
    """The text that some bytes are, if they are one."""
    try:
        yield data.decode()
    except UnicodeDecodeError:
        return


def unpacked(data: bytes) -> Iterator[bytes]:
    """What is in an archive, or in compressed bytes."""
    if data.startswith(_ZIP):
        yield from _members(data)
        return
    for make in _DECOMPRESSORS:
        try:
            yield make(data)
        except (zlib.error, OSError, ValueError, EOFError, ImportError):
            continue


def _members(data: bytes) -> Iterator[bytes]:
    left = MOST_BYTES
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                with archive.open(name) as member:
                    content = member.read(left)
                left -= len(content)
                yield content
                if left <= 0:
                    return
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, EOFError):
        return
    except (RuntimeError, NotImplementedError):  # locked, or packed in a way Python cannot read
        return


def _zlib(data: bytes) -> bytes:
    return zlib.decompressobj(wbits=47).decompress(data, MOST_BYTES)  # with either header


def _bz2(data: bytes) -> bytes:
    import bz2  # some builds of Python lack it, and the next one

    return bz2.BZ2Decompressor().decompress(data, MOST_BYTES)


def _lzma(data: bytes) -> bytes:
    import lzma

    try:
        return lzma.LZMADecompressor().decompress(data, MOST_BYTES)
    except lzma.LZMAError as error:
        raise ValueError(str(error)) from error


def _base64(text: str) -> bytes:
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(plain + "=" * (-len(plain) % 4))


_DECODERS: tuple[tuple[re.Pattern[str], Callable[[str], bytes]], ...] = (
    (_HEX, bytes.fromhex),
    (_BASE64, _base64),
    (_BASE32, base64.b32decode),
    (_BASE85, base64.b85decode),
)
_DECOMPRESSORS: tuple[Callable[[bytes], bytes], ...] = (_zlib, _bz2, _lzma)
