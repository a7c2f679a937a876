"""`coevolve estimate`: the expected cost of a run, before it starts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from coevolve.cli.command_arguments import AsJson, find_run
from coevolve.cli.console_output import Screen, echo_json, redirected_prints, table
from coevolve.errors import InputError, StateError

if TYPE_CHECKING:
    from coevolve.views.forecast import Forecast

_MEASURES = ("tokens", "dollars", "hours")


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
    from coevolve.benchmarks.base import sealed_tasks
    from coevolve.runs.building import build_benchmark, workers
    from coevolve.runs.config import read_config
    from coevolve.runs.cost_trial import measure_trial
    from coevolve.runs.session import new_selector
    from coevolve.store import RunStore
    from coevolve.views.forecast import forecast
    from coevolve.views.spend import FREE, Costs, costs_of_run

    if like is not None and trial:
        raise InputError("--like and --trial both set the cost of a trial; use one of them.")
    with redirected_prints(as_json):
        config = read_config(file)
        benchmark = build_benchmark(config, file.parent)
    each: Costs = {}
    proposal: Costs = FREE if config.proposer.free else {}
    if like is not None:
        earlier = find_run(like)
        with RunStore.read(earlier) as store:
            each, proposal = costs_of_run(store)
        if not each:
            raise StateError(f"the run {earlier} has no outcomes yet, so --like cannot use it.")
    if trial:
        with redirected_prints(as_json):
            each = measure_trial(config, file.parent, benchmark)
    found = forecast(
        new_selector(config, benchmark.pool),
        config.settings(),
        starts=len(benchmark.starts),
        test_tasks=len(sealed_tasks(benchmark)),
        workers=workers(config),
        trial=each,
        proposal=proposal,
        measured=trial,
    )
    if as_json:
        echo_json(found.to_json())
        return
    console = Screen()
    console.print(_table(found))
    for note in found.notes:
        console.print(note)


def _table(found: "Forecast") -> Table:
    from coevolve.views.forecast import shown
    from coevolve.views.spend import Range

    numbers = ("trials", "tokens", "dollars", "time")
    made = table("", *numbers, right=numbers)
    for part in found.parts:
        trials = "-" if part.name == "proposing" else shown(part.trials, "trials")
        made.add_row(part.name, trials, *(shown(part.spent.get(m), m) for m in _MEASURES))
    made.add_section()
    total = found.total
    spent = (shown(total.spent.get(measure), measure) for measure in _MEASURES)
    made.add_row("total", shown(total.trials, "trials"), *spent, style="bold")
    limits = [
        "-" if (cap := found.caps[measure]) is None else shown(Range(cap, cap), measure)
        for measure in ("trials", *_MEASURES)
    ]
    made.add_row("cap", *limits, style="bright_black")
    return made
