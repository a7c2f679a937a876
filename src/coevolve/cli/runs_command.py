"""`coevolve runs`: the runs of a folder, with their states."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevolve.cli.command_arguments import AsJson, run_folders
from coevolve.cli.console_output import Screen, echo, echo_json, fitted
from coevolve.errors import CoevolveError, InputError

if TYPE_CHECKING:
    from coevolve.views.report import Report


def runs(
    folder: Annotated[
        Path, typer.Argument(metavar="[FOLDER]", help="The folder of the project, or of its runs.")
    ] = Path(),
    as_json: AsJson = False,
) -> None:
    """List the runs of a folder: state, rounds, best candidate and spending."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder.")
    found = [run_row(path) for path in run_folders(folder)]
    if as_json:
        echo_json(found)
    elif not found:
        echo(f"There is no run in {folder} or its runs/. Start one: coevolve run FILE.toml")
    else:
        _print(found, folder)


def run_row(folder: Path) -> dict[str, Any]:
    """A run as JSON: its state, rounds, best candidate and spending."""
    from coevolve.runs.session import read_state
    from coevolve.store import owner
    from coevolve.views.report import report

    try:
        now, held = report(read_state(folder)), owner(folder) is not None
    except CoevolveError as error:
        return {"run": str(folder), "state": "unreadable", "why": str(error)}
    best = None if now.best is None else now.candidate(now.best)
    return {
        "run": str(folder),
        "state": _state(now, held=held),
        "why": now.why,
        "round": now.round,
        "rounds": now.rounds,
        "best": now.best,
        "score": None if best is None or best.estimate is None else best.estimate["value"],
        "test": None if best is None else best.test,
        "trials": int(now.spend.totals["trials"]),
        "dollars": now.spend.totals["dollars"],
    }


def _state(now: "Report", *, held: bool) -> str:
    if held:
        return "running"
    if now.phase in ("ended", "evaluation", "not started"):
        return now.phase
    return "stopped" if now.stopped else "not finished"


def _print(found: list[dict[str, Any]], folder: Path) -> None:
    from coevolve.formatting import CLIPPED, dollars, score

    lines = []
    for row in found:
        place = str(Path(row["run"]).relative_to(folder))
        if row["state"] == "unreadable":
            lines.append([place, row["state"]])
            continue
        lines.append(
            [
                place,
                row["state"],
                f"{row['round']}/{row['rounds']}",
                row["best"] or "",
                score(row["score"]),
                f"{row['trials']:,}",
                dollars(row["dollars"]),
            ]
        )
    console = Screen()
    made = fitted(
        console.width,
        ("run", "state", "round", "best", "score", "trials", "cost"),
        lines,
        right=("round", "score", "trials", "cost"),
        wrap=("run", "best"),
        drop=("cost", "trials", "round", "best"),
    )
    console.print(made)
    if any(score(row.get("score"))[0] in "≤≥" for row in found):
        console.print(CLIPPED)
    for row in found:
        if row["state"] == "not started":
            console.print(
                f"{row['run']} has not started. Start it with: coevolve resume {row['run']}",
                soft_wrap=True,
            )
        if row["state"] == "unreadable":
            echo(f"{row['run']}: {row['why']}", err=True)
