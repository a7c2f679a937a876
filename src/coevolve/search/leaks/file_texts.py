"""The texts in a candidate's files, decoded where they are encoded.

Reading takes time in proportion to a text, whatever is in it. A quote that nothing closes is
followed to its end once, since what is escaped in a literal is passed over outside as well.
Python's own parser is not asked: of some texts it makes a thousand times their size.

Nothing is believed of what an archive says about itself: zip files are read by the heads of
their members, and every byte that comes out is paid for before the next is asked for.
"""

import base64
import binascii
import codecs
import re
import struct
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, islice, takewhile
from pathlib import PurePosixPath
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any, NamedTuple
from unicodedata import lookup, normalize

MOST = 3_000_000_000
"""What a scan of one candidate may cost. A price is about the nanoseconds that something takes on
a slow machine; no clock is read, so that the same files are always read equally far."""

TEXT, LINE = 20_000, 300
PIECE = 6_000
"""A literal or a field, and what is done with it, but for its characters."""
TOKEN = 600
"""What may be a literal or a digest."""
LITERAL = 6_000
"""A literal of Python, which has a prefix and neighbours."""
ESCAPE = 1_000
PLAIN = 100
"""A character of a text that is all ASCII."""
OTHER = 400
"""A character of any other text, which has to be normalised."""


@dataclass(slots=True)
class Work:
    """What a scan may still cost.

    Args:
        left: What is left of it.
        short: Whether there was not enough for something, which was therefore left out.

    >>> work = Work(left=1_000)
    >>> work.take(3, 300), work.short
    (3, False)
    >>> work.take(3, 50), work.short
    (2, True)
    """

    left: int = MOST
    short: bool = False

    def take(self, count: int, price: int) -> int:
        """How many of some things can be done at a price each; they are paid for."""
        taken = max(0, min(count, self.left // price))
        self.left -= taken * price
        self.short = self.short or taken < count
        return taken

    def text(self, text: str) -> str:
        """As much of a text as can be read; it is paid for, with its lines."""
        price = PLAIN if text.isascii() else OTHER
        if not self.take(1, TEXT):
            return ""
        cost = len(text) * price + text.count("\n") * LINE
        if cost <= self.left:
            self.left -= cost
            return text
        return text[: self.take(len(text), price + LINE)]

    def piece(self, text: str) -> bool:
        """Whether a piece of a text can be read; it is paid for."""
        cost = PIECE + len(text) * (PLAIN if text.isascii() else OTHER)
        return bool(self.take(1, cost))


def unbounded() -> Work:
    """Enough for files that are to be trusted."""
    return Work(left=1_000 * MOST)


_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})"
    r"|N\{([^{}\\\n]{1,90})\}|(.))",
    re.DOTALL,
)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "", "f": "", "v": "", "a": "", "\n": ""}


def unescaped(text: str) -> str:
    r"""A text with its escapes undone, in the ways of Python and JSON.

    >>> unescaped(r"Gr\u00f6\xdfe \N{DIGIT TWO}\!")
    'Größe 2!'
    """
    return _ESCAPE.sub(_meant, text) if "\\" in text else text


def from_bytes(text: str) -> str:
    r"""The text whose bytes these are, one for each sign.

    >>> from_bytes("Gr\xc3\xb6\xc3\x9fe")
    'Größe'
    """
    return text if text.isascii() else text.encode("latin-1", "ignore").decode(errors="ignore")


def _meant(match: re.Match[str]) -> str:
    two, four, eight, octal, name, other = match.groups()
    if other is not None:
        return _CONTROLS.get(other, other)
    if name is not None:
        return _named(name)
    number = int(octal, 8) if octal is not None else int(two or four or eight, 16)
    return chr(number) if number <= 0x10FFFF else ""


def _named(name: str) -> str:
    try:
        return lookup(name)
    except KeyError:
        return name


_STRINGS = (
    r'"""((?:[^"\\]++|\\.|"(?!""))*+)"""'
    r"|'''((?:[^'\\]++|\\.|'(?!''))*+)'''"
    r'|"((?:[^"\\\n]++|\\.)*+)"'
    r"|'((?:[^'\\\n]++|\\.)*+)'"
    r"|(?:\\.)++"
)
_DATA = re.compile(_STRINGS, re.DOTALL)
_PYTHON = re.compile(_STRINGS + r"|#[^\n]*+", re.DOTALL)
_PREFIX = re.compile(r"(?<!\w)(?:[bfrtu]|[bft]r|r[bft])\Z", re.IGNORECASE)
_BETWEEN = re.compile(r"(?:\s++|\\\n|#[^\n]*+|[bfrtu]{1,2}(?=['\"]))*+", re.IGNORECASE)
_FIELD = re.compile(r"(?<!\{)\{(?!\{)[^{}]*+(?:\{[^{}]*+\}[^{}]*+)*+\}")


class Part(NamedTuple):
    """A text, and the line it begins in."""

    line: int
    text: str


