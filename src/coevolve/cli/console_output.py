"""Output of commands: text, JSON, errors, tables, lists of facts, and progress bars.

Everything that a command prints goes through this module, which escapes it: names, answers, traces
and errors come from candidates, models and tasks. Other modules of the commands use neither
`typer.echo` nor a `Console` of Rich.
"""

import itertools
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.containers import Lines
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from coevolve.formatting import json_text, visible

_LEAST = 12
"""Columns that a cell of names or sentences has at least."""
_WORD = 40
"""Columns of the longest word that is kept whole."""


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text."""
    with _until_closed(2 if err else 1):
        typer.echo(visible(text), err=err, nl=nl)


def echo_json(value: object, *, ascii: bool = True, allow_nan: bool = True) -> None:
    """Print a value as JSON; with `ascii=False`, readable letters of all languages stay."""
    with _until_closed(1):
        typer.echo(json_text(value, indent=2, ascii=ascii, allow_nan=allow_nan))


@contextmanager
def _until_closed(stream: int) -> Iterator[None]:
    """End the command quietly if the reader of its output has left, such as `head`."""
    try:
        yield
    except BrokenPipeError:
        _discard(stream)
        raise SystemExit(0) from None


def _discard(stream: int) -> None:
    """Discard further output of a file descriptor."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream)
    os.close(nowhere)


def echo_error(text: str) -> None:
    """Print an error, wrapped at spaces on a terminal."""
    lines = visible(text).splitlines()
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
        lines = [wrapper.fill(line) for line in lines]
    typer.secho("\n".join(lines), fg="red", err=True)


def ask_letter(choices: Mapping[str, str]) -> str:
    """The letter of the choice that the user makes at the terminal."""
    for letter, what in choices.items():
        echo(f"  {letter}  {what}", err=True)
    chosen = ""
    while chosen not in choices:
        chosen = str(typer.prompt(f"Choose {', '.join(choices)}", err=True)).strip().lower()
    return chosen


def ask_text(question: str, proposed: str) -> str:
    """What the user types at the terminal; Enter takes what is proposed."""
    return str(typer.prompt(question, default=proposed, err=True)).strip()


