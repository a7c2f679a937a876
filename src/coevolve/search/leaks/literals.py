"""String literals of source code and data.

Reading takes time in proportion to a text, whatever is in it. A quote that nothing closes is
followed to its end once, since what is escaped in a literal is passed over outside as well.
Python's own parser is not asked: of some texts it makes a thousand times their size.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from coevolve.search.leaks.escapes import from_bytes, unescaped
from coevolve.search.leaks.work import ESCAPE, LITERAL, TOKEN, Work

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
