"""The texts in a candidate's files, for the leak scan: decoded, and reduced to letters and digits.

Reading takes time in proportion to the size of a file, whatever the file contains. Python's own
parser is not used: it needs a thousand times the size of some texts.
"""

import base64
import binascii
import codecs
import re
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, takewhile
from pathlib import PurePosixPath
from string import ascii_lowercase, ascii_uppercase, digits
from typing import NamedTuple
from unicodedata import normalize

MOST_WORK = 3_000_000_000
"""The work allowed for one candidate. Prices are about nanoseconds on a slow machine. No clock is
read, so the same files are always read to the same place."""

TEXT, LINE = 20_000, 300
"""The price of a text and of each of its lines."""
PIECE = 6_000
"""The price of a literal or a field, without its characters."""
TOKEN, ESCAPE = 600, 1_000
"""The price of a match that may be a literal, and of an escape sequence."""
ASCII, OTHER = 100, 400
"""The price of a character of an ASCII text, and of any other text, which is normalized."""
CODED, CODED_BYTE = 20_000, 10
"""The price of decoding a text, and of each of its characters."""
STREAM = 200_000
"""The price of a compressed stream, which covers one `_STEP` that ends in an error."""


@dataclass(slots=True)
class Work:
    """The work that a scan may still do.

    Args:
        left: The amount that is left.
        short: Whether something was skipped because its price was higher.

    >>> work = Work(left=1_000)
    >>> work.pay(900), work.pay(200), work.short
    (True, False, True)
    """

    left: int = MOST_WORK
    short: bool = False

    def pay(self, price: int) -> bool:
        """Pay a price, if enough is left."""
        if price > self.left:
            self.short = True
            return False
        self.left -= price
        return True

    def read(self, text: str) -> str:
        """As much of a text as can be paid for."""
        price = ASCII if text.isascii() else OTHER
        if not self.pay(TEXT):
            return ""
        if not self.pay(len(text) * price + text.count("\n") * LINE):
            text = text[: self.left // (price + LINE)]
            self.left -= len(text) * (price + LINE)
        return text

    def piece(self, text: str) -> bool:
        """Pay for a piece of a text, if enough is left."""
        return self.pay(PIECE + len(text) * (ASCII if text.isascii() else OTHER))


def unbounded() -> Work:
    """Enough work for trusted files."""
    return Work(left=1_000 * MOST_WORK)


class Part(NamedTuple):
    """A text and the line it begins in."""

    line: int
    text: str


_NOT_WORDS = re.compile(r"[\W_]+")
_MARKS = re.compile(r"[^\w\x00-\x7f]{30}")
"""More combining marks than a letter has; sorting them takes the square of their number."""
_HUGE = re.compile("[\u3300-\u3357\ufdfa\ufdfb]")
"""Characters that NFKC expands to whole words and phrases."""
_KEPT = (ascii_lowercase + ascii_uppercase + digits).encode()
_DROPPED = bytes(set(range(128)) - set(_KEPT))
_FOLDED = bytes.maketrans(ascii_uppercase.encode(), ascii_lowercase.encode())


def squeezed(text: str) -> str:
    r"""The letters and digits of a text, without regard to case and width.

    The result is the same for a text in one piece and for one that is broken into lines or
    strings, in any quotes.

    >>> squeezed("I've been\n  Ｄizzy, a lot!")
    'ivebeendizzyalot'
    """
    if text.isascii():
        return text.encode().translate(_FOLDED, _DROPPED).decode()
    bounded = _MARKS.sub(r"\g<0> ", _HUGE.sub("", text))
    return _NOT_WORDS.sub("", normalize("NFKC", bounded).casefold())


def weight(text: str) -> int:
    """The length of a squeezed text; a character of a script like Chinese counts as two letters.

    >>> weight("dizzy"), weight("头晕")
    (5, 4)
    """
    return len(text) if text.isascii() else len(text) + sum(char >= "\u2e80" for char in text)


class Stream:
    """Parts of a file in a row, squeezed into one text; `plain` has them squeezed one by one."""

    def __init__(
        self, parts: Sequence[Part], plain: Sequence[str], *, backwards: bool = False
    ) -> None:
        self._parts = parts
        self._step = -1 if backwards else 1
        self.text = "".join(text[:: self._step] for text in plain)

    def line(self, position: int) -> int:
        """The line of the file at a position of the text."""
        starts, lines = self._places
        return lines[bisect_right(starts, position) - 1]

    @cached_property
    def _places(self) -> tuple[list[int], list[int]]:
        """The position at which each line begins, and the number of the line."""
        lengths, lines = [0], []
        for part in self._parts:
            numbered = enumerate(part.text.split("\n"), start=part.line)
            for number, line in list(numbered)[:: self._step]:
                lengths.append(len(squeezed(line)))
                lines.append(number)
        return list(accumulate(lengths))[:-1], lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """A file as the scan reads it.

    Args:
        units: Texts that stand alone: literals, and in data also lines and fields.
        squeezed_units: The same, squeezed, without empty ones.
        streams: The text of the file, its literals in a row, and these backwards.
    """

    units: tuple[Part, ...]
    squeezed_units: tuple[Part, ...]
    streams: tuple[Stream, ...]


def texts_of(path: str, data: bytes, work: Work) -> Texts:
    """The texts in a file, and those encoded in its literals, lines and fields.

    `work` is the work allowed, which several files may share. It is marked as short if the file
    is not text: then only the readable parts of the file are returned.
    """
    text, is_text = _decoded_file(data)
    work.short = work.short or not is_text
    whole = Part(1, work.read(text))
    return _with_decoded(whole, _read(whole, work, python=path.endswith(".py")), work)


def names_of(path: str, work: Work) -> Texts:
    """The texts in the name of a file: the path and its steps, all in line 0.

    >>> [unit.text for unit in names_of("known/trip-001.json", Work()).units]
    ['known/trip-001.json', 'known', 'trip-001.json', 'trip-001']
    """
    steps = PurePosixPath(path).parts
    names = [path, *steps, *(step.partition(".")[0] for step in steps)]
    units = list(_paid((Part(0, name) for name in dict.fromkeys(names)), work))
    whole = Part(0, work.read(path))
    return _with_decoded(whole, _texts(whole, [], units), work)


def _with_decoded(whole: Part, texts: Texts, work: Work) -> Texts:
    """The texts of a file, with what is encoded in them."""
    found = [texts]
    for part in (*texts.units, whole):
        for text in decoded(part.text, work):
            found.append(_read(Part(part.line, work.read(text)), work))
    return Texts(
        units=tuple(unit for one in found for unit in one.units),
        squeezed_units=tuple(unit for one in found for unit in one.squeezed_units),
        streams=tuple(stream for one in found for stream in one.streams),
    )


def _read(whole: Part, work: Work, *, python: bool = False) -> Texts:
    found = literals(whole.text, work, python=python)
    quoted = [Part(part.line + whole.line - 1, part.text) for part in _paid(found, work)]
    return _texts(whole, quoted, [] if python else list(_paid(_fields(whole), work)))


def _paid(parts: Iterable[Part], work: Work) -> Iterator[Part]:
    return takewhile(lambda part: work.piece(part.text), parts)


def _texts(whole: Part, quoted: list[Part], others: list[Part]) -> Texts:
    units = (*quoted, *others)
    plain = [squeezed(unit.text) for unit in units]
    in_quotes = plain[: len(quoted)]
    streams = (
        Stream([whole], [squeezed(whole.text)]),
        Stream(quoted, in_quotes),
        Stream(quoted, in_quotes, backwards=True),
    )
    pairs = zip(units, plain, strict=True)
    return Texts(
        units=units,
        squeezed_units=tuple(Part(unit.line, text) for unit, text in pairs if text),
        streams=tuple(stream for stream in streams if stream.text),
    )


_LINE = re.compile(r"[^\n]{5,}+")
_FIELD = re.compile(r"[^\n\t,;|]{5,}+")
"""The text between the commas or tabs of a line; shorter ones identify nothing."""


def _fields(whole: Part) -> Iterator[Part]:
    """The lines of a text, and the fields of each."""
    text, number, read = whole.text, whole.line, 0
    for line in _LINE.finditer(text):
        number += text.count("\n", read, line.start())
        read = line.start()
        yield Part(number, line[0])
        for field in _FIELD.finditer(text, *line.span()):
            if field.span() != line.span():
                yield Part(number, field[0])


_STRINGS = (
    r'"""((?:[^"\\]++|\\.|"(?!""))*+)"""'
    r"|'''((?:[^'\\]++|\\.|'(?!''))*+)'''"
    r'|"((?:[^"\\\n]++|\\.)*+)"'
    r"|'((?:[^'\\\n]++|\\.)*+)'"
    r"|(?:\\.)++"  # outside a literal too: an open quote is followed to its end only once
)
_DATA = re.compile(_STRINGS, re.DOTALL)
_PYTHON = re.compile(_STRINGS + r"|#[^\n]*+", re.DOTALL)
_PREFIX = re.compile(r"(?<!\w)(?:[bfrtu]|[bft]r|r[bft])\Z", re.IGNORECASE)
_BETWEEN = re.compile(r"(?:\s++|\\\n|#[^\n]*+|[bfrtu]{1,2}(?=['\"]))*+", re.IGNORECASE)


def literals(source: str, work: Work, *, python: bool = False) -> Iterator[Part]:
    r"""The string literals of a text, in order, as long as enough work is left.

    In Python, comments have none, prefixes count, and adjacent literals are one; if these are on
    several lines, each of them follows too. Any other text, such as JSON, is searched for quotes.

    >>> list(literals("x = 'I am '   'dizzy'  # isn't it?", Work(), python=True))
    [Part(line=1, text='I am dizzy')]
    >>> list(literals('{"asked":\n "\\u5934\\u6655"}', Work()))
    [Part(line=1, text='asked'), Part(line=2, text='头晕')]
    """
    row: list[Part] = []
    line, read, end = 1, 0, 0
    for match in (_PYTHON if python else _DATA).finditer(source):
        if not work.pay(TOKEN):
            break
        if match.lastindex is None:  # a comment, or escaped characters
            continue
        start = match.start()
        line += source.count("\n", read, start)
        read = start
        body = match[match.lastindex]
        if not python:
            yield Part(line, _value(body, "", work))
            continue
        if not work.pay(PIECE):
            break
        gap = _BETWEEN.match(source, end)
        if gap is None or gap.end() < start:
            yield from _joined(row)
            row = []
        prefix = _PREFIX.search(source, max(0, start - 2), start)
        row.append(Part(line, _value(body, prefix[0].lower() if prefix else "", work)))
        end = match.end()
    yield from _joined(row)


def _joined(row: list[Part]) -> Iterator[Part]:
    """Adjacent literals as one, followed by each of them if they are on several lines."""
    if row:
        yield Part(row[0].line, "".join(part.text for part in row))
    if row and row[-1].line > row[0].line:
        yield from row


def _value(body: str, prefix: str, work: Work) -> str:
    escapes = 0 if "r" in prefix else body.count("\\")
    if escapes and work.pay(escapes * ESCAPE):
        body = unescaped(body)
    if "b" in prefix and not body.isascii():
        body = body.encode("latin-1", "ignore").decode(errors="ignore")
    return body


_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))", re.DOTALL
)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "", "f": "", "v": "", "a": "", "\n": ""}


