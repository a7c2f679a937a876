"""Output of commands: where it goes, tables, lists of facts, and progress bars."""

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text


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


class SteadyConsole(Console):
    """A console that ignores a closed pipe."""

    def on_broken_pipe(self) -> None:
        """Discard all further output."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


def table(*headings: str, right: Collection[str] = (), wrap: Collection[str] = ()) -> Table:
    """A table with a rule below its headings; columns are left-aligned and do not wrap."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        made.add_column(
            heading,
            justify="right" if heading in right else "left",
            no_wrap=heading not in wrap,
            min_width=9 if heading in wrap else None,
        )
    return made


def facts(found: Mapping[str, RenderableType | None]) -> Table:
    """Labels with their values, one per line; empty values are left out."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bright_black", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in found.items():
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
