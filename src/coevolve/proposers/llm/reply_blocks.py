"""Fenced blocks of a reply, and the paths of the files in them.

Markdown closes a block at the first fence that is long enough. That splits a file whose docstring
contains a fence. Here a block of Python ends at the first fence before which it is a program, and
any other block where all inner fences are closed.
"""

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import NamedTuple

_MARKER = re.compile(r"\s*(?:<{5,9}|={5,9}|>{5,9})(?:\s*(?:SEARCH|REPLACE|ORIGINAL|UPDATED))?\s*$")
_NEXT = re.compile(r"#{2,6}\s*candidate\b\s*(?:\d|[:—–-]|$)", re.IGNORECASE)
_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})(?P<info>.*)$")
_WRAPPERS = {"markdown", "md"}
_TRIES = 30
_TRIES_IN_ALL = 600
"""Most fences tried as the end of Python, per block and per reply: nonsense takes minutes."""
_DEEPEST = 1_000
"""Fences that are searched for the one that closes a block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block.

    Args:
        info: The text after its opening fence.
        content: Its content.
        before: The text between the previous block and this one.
        closed: Whether it has a closing fence, or something else follows it.
    """

    info: str
    content: str
    before: str
    closed: bool

    @property
    def language(self) -> str:
        """The first word of the info, unless it is a path."""
        word = re.split(r"[\s:{=]", self.info.strip(), maxsplit=1)[0].lower()
        return "" if "." in word or "/" in word else word


def blocks(text: str) -> tuple[list[Block], str]:
    r"""The blocks of a text, and the text after the last of them.

    >>> [block], rest = blocks("Here:\n```py path=a.py\nx = '''\n```\n'''\n```\nDone.")
    >>> block.info, block.content, rest
    ('py path=a.py', "x = '''\n```\n'''\n", 'Done.')
    """
    return _Scanner(text.split("\n")).scan()