def unescaped(text: str) -> str:
    r"""A text with the escape sequences of Python and JSON decoded.

    >>> unescaped(r"Gr\u00f6\xdfe\!")
    'Größe!'
    """
    return _ESCAPE.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    two, four, eight, octal, other = match.groups()
    if other is not None:
        return _CONTROLS.get(other, other)
    number = int(octal, 8) if octal is not None else int(two or four or eight, 16)
    return chr(number) if number <= 0x10FFFF else ""


def _decoded_file(data: bytes) -> tuple[str, bool]:
    """The text of a file, and whether all of it is text; in UTF-8, or in UTF-16 with a mark."""
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    coding = "utf-16" if wide else "utf-8-sig"
    try:
        return data.decode(coding), True
    except UnicodeDecodeError:
        return data.decode(coding, errors="ignore"), False


SHORTEST = 24
"""Characters of an encoded text; shorter ones hold no question."""
LINE_LENGTH = 20
"""Characters of a line of encoded text, on average at least; words are shorter."""

_HEX = re.compile(r"(?:[0-9a-fA-F]{2})++")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]++={0,2}+")
_STEP = 16_384


def decoded(text: str, work: Work) -> Iterator[str]:
    """The text encoded in a text as base64 or hexadecimal, compressed by zlib or gzip or not.

    >>> list(decoded("SSBoYXZlIGEgc29yZSB0aHJvYXQu", Work()))
    ['I have a sore throat.']
    """
    if len(text) < SHORTEST:
        return
    lines = text.split()
    compact = "".join(lines)
    if len(compact) < max(SHORTEST, LINE_LENGTH * len(lines)):
        return
    for shape, decode in ((_HEX, bytes.fromhex), (_BASE64, _from_base64)):
        if not shape.fullmatch(compact):
            continue
        if not work.pay(CODED + CODED_BYTE * len(compact)):
            return
        try:
            data = decode(compact)
        except binascii.Error:
            continue
        for content in (data, _inflated(data, work)):
            text, is_text = _decoded_file(content)
            if content and is_text:
                yield text


def _from_base64(text: str) -> bytes:
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(plain + "=" * (-len(plain) % 4))


def _inflated(data: bytes, work: Work) -> bytes:
    """The decompressed bytes; empty if they are neither zlib nor gzip.

    Every byte that comes out is paid for before the next is requested.
    """
    zlib_head = data[:1] == b"\x78" and int.from_bytes(data[:2]) % 31 == 0
    if not (zlib_head or data.startswith(b"\x1f\x8b")) or not work.pay(STREAM):
        return b""
    machine, content = zlib.decompressobj(wbits=47), bytearray()  # 47: either header
    fed, at = b"", 0
    try:
        while not machine.eof:
            if not fed:
                fed, at = data[at : at + _STEP], at + _STEP
            piece, given = machine.decompress(fed, _STEP), len(fed)
            fed = machine.unconsumed_tail
            content += piece
            if not (piece or given) or not work.pay((len(piece) + given - len(fed)) * ASCII):
                break
    except zlib.error:
        return b""
    return bytes(content)
