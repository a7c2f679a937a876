"""A bar for replays."""

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def with_bar[T](console: Console, run: Callable[[Callable[[int, int], None]], T]) -> T:
    """The result of a run that reports how many searches are done; a bar where it is seen."""
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