class _Token(NamedTuple):
    """A string literal as it is written, and where."""

    line: int
    start: int
    end: int
    prefix: str
    body: str


def literals(source: str, work: Work | None = None, *, python: bool = False) -> Iterator[Part]:
    r"""The string literals of a text, in the order in which they stand there.

    In Python, comments have none, prefixes count, and literals in a row are one; if they are on
    several lines, each follows by itself too. Anything else, such as JSON, is searched for
    quotes. It ends early if there is not enough work left.

    >>> list(literals("x = 'I am '   'dizzy'  # isn't it?", python=True))
    [Part(line=1, text='I am dizzy')]
    >>> list(literals('{"asked":\n "\\u5934\\u6655"}'))
    [Part(line=1, text='asked'), Part(line=2, text='头晕')]
    """
    work = Work() if work is None else work
    if python:
        yield from _in_rows(source, work)
        return
    for token in _tokens(source, _DATA, work):
        yield Part(token.line, _text(token.body, "", work))


def _tokens(source: str, shape: re.Pattern[str], work: Work) -> Iterator[_Token]:
    line, read = 1, 0
    for match in shape.finditer(source):
        if not work.take(1, TOKEN):
            return
        if match.lastindex is None:  # a comment, or escaped characters
            continue
        start = match.start()
        line += source.count("\n", read, start)
        read = start
        prefix = _PREFIX.search(source, max(0, start - 2), start)
        said = prefix[0].lower() if prefix else ""
        yield _Token(line, start, match.end(), said, match[match.lastindex])


def _in_rows(source: str, work: Work) -> Iterator[Part]:
    """The literals of Python, those joined that only white space and comments separate."""
    row: list[Part] = []
    lines, end = False, 0
    for token in _tokens(source, _PYTHON, work):
        if not work.take(1, LITERAL):
            break
        gap = _BETWEEN.match(source, end)
        if gap is None or gap.end() < token.start:
            yield from _joined(row, lines=lines)
            row, lines = [], False
        lines = lines or (bool(row) and gap is not None and "\n" in gap[0])
        first, *others = _said(token, work)
        row.append(first)
        if others:  # a replacement field ends a row
            yield from _joined(row, lines=lines)
            yield from others
            row, lines = [], False
        end = token.end
    yield from _joined(row, lines=lines)


def _joined(row: list[Part], *, lines: bool) -> Iterator[Part]:
    if row:
        yield Part(row[0].line, "".join(part.text for part in row))
    if lines:
        yield from row


def _said(token: _Token, work: Work) -> list[Part]:
    """What a literal says: one text, or those between its replacement fields and in them."""
    line, body, prefix = token.line, token.body, token.prefix
    if "{" not in body or not ("f" in prefix or "t" in prefix):
        return [Part(line, _text(body, prefix, work))]
    most = sum(map(body.count, "{'\""))
    if work.take(most, LITERAL) < most:
        return [Part(line, body)]
    texts = (_text(text, prefix, work) for text in _FIELD.split(body))
    said = [Part(line, text.replace("{{", "{").replace("}}", "}")) for text in texts]
    if "'" in body or '"' in body:
        said += [Part(line + part.line - 1, part.text) for part in literals(body, work)]
    return said


def _text(body: str, prefix: str, work: Work) -> str:
    escapes = 0 if "r" in prefix else body.count("\\")
    if escapes and work.take(escapes, ESCAPE) == escapes:
        body = unescaped(body)
    return from_bytes(body) if "b" in prefix else body


_NOT_WORDS = re.compile(r"[\W_]+")
_MARKS = re.compile(r"[^\w\x00-\x7f]{30}")
"""More marks in a row than a letter has; to sort them takes the square of their number."""
_HUGE = re.compile("[\u3300-\u3357\ufdfa\ufdfb]")
"""Signs that stand for whole words and phrases, and would grow to these."""
_KEPT = (ascii_lowercase + ascii_uppercase + digits).encode()
_DROPPED = bytes(set(range(128)) - set(_KEPT))
_FOLDED = bytes.maketrans(ascii_uppercase.encode(), ascii_lowercase.encode())


def squeezed(text: str) -> str:
    r"""The letters and digits of a text alone, without regard to case and width.

    What is left is the same for a text in one piece and for one that is broken into lines or
    strings, in whatever quotes.

    >>> squeezed("I've been\n  Ｄizzy, a lot!")
    'ivebeendizzyalot'
    """
    if text.isascii():
        return text.encode().translate(_FOLDED, _DROPPED).decode()
    calm = _MARKS.sub(r"\g<0> ", _HUGE.sub("", text))
    return _NOT_WORDS.sub("", normalize("NFKC", calm).casefold())


def weight(text: str) -> int:
    """How much a squeezed text says: a sign of a script like Chinese counts for two letters.

    >>> weight("dizzy"), weight("头晕")
    (5, 4)
    """
    return len(text) if text.isascii() else len(text) + sum(sign >= "\u2e80" for sign in text)


