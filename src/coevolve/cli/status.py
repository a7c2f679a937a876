"""`coevolve status`: how a run is doing, also while another process works on it."""

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from coevolve.cli.places import find_run
from coevolve.cli.resume import Run

_LEAST = 20


def status(
    run: Run = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, not a board.")] = False,
) -> None:
    """Show where a run is: its candidates, estimates, spending and faults."""
    from coevolve.cli.board import board
    from coevolve.runs.session import read_state
    from coevolve.search.report import report
    from coevolve.store import Owner, owner

    folder = find_run(run)
    holder = owner(folder)
    now = report(read_state(folder))
    if as_json:
        held = asdict(holder) if isinstance(holder, Owner) else holder
        found: dict[str, Any] = {**now.to_json(), "folder": str(folder), "owner": held}
        typer.echo(json.dumps(found, indent=2))
        return
    console = Console(highlight=False)
    console.print(board(now, width=console.width, most=max(_LEAST, console.height - 10)))
    for number, note in now.notes.items():
        console.print(Text(f"round {number}: {note}", "yellow"))
    for number in now.thin_rounds:
        console.print(Text(f"round {number}: under half of its outcomes have a score", "yellow"))
    console.print(Text(_state(now.phase, now.stopped, now.why, folder, holder)))


def _state(phase: str, stopped: bool, why: str, folder: object, holder: object) -> str:
    if holder is not None:
        return f"At work: {holder}"
    if phase == "ended":
        return f"Ended: {why}. `coevolve show {folder} CANDIDATE` shows more."
    reason = f"Stopped: {why}" if stopped else "Nobody works on it, and it has not ended"
    return f"{reason.rstrip('.')}. Go on with: coevolve resume {folder}"