def is_program(source: str) -> bool:
    """Whether a text is Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in strings, for example
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


class _Fence(NamedTuple):
    line: int
    indent: int
    mark: str
    info: str
    path: str | None

    def closed_by(self, other: "_Fence") -> bool:
        return not other.info and other.mark.startswith(self.mark) and self.near(other)

    def near(self, other: "_Fence") -> bool:
        """Whether another fence is not indented like the content of a file."""
        return other.indent <= self.indent + 3


class _Scanner:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._fences = [fence for i, text in enumerate(lines) if (fence := _fence(i, text))]
        self._pathed = [fence for fence in self._fences if fence.path]
        self._titles = [i for i, text in enumerate(lines) if _NEXT.match(text)]
        self._tries = _TRIES_IN_ALL

    def scan(self) -> tuple[list[Block], str]:
        found: list[Block] = []
        before = at = 0
        for number, fence in enumerate(self._fences):
            if fence.line < at or (fence.info.lower() in _WRAPPERS and self._blank(fence.line)):
                continue
            end, closed = self._end(fence, number)
            fenced = closed is not None
            content = self._content(fence, end)
            if fence.info or content.strip():
                found.append(
                    Block(
                        info=fence.info,
                        content=content if fenced else f"{content.rstrip()}\n",
                        before="\n".join(self._lines[before : fence.line]),
                        closed=fenced or end < len(self._lines),
                    )
                )
                before = end + fenced
            at = end + fenced
        return found, "\n".join(self._lines[before:])

    def _end(self, opening: _Fence, number: int) -> tuple[int, _Fence | None]:
        """The line at which a block ends, and its closing fence; None if the next file begins."""
        stop = self._stop(opening)
        inside = takewhile(lambda fence: fence.line < stop, self._after(number))
        closers = filter(opening.closed_by, inside)
        first = next(closers, None)
        if first is None:
            return stop, None
        tried = [first, *islice(closers, _TRIES - 1)]
        body = self._lines[opening.line + 1 : first.line]
        if any(map(_MARKER.match, body)):
            closer = self._after_edits(opening, tried)
        else:
            closer = self._after_program(opening, tried) or self._nested(opening, number, stop)
        return (closer or first).line, closer or first

    def _stop(self, opening: _Fence) -> int:
        """The line that must be the beginning of the next file or candidate."""
        place = bisect_right(self._titles, opening.line)
        title = self._titles[place] if place < len(self._titles) else len(self._lines)
        first = bisect_right(self._pathed, opening.line, key=lambda fence: fence.line)
        for fence in islice(self._pathed, first, None):
            if fence.mark.startswith(opening.mark) and opening.near(fence):
                return min(fence.line, title)
        return title

    def _after_edits(self, opening: _Fence, tried: list[_Fence]) -> _Fence | None:
        """The first fence outside an edit; an edit may contain fences too."""
        for closer in tried:
            body = self._lines[opening.line + 1 : closer.line]
            last = next(filter(_MARKER.match, reversed(body)))
            if last.strip().startswith(">"):
                return closer
        return None

    def _after_program(self, opening: _Fence, tried: list[_Fence]) -> _Fence | None:
        """The first fence before which Python is complete."""
        if not (opening.path or "").endswith(".py") and not opening.info.lower().startswith("py"):
            return None
        for closer in tried[: self._tries]:
            self._tries -= 1
            if is_program(self._content(opening, closer.line)):
                return closer
        return None

    def _nested(self, opening: _Fence, number: int, stop: int) -> _Fence | None:
        """The fence that closes the block, if fences with an info open inner blocks."""
        depth = 1
        for fence in islice(self._after(number), _DEEPEST):
            if fence.line >= stop:
                return None
            if opening.closed_by(fence):
                depth -= 1
            elif fence.mark == opening.mark and fence.info:
                depth += 1
            if not depth:
                return fence
        return None

    def _after(self, number: int) -> Iterator[_Fence]:
        return (self._fences[i] for i in range(number + 1, len(self._fences)))

    def _content(self, opening: _Fence, end: int) -> str:
        lines = self._lines[opening.line + 1 : end]
        return "".join(f"{_dedented(text, opening.indent)}\n" for text in lines)

    def _blank(self, until: int) -> bool:
        """Whether all lines before a line are empty; a fence there may wrap the whole reply."""
        return not any(map(str.strip, self._lines[:until]))


def _fence(number: int, text: str) -> _Fence | None:
    found = _FENCE.match(text)
    if found is None:
        return None
    info = found["info"].strip().strip("`~").strip()
    return _Fence(
        number, len(found["indent"]), found["fence"], info, named(info) if info else None
    )


def _dedented(text: str, indent: int) -> str:
    return text[min(indent, len(text) - len(text.lstrip(" \t"))) :]


_PATH = r"[\w.@+-]+(?:[/\\][\w.@+-]+)*"
_FILE = rf"(?:{_PATH}[/\\])?[\w@+-][\w.@+-]*\.[A-Za-z]\w{{0,7}}"
_KEYED = re.compile(
    rf"\b(?:path|file|filename|file_path|filepath)\s*[=:]\s*[\"'`]?(?P<path>[./\\]*{_PATH})",
    re.IGNORECASE,
)
_BARE = re.compile(rf"(?:^|[\s:={{(\"'`*])(?P<path>[./\\]*{_FILE})(?=$|[\s}}):,\"'`*])")
_COMMENT = re.compile(
    r"\s*(?:#|//|--|;|%|/\*|<!--)+\s*(?:(?:path|file|filename)\s*[:=]\s*)?"
    rf"[\"'`]?(?P<path>[./\\]*{_FILE})[\"'`]?\s*(?:\*/|-->)?\s*$",
    re.IGNORECASE,
)
_LEAD = re.compile(r"^\W*(?:(?:new |updated |the )?(?:file|path|filename)\b)?\W*", re.IGNORECASE)
_TITLE = re.compile(r"\W*candidate\b", re.IGNORECASE)
"""The heading of a candidate, whose name may look like a file name."""
_LONGEST_LINE = 200


def named(info: str) -> str | None:
    """The path in the info of a fence.

    >>> named("python path=harness.py"), named("python:lib/index.py"), named("python")
    ('harness.py', 'lib/index.py', None)
    """
    found = _KEYED.search(info[:_LONGEST_LINE]) or _BARE.search(info[:_LONGEST_LINE])
    return None if found is None else tidy(found["path"])


def above(text: str) -> str | None:
    """The path in the last line before a block: a heading, or a sentence with a colon.

    >>> above("### `harness.py`"), above("Now the helper, **lib/index.py**:"), above("Like a.py.")
    ('harness.py', 'lib/index.py', None)
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or len(lines[-1]) > _LONGEST_LINE:
        return None
    last = lines[-1]
    if _TITLE.match(last):
        return None
    paths = {tidy(found["path"]) for found in _BARE.finditer(last)}
    if len(paths) != 1:
        return None
    [path] = paths
    alone = _LEAD.sub("", last).strip("`*\"':() ") == path
    marked = last.startswith("#") or last.rstrip("*_ ").endswith(":") or f"**{path}**" in last
    return path if alone or marked else None


def commented(content: str) -> tuple[str | None, str]:
    r"""The path in a comment on the first line, and the content without that line.

    >>> commented("# harness.py\nx = 1\n"), commented("# a harness\n")
    (('harness.py', 'x = 1\n'), (None, '# a harness\n'))
    """
    first, newline, rest = content.lstrip("\n").partition("\n")
    found = _COMMENT.match(first) if newline and len(first) <= _LONGEST_LINE else None
    return (None, content) if found is None else (tidy(found["path"]), rest)


def tidy(path: str) -> str:
    r"""A path in the form of candidates: relative, with forward slashes.

    >>> tidy("./harness.py"), tidy("lib\\index.py"), tidy("/workspace/a.py"), tidy("../a.py")
    ('harness.py', 'lib/index.py', 'workspace/a.py', '../a.py')
    """
    path = path.strip().replace("\\", "/").rstrip(".,:;")
    while path.startswith(("./", "/")):
        path = path[1:] if path.startswith("/") else path[2:]
    return re.sub(r"/(?:\./)*/*", "/", path)
