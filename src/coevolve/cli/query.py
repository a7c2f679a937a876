"""`coevolve query`: short answers about the history of a search."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from coevolve.errors import InputError

_TABLES = ("top", "failures", "task", "tasks")
"""What is answered with rows and columns; --json has all of it."""


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
            help="The run, as its folder or TOML file; by default the workspace of a proposer "
            "that is the current folder, or the only run below runs/."
        ),
    ] = None,
    never: Annotated[bool, typer.Option("--never", help="tasks: those nobody solved.")] = False,
    mixed: Annotated[bool, typer.Option("--mixed", help="tasks: those solved at times.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ask about candidates, tasks and traces, as proposers do in their workspace."""
    from coevolve.proposers.workspace.query.questions import answer, usage
    from coevolve.proposers.workspace.query.source import QueryError, find, in_workspace

    given = {"--never": never, "--mixed": mixed, "--json": as_json}
    asked = [*(words or []), *(flag for flag, wanted in given.items() if wanted)]
    if not words:
        typer.echo(usage(), nl=False)
        return
    workspace = None if run is not None else find(Path.cwd())
    try:
        text = _of_run(run, asked) if workspace is None else answer(in_workspace(workspace), asked)
    except QueryError as error:
        raise InputError(str(error)) from error
    if words[0] in _TABLES and sys.stdout.isatty():
        text = _clipped(text, shutil.get_terminal_size().columns)
    typer.echo(text.encode(errors="replace").decode(), nl=False)  # a trace may hold anything


def _clipped(text: str, width: int) -> str:
    r"""Rows that end where the terminal does.

    >>> _clipped("a long row\nshort\n", 6)
    'a lon…\nshort\n'
    """
    rows = (row if len(row) <= width else f"{row[: width - 1]}…" for row in text.split("\n"))
    return "\n".join(rows)


def _of_run(run: Path | None, asked: list[str]) -> str:
    from coevolve.cli.places import find_run
    from coevolve.proposers.workspace.index import source_of
    from coevolve.proposers.workspace.query.questions import answer
    from coevolve.runs.session import read_state
    from coevolve.search.proposing import estimate_of, view_of
    from coevolve.store import RunStore

    folder = find_run(run)
    state = read_state(folder)
    if any(estimate_of(state, name) is None for name in state.starts):
        raise InputError(f"{folder} is in phase 0; ask again when its starts are done.")
    with RunStore.read(folder) as store:
        return answer(source_of(view_of(state, store, len(state.rounds) + 1)), asked)
