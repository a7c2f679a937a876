"""The files of a candidate as HTML: numbered, highlighted, and harmless whatever is in them."""

from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from coevolve.formatting import markup
from coevolve.reports.html_parts import line_kind

MOST_LINES = 3_000
MOST_CHARACTERS = 200_000
_LONGEST_LINE = 1_000
_HIGHLIGHTED = 100_000
"""Characters of a file that is highlighted; a longer one is shown plain."""
_CLASSES = (
    ("Token.Comment", "c"),
    ("Token.Literal.String.Doc", "c"),
    ("Token.Literal.String", "s"),
    ("Token.Literal.Number", "m"),
    ("Token.Keyword", "k"),
    ("Token.Operator.Word", "k"),
    ("Token.Name.Function", "f"),
    ("Token.Name.Class", "f"),
    ("Token.Name.Decorator", "f"),
    ("Token.Name.Builtin", "b"),
    ("Token.Name.Tag", "k"),
)
"""Kinds of tokens, and the class of their colour; the first that fits counts."""


def source(path: str, data: bytes, room: int = MOST_CHARACTERS) -> Iterator[str]:
    """At most `room` characters of a file, with line numbers, highlighted by its suffix."""
    most = min(room, MOST_CHARACTERS)
    if data and not most:
        yield '<p class="count">Not shown: the files before it fill the page.</p>'
        return
    text = data[:most].decode("utf-8", "replace").replace("\r\n", "\n")
    if "\0" in text[:1_000]:
        yield f'<p class="count">{len(data):,} bytes that are not text.</p>'
        return
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if not lines:
        yield '<p class="count">An empty file.</p>'
        return
    shown = lines[:MOST_LINES]
    coloured = _coloured(path, shown)
    body = "".join(
        f'<span class="l" data-line="{number}">{line}\n</span>'
        for number, line in enumerate(coloured, 1)
    )
    label = markup(f"Source of {path}", 200)
    yield f'<pre class="source" tabindex="0" role="region" aria-label="{label}">{body}</pre>'
    if len(shown) < len(lines) or len(data) > most:
        yield f'<p class="count">The first {plural_lines(len(shown))} are shown.</p>'


def plural_lines(number: int) -> str:
    """A number of lines in words."""
    return f"{number:,} line{'' if number == 1 else 's'}"


def difference(lines: list[str], label: str) -> Iterator[str]:
    """A unified diff; added and removed lines differ in sign and in colour."""
    if not lines:
        yield '<p class="count">The files are the same.</p>'
        return
    shown = lines[:MOST_LINES]
    body = "".join(
        f'<span class="{line_kind(line)}">{markup(line, _LONGEST_LINE)}\n</span>' for line in shown
    )
    name = markup(label, 200)
    yield f'<pre class="diff" tabindex="0" role="region" aria-label="{name}">{body}</pre>'
    if len(shown) < len(lines):
        yield f'<p class="count">The first {plural_lines(len(shown))} are shown.</p>'


def _coloured(path: str, lines: list[str]) -> Iterator[str]:
    lexer = _lexer(PurePosixPath(path).suffix)
    long = any(len(line) > _LONGEST_LINE for line in lines)
    text = "\n".join(lines)
    if lexer is None or long or len(text) > _HIGHLIGHTED:
        yield from (markup(line, _LONGEST_LINE) for line in lines)
        return
    current: list[str] = []
    for kind, value in lexer.get_tokens(text):
        name = _class(str(kind))
        for number, piece in enumerate(value.split("\n")):
            if number:
                yield "".join(current)
                current = []
            if piece:
                body = markup(piece)
                current.append(f'<span class="{name}">{body}</span>' if name else body)
    if current:
        yield "".join(current)


@cache
def _class(kind: str) -> str:
    return next((name for prefix, name in _CLASSES if kind.startswith(prefix)), "")


@cache
def _lexer(suffix: str) -> Any:
    """The lexer for files with a suffix; None for plain text."""
    from pygments.lexers import get_lexer_by_name  # on first use: slow to import

    known = {
        ".py": "python",
        ".json": "json",
        ".toml": "toml",
        ".md": "markdown",
        ".sh": "bash",
        ".yaml": "yaml",
        ".yml": "yaml",
        ".js": "javascript",
    }
    if suffix not in known:
        return None
    return get_lexer_by_name(known[suffix], stripnl=False)  # type: ignore[no-untyped-call]
