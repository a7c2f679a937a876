"""Where output goes: JSON apart from other prints, progress bars, and closed pipes."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


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
    """A console that a closed pipe does not end."""

    def on_broken_pipe(self) -> None:
        """Discard all further output."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


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