class Stream:
    """Parts of a file in a row, squeezed into one text; `plain` are they, squeezed one by one."""

    def __init__(
        self, parts: Sequence[Part], plain: Sequence[str], *, backwards: bool = False
    ) -> None:
        self._parts = parts
        self._step = -1 if backwards else 1
        self.text = "".join(text[:: self._step] for text in plain)

    def line(self, position: int) -> int:
        """The line of what stands at a position."""
        starts, lines = self._places
        return lines[bisect_right(starts, position) - 1]

    @cached_property
    def _places(self) -> tuple[list[int], list[int]]:
        """Where each line begins in the text; the lines of a long part count one by one."""
        lengths, lines = [0], []
        for part in self._parts:
            here = enumerate(part.text.split("\n"), start=part.line)
            for number, line in list(here)[:: self._step]:
                lengths.append(len(squeezed(line)))
                lines.append(number)
        return list(accumulate(lengths))[:-1], lines


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


_STREAM = 50_000
"""What a compressed stream costs, whatever is in it."""
_QUICK, _ARCHIVES_SLOW = 10, 60
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
    price = _QUICK if make in (_zlib, _raw) else _ARCHIVES_SLOW
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


_TEXTS_LINE = re.compile(r"[^\n]{5,}+")
_TEXTS_FIELD = re.compile(r"[^\n\t,;|]{5,}+")
"""What stands between the commas or tabs of a line; nothing is told by less than five signs."""


@dataclass(frozen=True, kw_only=True)
class Texts:
    """A file as the scan reads it.

    Args:
        raw: Its text.
        streams: Its text, its literals and what is encoded in them.
        units: Texts that stand alone: literals, and in data also lines and fields.
        squeezed_units: The same, squeezed, without those of which nothing is left.
    """

    raw: str
    streams: tuple[Stream, ...]
    units: tuple[Part, ...]
    squeezed_units: tuple[Part, ...]


def texts_of(path: str, data: bytes, work: Work | None = None) -> Texts:
    """The texts in a file, those in archives and encoded literals included.

    `work` is what reading may cost, of this file and of others that share it.
    """
    work = Work() if work is None else work
    first = _read(Part(1, text_of(data)), work, python=path.endswith(".py"))
    packed = (Part(1, text_of(inner)) for inner in unpacked(data, work))
    return _together(first, packed, work)


def names_of(path: str, work: Work | None = None) -> Texts:
    """The texts in the name of a file: all of it, and those of its folders, with line 0.

    >>> [unit.text for unit in names_of("known/trip-001.json").units]
    ['known/trip-001.json', 'known', 'trip-001.json', 'trip-001']
    """
    work = Work() if work is None else work
    steps = PurePosixPath(path).parts
    names = [path, *steps, *(step.partition(".")[0] for step in steps)]
    units = list(_paid((Part(0, name) for name in dict.fromkeys(names)), work))
    return _together(_texts(Part(0, work.text(path)), [], units), iter(()), work)


def _together(first: Texts, others: Iterator[Part], work: Work) -> Texts:
    """A text and others, with what is encoded in the first."""
    found = [first, *(_read(other, work) for other in others)]
    for part in (*first.units, Part(1, first.raw)):
        found += [_read(Part(part.line, text), work) for text in decoded(part.text, work)]
    return Texts(
        raw=first.raw,
        streams=tuple(stream for texts in found for stream in texts.streams),
        units=tuple(unit for texts in found for unit in texts.units),
        squeezed_units=tuple(unit for texts in found for unit in texts.squeezed_units),
    )


def _read(whole: Part, work: Work, *, python: bool = False) -> Texts:
    whole = Part(whole.line, work.text(whole.text))
    found = literals(whole.text, work, python=python)
    quoted = [Part(p.line + whole.line - 1, p.text) for p in _paid(found, work)]
    return _texts(whole, quoted, [] if python else list(_paid(_fields(whole), work)))


def _paid(parts: Iterator[Part], work: Work) -> Iterator[Part]:
    return takewhile(lambda part: work.piece(part.text), parts)


def _texts(whole: Part, quoted: list[Part], others: list[Part]) -> Texts:
    units = (*quoted, *others)
    plain = [squeezed(unit.text) for unit in units]
    said = plain[: len(quoted)]
    streams = (
        Stream([whole], [squeezed(whole.text)]),
        Stream(quoted, said),
        Stream(quoted, said, backwards=True),
    )
    return Texts(
        raw=whole.text,
        streams=tuple(stream for stream in streams if stream.text),
        units=units,
        squeezed_units=tuple(
            Part(unit.line, text) for unit, text in zip(units, plain, strict=True) if text
        ),
    )


def _fields(whole: Part) -> Iterator[Part]:
    """The lines of a text, and what stands between the commas or tabs of each."""
    text, number, read = whole.text, whole.line, 0
    for line in _TEXTS_LINE.finditer(text):
        number += text.count("\n", read, line.start())
        read = line.start()
        yield Part(number, line[0])
        for field in _TEXTS_FIELD.finditer(text, *line.span()):
            if field.span() != line.span():
                yield Part(number, field[0])
