"""`coevolve status`: the progress of a run, even while another process works on it."""

from dataclasses import asdict, replace
from typing import Any

from rich.text import Text

from coevolve.cli.command_arguments import AsJson, Run, find_run
from coevolve.cli.console_output import Screen, echo_json
from coevolve.errors import InputError

_LEAST = 20


def status(run: Run = None, as_json: AsJson = False) -> None:
    """Show the progress of a run: candidates, estimates, spending and faults."""
    from coevolve.cli.board import board
    from coevolve.cli.run_display import print_warning
    from coevolve.runs.session import read_state
    from coevolve.store import Owner, owner
    from coevolve.views.certainty import certainty
    from coevolve.views.event_lines import imported
    from coevolve.views.report import report

    folder = find_run(run)
    holder = owner(folder)
    state = read_state(folder)
    if state.evaluation:
        raise InputError(
            f"{folder} is an evaluation, not a run; repeat its `coevolve evaluate` to see the "
            f"scores, or show a harness: coevolve show {folder} {next(iter(state.candidates), '')}"
        )
    now = report(state)
    idle = holder is None and now.phase != "ended" and not now.stopped
    if as_json:
        held = asdict(holder) if isinstance(holder, Owner) else holder
        found: dict[str, Any] = {**now.to_json(), "folder": str(folder), "owner": held}
        echo_json(found)
        return
    console = Screen()
    shown = replace(now, stopped=True, why="no process works on it") if idle else now
    if now.chosen is not None:  # before that, the state comes first
        print_warning(console, now)
    most = max(_LEAST, console.height - 10)
    sure = certainty(state) if now.round else None
    console.print(board(shown, width=console.width, most=most, sure=sure, whole=True))
    if now.chosen is None:
        print_warning(console, now)
    if now.mixed:
        console.print(Text(f"warning: {now.mixed}", "yellow"))
    if now.sealed_warning:
        console.print(Text(f"warning: {now.sealed_warning}", "yellow"))
    for one in now.imports:
        console.print(Text(f"history: {imported(one)}"))
    for number, note in now.notes.items():
        console.print(Text(f"round {number}: {note}", "yellow"))
    for number in now.thin_rounds:
        console.print(Text(f"round {number}: under half of its outcomes have a score", "yellow"))
    console.print(Text(_state(now.phase, now.stopped, now.why, folder, holder)))


def _state(phase: str, stopped: bool, why: str, folder: object, holder: object) -> str:
    from coevolve.views.report import NOT_STARTED

    if holder is not None:
        return f"Running: {holder}"
    if phase == "ended":
        return f"Ended: {why}. For details: coevolve show {folder} CANDIDATE"
    if phase == NOT_STARTED:
        return f"The run has not started. Start it with: coevolve resume {folder}"
    reason = f"Stopped: {why}" if stopped else "Not finished, and no process works on it"
    return f"{reason.rstrip('.')}. Resume with: coevolve resume {folder}"