def at_terminal() -> bool:
    """Whether a user can answer questions."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class Screen(Console):
    """A console that escapes what it prints, and takes brackets and colons literally."""

    def __init__(self, **given: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **given)

    def on_broken_pipe(self) -> None:
        """End the command quietly: the reader of its output, such as `head`, has left."""
        _discard(self.file.fileno())
        raise SystemExit(0)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The parts of an output; only their styles may contain control characters."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(visible(text), style)


@contextmanager
def redirected_prints(wanted: bool) -> Iterator[None]:
    """Send the standard output of this process and its children to the error output.

    The user's code may print; JSON on the standard output must stay valid.
    """
    if not wanted:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


class SteadyScreen(Screen):
    """A screen that ignores a closed pipe: the command continues without it."""

    def on_broken_pipe(self) -> None:
        """Discard all further output."""
        self.quiet = True
        _discard(self.file.fileno())


class _Broken(Text):
    """A text that is broken at spaces and hyphens, and elsewhere only if it must be."""

    def wrap(self, console: Console, width: int, **given: Any) -> Lines:
        """Its lines in a column of some width."""
        lines = [textwrap.wrap(line, max(1, width)) or [""] for line in self.plain.split("\n")]
        return Text("\n".join(itertools.chain(*lines))).wrap(console, width, **given)


class _Table(Table):
    """A table whose columns of names and sentences are broken at hyphens, too."""

    def add_row(self, *cells: RenderableType | None, **given: Any) -> None:
        """Add a row of cells."""
        columns = zip(cells, self.columns, strict=False)
        broken = [column.overflow == "fold" and isinstance(cell, str) for cell, column in columns]
        super().add_row(
            *(_Broken(str(c)) if b else c for c, b in zip(cells, broken, strict=False)), **given
        )


def table(*headings: str, right: Collection[str] = (), wrap: Collection[str] = ()) -> Table:
    """A table with a rule below its headings; columns are left-aligned and do not wrap."""
    made = _Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        made.add_column(
            heading,
            justify="right" if heading in right else "left",
            no_wrap=heading not in wrap,
            min_width=_LEAST if heading in wrap else None,
            overflow="fold" if heading in wrap else "ellipsis",
        )
    return made


def narrowed(made: Table, width: int) -> Table:
    """The table with columns of names and sentences that fit a width, words kept whole.

    Words are folded where the table is too wide otherwise.
    """
    cells = [[str(cell) for cell in (one.header, *one.cells)] for one in made.columns]
    wraps = [column.min_width is not None for column in made.columns]
    full = list(map(_longest, cells))
    least = [_least(of) if wrap else _longest(of) for of, wrap in zip(cells, wraps, strict=True)]
    if _total(least) > width:
        least = [min(n, _LEAST) if wrap else n for n, wrap in zip(least, wraps, strict=True)]
    sizes = [*least]
    room = width - _total(least)
    while room > 0 and (short := [at for at, size in enumerate(sizes) if size < full[at]]):
        sizes[min(short, key=sizes.__getitem__)] += 1  # all narrow ones become equally wide
        room -= 1
    for column, size, wrap in zip(made.columns, sizes, wraps, strict=True):
        if wrap:
            column.min_width = column.max_width = size
    return made


def _longest(cells: Iterable[str]) -> int:
    """The width of the longest line."""
    return max(cell_len(line) for cell in cells for line in (cell or " ").split("\n"))


def _least(cells: Sequence[str]) -> int:
    """The least width of a column that wraps: that of its longest word."""
    words = [word for cell in cells for word in cell.split()]
    longest = max(map(cell_len, words), default=1)
    return min(_longest(cells), max(_LEAST, min(longest, _WORD)))


def _total(sizes: Collection[int]) -> int:
    return sum(sizes) + 3 * len(sizes) - 1


def fitting(
    width: int,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    wrap: Collection[str] = (),
    drop: Sequence[str] = (),
) -> list[int]:
    """The places of the columns that fit a width; those in `drop` are left out first.

    A column that wraps needs the width of its longest word. Columns that fit after a wider one
    was left out stay.

    >>> fitting(12, ["name", "round"], [["a-long-name", "1"]], wrap=["name"], drop=["round"])
    [0]
    >>> fitting(9, ["id", "n", "winner"], [["a", "1", "a-long-name"]], drop=["n", "winner"])
    [0, 1]
    """
    sizes = {}
    for place, heading in enumerate(headings):
        cells = [heading, *(row[place] for row in rows if place < len(row))]
        sizes[heading] = _least(cells) if heading in wrap else _longest(cells)
    left_out: dict[str, int] = {}
    for heading in drop:
        if _total(sizes.values()) <= width:
            break
        left_out |= {heading: sizes.pop(heading)} if heading in sizes else {}
    for heading, size in reversed(left_out.items()):
        if _total([*sizes.values(), size]) <= width:
            sizes[heading] = size
    return [place for place, heading in enumerate(headings) if heading in sizes]


def fitted(
    width: int,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Collection[str] = (),
    wrap: Collection[str] = (),
    drop: Sequence[str] = (),
) -> Table:
    """A table without the columns in `drop` that do not fit a width."""
    kept = fitting(width, headings, rows, wrap=wrap, drop=drop)
    made = table(*(headings[place] for place in kept), right=right, wrap=wrap)
    for row in rows:
        made.add_row(*(row[place] for place in kept if place < len(row)))
    if hidden := [heading for at, heading in enumerate(headings) if at not in kept]:
        made.caption = f"left out on a narrow terminal: {', '.join(hidden)}".replace("\n", " ")
        made.caption_justify = "left"
    return narrowed(made, width)


def facts(found: Iterable[tuple[str, RenderableType | None]]) -> Table:
    """Labels with their values, one per line; empty values are left out.

    A label may occur several times: a run can have two warnings.
    """
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bright_black", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in found:
        if value:
            grid.add_row(Text(label), Text(value) if isinstance(value, str) else value)
    return grid


def with_bar[T](console: Console, run: Callable[[Callable[[int, int], None]], T]) -> T:
    """The result of `run`, which reports how many searches are done; a bar on a terminal."""
    columns: tuple[Any, ...] = (
        TextColumn("searches"),
        BarColumn(bar_width=40),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as progress:
        bar = progress.add_task("searches", total=None, visible=False)

        def report(done: int, total: int) -> None:
            progress.update(bar, completed=done, total=total, visible=True)

        return run(report)
