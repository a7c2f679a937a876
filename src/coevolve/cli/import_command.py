"""`coevolve import`: past results for a run."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from coevolve.cli.command_arguments import AsJson, find_run
from coevolve.cli.console_output import echo, echo_json, redirected_prints


def import_results(
    results: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|FOLDER",
            help="A .csv, .jsonl or .parquet table with the columns candidate, task and score, "
            "and maybe trial and cost; an Inspect log (.eval, .json); a Harbor job folder; or a "
            "folder of such files.",
        ),
    ],
    to: Annotated[
        Path,
        typer.Option(
            metavar="RUN",
            help="A run folder, or a TOML file; its run is created if needed.",
        ),
    ],
    candidate: Annotated[
        str | None,
        typer.Option(help="Another name for the candidate, if the results have only one."),
    ] = None,
    scorer: Annotated[
        str | None, typer.Option(help="The scorer of an Inspect log, if it has several.")
    ] = None,
    skip_unknown: Annotated[
        bool,
        typer.Option("--skip-unknown", help="Leave out tasks that the run does not have."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Import past results: those of starting harnesses stand for Phase 0."""
    from coevolve.runs.extension import limit_reached
    from coevolve.runs.run import open as open_run
    from coevolve.views.event_lines import imported

    with redirected_prints(as_json):
        run = open_run(to if to.is_file() else find_run(to))
        folder, new = run.folder, not run.started
        done = run.import_past(
            results, candidate=candidate, scorer=scorer, skip_unknown=skip_unknown
        )
    if as_json:
        echo_json({"folder": str(folder), **asdict(done)})
        return
    echo(f"Imported {imported(done)}.")
    state = run.state
    if not done.phase_0 and not done.known and not state.selector.starts:
        echo(
            "Nothing stands for Phase 0: no candidate of the results has the name of a starting "
            f"harness ({', '.join(state.starts)})."
        )
    if state.ended is not None:
        echo(
            f"The run has ended ({state.ended['why']}); its choice stays as it is. The results "
            f"count when it is extended: coevolve resume {folder} --{limit_reached(state)} TOTAL"
        )
    if new:
        echo(f"The run is in {folder}. Start it with: coevolve resume {folder}")
