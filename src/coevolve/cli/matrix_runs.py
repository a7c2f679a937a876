"""`coevolve run --matrix`: runs or resumes the rows and seeds of a matrix, in order."""

import contextlib
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from coevolve.cli.changed_config import Decision, wanted_limits
from coevolve.cli.console_output import (
    Screen,
    SteadyScreen,
    echo,
    echo_json,
    fitted,
    redirected_prints,
)
from coevolve.cli.run_progress import INTERRUPTED, advance
from coevolve.errors import CoevolveError
from coevolve.formatting import plural

if TYPE_CHECKING:
    from coevolve.runs.config_overrides import Override
    from coevolve.runs.run_matrix import MatrixRun, RunMatrix

AGAIN = "Repeat the command to continue; recorded trials are not run again."


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixPart:
    """A matrix as the options change it: its rows, their seeds, and values of all runs."""

    file: Path
    only: Sequence[str]
    seeds: Sequence[int]
    overrides: "Sequence[Override]"

    def read(self) -> "tuple[RunMatrix, list[MatrixRun]]":
        """The chosen rows and their runs; all configurations are read."""
        from coevolve.runs.run_matrix import read_run_matrix

        matrix = read_run_matrix(self.file).chosen(only=self.only, seeds=self.seeds)
        return matrix, matrix.runs(self.overrides)


def run_all(
    part: MatrixPart, decision: Decision, *, accept_change: bool, quiet: bool, as_json: bool
) -> None:
    """Run or resume all runs of a matrix one after another, and print a table of them.

    Everything that can be checked is checked before the first run: all configurations, and what
    the recorded ones say. Runs that have ended are skipped.
    """
    from coevolve.runs.run_matrix import check_new_runs

    console = SteadyScreen(stderr=as_json)
    with redirected_prints(as_json):
        _, runs = part.read()
        limits = {run.name: _new_limits(run, decision) for run in runs}
        check_new_runs(part.file, runs)
    code = 0
    for number, run in enumerate(runs, start=1):
        if not quiet:
            console.print(f"{run.name}: run {number} of {len(runs)}", style="bold")
        try:
            code = _continue(
                console,
                run,
                limits[run.name],
                accept_change=accept_change,
                quiet=quiet,
                as_json=as_json,
            )
        except KeyboardInterrupt:
            code = INTERRUPTED + signal.SIGINT
        except CoevolveError:
            echo(f"The matrix stopped in run {run.name}.", err=True)
            raise
        if code:
            break
    found = [_row(run) for run in runs]
    if as_json:
        echo_json(found)
    else:
        _print(console, found)
    if code:
        console.print(f"Stopped. {AGAIN}")
        raise typer.Exit(code)


def _new_limits(run: "MatrixRun", decision: Decision) -> dict[str, Any]:
    """The new limits of a run that exists, as the user decides about what the matrix changed."""
    from coevolve.runs.session import read_state

    if not run.started:
        return {}
    state = read_state(run.folder)
    course = decision.course(state, run.folder, run.file, run.config)
    return {} if course is None else wanted_limits(state, course.limits)


def _continue(
    console: SteadyScreen,
    run: "MatrixRun",
    limits: dict[str, Any],
    *,
    accept_change: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run, resume or skip one run; 0, or the exit code of the signal that stopped it."""
    from coevolve.runs.session import discarded_if_refused, read_state

    if new := not run.started:
        with redirected_prints(as_json):
            run.create()
    elif read_state(run.folder).ended is not None and not limits:
        if not quiet:
            console.print("It has already ended.")
        return 0
    with discarded_if_refused(run.folder) if new else contextlib.nullcontext():
        code, _ = advance(
            console,
            run.folder,
            quiet=quiet,
            as_json=as_json,
            limits=limits,
            accept_change=accept_change and not new,
            again=AGAIN,
        )
    return code


def _row(run: "MatrixRun") -> dict[str, Any]:
    from coevolve.runs.run_listing import run_row

    found = {"row": run.row, "seed": run.seed, "name": run.name}
    if not run.started:
        return {**found, "run": str(run.folder), "state": "not started"}
    return {**found, **run_row(run.folder)}


def _print(console: Screen, found: Sequence[dict[str, Any]]) -> None:
    from coevolve.formatting import CLIPPED, score

    lines = [
        [
            row["name"],
            row["state"],
            f"{row['round']}/{row['rounds']}",
            f"{row['trials']:,}",
            row["best"] or "",
            score(row["score"]),
            score(row["test"]),
        ]
        if "round" in row
        else [row["name"], row["state"], "", "", "", "", ""]
        for row in found
    ]
    console.print()
    console.print(
        fitted(
            console.width,
            ("run", "state", "round", "trials", "winner", "estimate", "test"),
            lines,
            right=("round", "trials", "estimate", "test"),
            wrap=("winner",),
            drop=("round", "trials", "winner"),
        )
    )
    if any(score(row.get("score"))[0] in "≤≥" for row in found):
        console.print(CLIPPED)
    ended = sum(row["state"] == "ended" for row in found)
    console.print(f"{ended} of {plural(len(found), 'run')} ended.")
