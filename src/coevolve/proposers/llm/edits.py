"""Edits of a file: blocks of SEARCH and REPLACE, or the hunks of a diff."""

import re
from typing import NamedTuple

from coevolve.errors import InputError

_SEARCH = re.compile(r"\s*<{5,9}\s*(?:SEARCH|ORIGINAL)?\s*$", re.IGNORECASE)
_DIVIDER = re.compile(r"\s*={5,9}\s*$")
_REPLACE = re.compile(r"\s*>{5,9}\s*(?:REPLACE|UPDATED)?\s*$", re.IGNORECASE)
_SHOWN = 80


class Edit(NamedTuple):
    """Lines to find, and the lines that replace them."""

    search: tuple[str, ...]
    replace: tuple[str, ...]


class EditError(InputError):
    """The edit cannot be applied; the message is sent back to the model."""


def has_edits(content: str) -> bool:
    """Whether a block contains the marks of an edit."""
    return any(_SEARCH.match(line) for line in content.split("\n"))


def read_edits(content: str) -> tuple[Edit, ...]:
    r"""The edits between marks, without incomplete ones.

    >>> read_edits("<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n")
    (Edit(search=('x = 1',), replace=('x = 2',)),)
    """
    edits: list[Edit] = []
    search: list[str] = []
    replace: list[str] = []
    part: list[str] | None = None
    for text in content.split("\n"):
        if _SEARCH.match(text) and part is not replace:
            search, replace = [], []
            part = search
        elif part is search and _DIVIDER.match(text):
            part = replace
        elif part is replace and _REPLACE.match(text):
            edits.append(Edit(tuple(search), tuple(replace)))
            part = None
        elif part is not None:
            part.append(text)
    return tuple(edits)


def has_hunks(content: str) -> bool:
    """Whether a block is a diff."""
    lines = content.lstrip().split("\n")
    return any(line.startswith("@@") for line in lines) and any(
        line.startswith(("+", "-")) for line in lines
    )


def read_hunks(content: str) -> tuple[Edit, ...]:
    r"""The hunks of a diff as edits, without their line numbers, which are rarely right.

    >>> read_hunks("--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n")
    (Edit(search=('x = 1', 'y = 2'), replace=('x = 1', 'y = 3')),)
    """
    edits: list[Edit] = []
    for hunk in re.split(r"^@@.*$", content.rstrip("\n"), flags=re.MULTILINE)[1:]:
        lines = hunk.removeprefix("\n").removesuffix("\n").split("\n")
        lines = [line for line in lines if not line.startswith(("--- ", "+++ ", "\\ No newline"))]
        old = tuple(line[1:] for line in lines if not line.startswith("+"))
        new = tuple(line[1:] for line in lines if not line.startswith("-"))
        edits.append(Edit(old, new))
    return tuple(edits)


def apply_edits(source: str, edits: tuple[Edit, ...]) -> str:
    r"""A file after its edits, in order.

    The lines to find must occur exactly once. If they do not occur exactly, white space is
    ignored, and the new lines are indented like the old ones.

    Raises:
        EditError: The lines of an edit do not occur, or occur several times.

    >>> apply_edits("def f():\n    x = 1\n", (Edit(("x = 1",), ("x = 2",)),))
    'def f():\n    x = 2\n'
    """
    lines = source.split("\n")
    for number, edit in enumerate(edits, 1):
        try:
            lines = _applied(lines, edit)
        except EditError as error:
            raise EditError(f"edit {number} of {len(edits)} {error}") from None
    return "\n".join(lines)


def _applied(lines: list[str], edit: Edit) -> list[str]:
    search, replace = _trimmed(edit)
    if not search:
        if any(map(str.strip, lines)):
            raise EditError("has an empty SEARCH part, but the file is not empty")
        return list(replace)
    for same in (str, str.rstrip, _squeezed):
        wanted = [same(line) for line in search]
        there = [same(line) for line in lines]
        places = [i for i in range(len(lines)) if there[i : i + len(wanted)] == wanted]
        if len(places) > 1:
            raise EditError(
                f"matches {len(places)} places ({_shown(search)}); add the lines around it"
            )
        if places:
            at = places[0]
            put = replace if same is not _squeezed else _indented(replace, search, lines[at:])
            return [*lines[:at], *put, *lines[at + len(search) :]]
    raise EditError(f"does not match any lines of the file ({_shown(search)})")


def _trimmed(edit: Edit) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """An edit without the empty lines at the beginning and end of both parts."""
    search, replace = edit
    while search and not search[0].strip() and (not replace or not replace[0].strip()):
        search, replace = search[1:], replace[1:]
    while search and not search[-1].strip() and (not replace or not replace[-1].strip()):
        search, replace = search[:-1], replace[:-1]
    return (search if any(map(str.strip, search)) else ()), replace


def _indented(
    replace: tuple[str, ...], search: tuple[str, ...], found: list[str]
) -> tuple[str, ...]:
    """The new lines, indented like the old ones."""
    written = next((line for line in search if line.strip()), "")
    there = next((line for line in found if line.strip()), "")
    more = _indent(there) - _indent(written)
    if more >= 0:
        return tuple(" " * more + line if line.strip() else line for line in replace)
    return tuple(line[min(-more, _indent(line)) :] for line in replace)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _squeezed(line: str) -> str:
    return " ".join(line.split())


def _shown(search: tuple[str, ...]) -> str:
    first = next((line.strip() for line in search if line.strip()), "")
    return f"SEARCH begins with {first[:_SHOWN]!r}"
