"""`coevolve estimate`: the expected cost of a run, before it starts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from coevolve.cli.command_arguments import AsJson, find_run
from coevolve.cli.console_output import Screen, echo_json, redirected_prints, table
from coevolve.errors import InputError

if TYPE_CHECKING:
    from coevolve.views.forecast import Forecast


def estimate(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The run to estimate.")],
    like: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Take the cost of a trial from this earlier run."),
    ] = None,
    trial: Annotated[
        bool,
        typer.Option("--trial", help="Measure the cost: run one trial of each starting harness."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Estimate the trials, tokens, dollars and hours of a run as ranges; nothing is recorded."""
    from coevolve.runs.cost_trial import forecast_run

    if like is not None and trial:
        raise InputError("--like and --trial both set the cost of a trial; use one of them.")
    with redirected_prints(as_json):
        found = forecast_run(file, like=None if like is None else find_run(like), trial=trial)
    if as_json:
        echo_json(found.to_json())
        return
    console = Screen()
    console.print(_table(found))
    console.print(str(found.savings))
    for note in found.notes:
        console.print(note)


def _table(found: "Forecast") -> Table:
    from coevolve.search.budget import CAPS
    from coevolve.views.forecast import PRICED, shown
    from coevolve.views.spend import Range

    numbers = tuple("time" if cap == "hours" else cap for cap in CAPS)
    made = table("", *numbers, right=numbers)
    for part in found.parts:
        trials = "-" if part.name == "proposing" else shown(part.trials, "trials")
        made.add_row(part.name, trials, *(shown(part.spent.get(m), m) for m in PRICED))
    made.add_section()
    total = found.total
    spent = (shown(total.spent.get(measure), measure) for measure in PRICED)
    made.add_row("total", shown(total.trials, "trials"), *spent, style="bold")
    limits = [
        "-" if (cap := found.caps[measure]) is None else shown(Range(cap, cap), measure)
        for measure in CAPS
    ]
    made.add_row("cap", *limits, style="bright_black")
    return made
