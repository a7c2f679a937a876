"""String literals of source code and data."""

import ast
import re
import warnings
from collections.abc import Iterator
from typing import NamedTuple

_LONGEST_TREE = 1_000_000
"""Characters of a Python file that is worth a syntax tree."""
_QUOTED = re.compile(
    r'"""(.*?)"""'
    r"|'''(.*?)'''"
    r'|"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"'
    r"|'([^'\\\n]*+(?:\\.[^'\\\n]*+)*+)'",
    re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))", re.DOTALL
)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "", "f": "", "v": "", "a": "", "\n": ""}


class Part(NamedTuple):
    """A text, and the line it begins in."""

    line: int
    text: str


def literals(source: str, *, python: bool = False) -> list[Part]:
    r"""The string literals of a text, in the order in which they stand there.

    Python's own parser reads Python, unless it refuses it. Anything else, such as JSON, is
    searched for quotes.

    >>> literals("x = 'I am '   'dizzy'", python=True)
    [Part(line=1, text='I am dizzy')]
    >>> literals('{"asked":\n "\\u5934\\u6655"}')
    [Part(line=1, text='asked'), Part(line=2, text='头晕')]
    """
    if python and len(source) <= _LONGEST_TREE:
        tree = _tree(source)
        if tree is not None:
            return _constants(tree)
    return list(_quoted(source))


def _tree(source: str) -> ast.Module | None:
    """The syntax tree, if there is one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a candidate's escapes are no concern of ours
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _constants(tree: ast.Module) -> list[Part]:
    found = [
        (node.lineno, node.col_offset, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    ]
    found.sort(key=lambda constant: constant[:2])
    return [
        Part(line, value if isinstance(value, str) else value.decode(errors="ignore"))
        for line, _, value in found
    ]


def _quoted(source: str) -> Iterator[Part]:
    line, read = 1, 0
    for match in _QUOTED.finditer(source):
        line += source.count("\n", read, match.start())
        read = match.start()
        text = match[match.lastindex or 0]
        yield Part(line, _ESCAPE.sub(_unescaped, text) if "\\" in text else text)


def _unescaped(match: re.Match[str]) -> str:
    two, four, eight, octal, other = match.groups()
    if other is not None:
        return _CONTROLS.get(other, other)
    number = int(octal, 8) if octal is not None else int(two or four or eight, 16)
    return chr(number) if number <= 0x10FFFF else ""
