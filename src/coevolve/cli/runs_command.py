"""`coevolve runs`: the runs of a folder, with their states."""

from pathlib import Path
from typing import Annotated, Any

import typer

from coevolve.cli.command_arguments import AsJson
from coevolve.cli.console_output import Screen, echo, echo_json, fitted
from coevolve.errors import InputError


def runs(
    folder: Annotated[
        Path, typer.Argument(metavar="[FOLDER]", help="The folder of the project, or of its runs.")
    ] = Path(),
    as_json: AsJson = False,
) -> None:
    """List the runs of a folder: state, rounds, best candidate and spending."""
    from coevolve.runs.run_listing import run_row
    from coevolve.store import run_folders

    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder.")
    found = [run_row(path) for path in run_folders(folder)]
    if as_json:
        echo_json(found)
    elif not found:
        echo(f"There is no run in {folder} or its runs/. Start one: coevolve run FILE.toml")
    else:
        _print(found, folder)


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
