"""`coevolve estimate`: the expected cost of a run, before it starts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from coevolve.cli.command_arguments import AsJson, Set, find_run
from coevolve.cli.console_output import (
    Screen,
    echo_json,
    fitting,
    narrowed,
    redirected_prints,
    table,
)
from coevolve.errors import InputError

if TYPE_CHECKING:
    from coevolve.views.forecast import Forecast, Part


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
    changed: Set = None,
    as_json: AsJson = False,
) -> None:
    """Estimate the trials, tokens, dollars and hours of a run as ranges; nothing is recorded."""
    from coevolve.runs.config_overrides import parse_overrides
    from coevolve.runs.cost_trial import forecast_run

    if like is not None and trial:
        raise InputError("--like and --trial both set the cost of a trial; use one of them.")
    with redirected_prints(as_json):
        found = forecast_run(
            file,
            like=None if like is None else find_run(like),
            trial=trial,
            overrides=parse_overrides(changed or ()),
        )
    if as_json:
        echo_json(found.to_json())
        return
    console = Screen()
    console.print(forecast_table(found, console.width))
    if found.drawn is not None:
        console.print(str(found.drawn))
    console.print(str(found.savings))
    for note in found.notes:
        console.print(note)


def forecast_table(found: "Forecast", width: int) -> Table:
    """The parts of a run with their costs, the total, and the caps."""
    from coevolve.search.budget import CAPS
    from coevolve.views.forecast import shown
    from coevolve.views.spend import Range

    numbers = tuple("time" if cap == "hours" else cap for cap in CAPS)
    rows = [_row(part, "-" if part.name == "proposing" else None) for part in found.parts]
    rows.append(_row(found.total, None, "total"))
    limits = [
        "-" if (cap := found.caps[measure]) is None else shown(Range(cap, cap), measure)
        for measure in CAPS
    ]
    rows.append(["cap", *limits])
    headings = ("", *numbers)
    kept = fitting(width, headings, rows, wrap=("",), drop=("tokens", "dollars"))
    made = table(*(headings[place] for place in kept), right=numbers, wrap=("",))
    styles = ["" for _ in found.parts] + ["bold", "bright_black"]
    for row, style in zip(rows, styles, strict=True):
        if row[0] == "total":
            made.add_section()
        made.add_row(*(row[place] for place in kept), style=style)
    return narrowed(made, width)


def _row(part: "Part", trials: str | None, name: str = "") -> list[str]:
    from coevolve.views.forecast import PRICED, shown

    number = shown(part.trials, "trials") if trials is None else trials
    return [name or part.name, number, *(shown(part.spent.get(m), m) for m in PRICED)]
