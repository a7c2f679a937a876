"""`coevolve query`: questions about the history of a search, as proposers ask them."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from coevolve.cli.command_arguments import AsJson, find_run
from coevolve.cli.console_output import echo
from coevolve.errors import InputError

_TABLES = ("top", "failures", "task", "tasks")
"""Queries that print a table, cut to the width of the terminal; --json prints all of it."""


def query(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUERY",
            help="top [N], show A, diff A B, failures A, task T, tasks or trace A T, where A and "
            "B are candidates and T is a task.",
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            help="A run folder, or the TOML file of the run. Default: the workspace that contains "
            "the current folder, or the only run in runs/."
        ),
    ] = None,
    never: Annotated[
        bool, typer.Option("--never", help="tasks: only those that no candidate solved.")
    ] = False,
    mixed: Annotated[
        bool, typer.Option("--mixed", help="tasks: only those that some candidates solved.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Query candidates, tasks and traces, as proposers do in their workspace."""
    from coevolve.views.questions import QueryError, answer, find_workspace, in_workspace, usage

    given = {"--never": never, "--mixed": mixed, "--json": as_json}
    asked = [*(words or []), *(flag for flag, wanted in given.items() if wanted)]
    if not words:
        echo(usage(), nl=False)
        return
    workspace = None if run is not None else find_workspace(Path.cwd())
    try:
        text = _of_run(run, asked) if workspace is None else answer(in_workspace(workspace), asked)
    except QueryError as error:
        raise InputError(str(error)) from error
    if words[0] in _TABLES and sys.stdout.isatty():
        text = _clipped(text, shutil.get_terminal_size().columns)
    echo(text, nl=False)


def _clipped(text: str, width: int) -> str:
    r"""Rows cut to the width of the terminal.

    >>> _clipped("a long row\nshort\n", 6)
    'a lon…\nshort\n'
    """
    rows = (row if len(row) <= width else f"{row[: width - 1]}…" for row in text.split("\n"))
    return "\n".join(rows)


def _of_run(run: Path | None, asked: list[str]) -> str:
    from coevolve.runs.session import read_state
    from coevolve.search.proposing import view_of
    from coevolve.store import RunStore
    from coevolve.views.history import source_of
    from coevolve.views.questions import answer

    folder = find_run(run)
    state = read_state(folder)
    if state.evaluation:
        raise InputError(f"{folder} is an evaluation, not a run; use `coevolve show`.")
    if any(state.estimate(name) is None for name in state.starts):
        raise InputError(f"{folder} is in phase 0; retry when the starting harnesses are scored.")
    with RunStore.read(folder) as store:
        return answer(source_of(view_of(state, store, len(state.rounds) + 1)), asked)
