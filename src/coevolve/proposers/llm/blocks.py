"""Fenced blocks of a reply, as models really fence them.

Markdown closes a block at the first fence that is long enough, which cuts a file in two whose
docstring has a fence of its own. Here a block of Python ends where it is a program, and any other
one where as many fences were closed as opened.
"""

import ast
import re
import warnings
from dataclasses import dataclass

from coevolve.proposers.llm.paths import named

MARKER = re.compile(r"\s*(?:<{5,9}|={5,9}|>{5,9})(?:\s*(?:SEARCH|REPLACE|ORIGINAL|UPDATED))?\s*$")
_NEXT = re.compile(r"#{2,6}\s*candidate\b\s*(?:\d|[:—–-]|$)", re.IGNORECASE)
_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})(?P<info>.*)$")
_WRAPPERS = {"markdown", "md"}
_MOST_TRIES = 30
"""Places at which a block of Python may end that are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block.

    Args:
        info: What stands behind its first fence.
        content: What is in it.
        before: The text between the block before and this one.
        closed: Whether it has a last fence, or something else follows it.
    """

    info: str
    content: str
    before: str
    closed: bool

    @property
    def language(self) -> str:
        """The first word of the info, if it is no path."""
        word = re.split(r"[\s:{=]", self.info.strip(), maxsplit=1)[0].lower()
        return "" if "." in word or "/" in word else word


def blocks(text: str) -> tuple[list[Block], str]:
    r"""The blocks of a text, and what follows the last of them.

    >>> [block], rest = blocks("Here:\n```py path=a.py\nx = '''\n```\n'''\n```\nDone.")
    >>> block.info, block.content, rest
    ('py path=a.py', "x = '''\n```\n'''\n", 'Done.')
    """
    lines = text.split("\n")
    found: list[Block] = []
    before: list[str] = []
    at = 0
    while at < len(lines):
        opening = _FENCE.match(lines[at])
        if opening is None or _wraps(opening, found, before):
            before.append(lines[at])
            at += 1
            continue
        end, closed = _end(lines, at, opening)
        content = [_dedented(line, len(opening["indent"])) for line in lines[at + 1 : end]]
        fenced = end < len(lines) and _closes(lines[end], opening)
        while not fenced and content and not content[-1].strip():
            content.pop()
        info = opening["info"].strip().strip("`~").strip()
        if info or any(map(str.strip, content)):
            whole = "".join(f"{line}\n" for line in content)
            found.append(Block(info=info, content=whole, before="\n".join(before), closed=closed))
            before = []
        at = end + 1 if fenced else end
    return found, "\n".join(before)


def is_program(source: str) -> bool:
    """Whether a text is Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an escape in a string, say: none of our business
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _wraps(opening: re.Match[str], found: list[Block], before: list[str]) -> bool:
    """Whether a fence only wraps the reply as a whole."""
    first = not found and not any(map(str.strip, before))
    return first and opening["info"].strip().lower() in _WRAPPERS


def _end(lines: list[str], at: int, opening: re.Match[str]) -> tuple[int, bool]:
    """Where a block ends, and whether it was ended: by a fence, or by what comes next."""
    stop = next((i for i in range(at + 1, len(lines)) if _begins(lines[i], opening)), len(lines))
    closers = [i for i in range(at + 1, stop) if _closes(lines[i], opening)]
    if not closers:
        return stop, stop < len(lines)
    if any(MARKER.match(line) for line in lines[at + 1 : closers[0]]):
        return _after_edits(lines, at, closers), True
    if _is_python(opening["info"]):
        for closer in closers[:_MOST_TRIES]:
            body = [_dedented(line, len(opening["indent"])) for line in lines[at + 1 : closer]]
            if is_program("\n".join(body)):
                return closer, True
    return _nested(lines, at, closers, opening), True


def _begins(line: str, opening: re.Match[str]) -> bool:
    """Whether a line can only be the beginning of the next file, or of the next candidate."""
    fence = _FENCE.match(line)
    if fence is None:
        return _NEXT.match(line) is not None
    if len(fence["indent"]) > len(opening["indent"]) + 3 or not fence["info"].strip():
        return False
    return fence["fence"].startswith(opening["fence"]) and named(fence["info"]) is not None


def _closes(line: str, opening: re.Match[str]) -> bool:
    fence = _FENCE.match(line)
    return (
        fence is not None
        and not fence["info"].strip()
        and fence["fence"][0] == opening["fence"][0]
        and len(fence["fence"]) >= len(opening["fence"])
        and len(fence["indent"]) <= len(opening["indent"]) + 3
    )


def _after_edits(lines: list[str], at: int, closers: list[int]) -> int:
    """The first fence with no edit around it: what an edit puts in may have fences too."""
    for closer in closers:
        marks = [line.strip()[0] for line in lines[at + 1 : closer] if MARKER.match(line)]
        if marks and marks[-1] == ">":
            return closer
    return closers[-1]


def _nested(lines: list[str], at: int, closers: list[int], opening: re.Match[str]) -> int:
    """The fence that closes the block, if fences with an info open further ones in it."""
    depth = 1
    for i in range(at + 1, closers[-1] + 1):
        fence = _FENCE.match(lines[i])
        if i in closers:
            depth -= 1
            if not depth:
                return i
        elif fence is not None and fence["fence"] == opening["fence"] and fence["info"].strip():
            depth += 1
    return closers[0]


def _is_python(info: str) -> bool:
    path = named(info)
    if path is not None:
        return path.endswith(".py")
    return info.strip().lower().startswith("py")


def _dedented(line: str, indent: int) -> str:
    return line[min(indent, len(line) - len(line.lstrip(" \t"))) :]
