"""`coevolve searches`: whole searches on a table of harnesses."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich import box
from rich.table import Column, Table

from coevolve.cli.command_arguments import AsJson, names, numbers
from coevolve.cli.console_output import Screen, echo_json, with_bar
from coevolve.errors import InputError
from coevolve.formatting import plural

if TYPE_CHECKING:
    from coevolve.tables.harness_table import HarnessTable
    from coevolve.tables.table_search import ProposerName

SYNTHETIC = "synthetic"
MOST_SEEDS = 100_000
"""All results are kept in memory until the end."""


def searches(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="A table that `coevolve fill` wrote, or 'synthetic' for invented outcomes.",
        ),
    ],
    protocols: Annotated[
        str,
        typer.Option("--protocols", "--protocol", help="Names separated by commas."),
    ] = "full,adaptive,task-coevolve,random-resample,naive",
    fractions: Annotated[
        str,
        typer.Option(
            "--fractions",
            "--fraction",
            help="Shares of the validation tasks per candidate, separated by commas.",
        ),
    ] = "0.07,0.2",
    seeds: Annotated[int, typer.Option(help="Number of seeds.")] = 20,
    first_seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    rounds: Annotated[int, typer.Option(help="Rounds of a search.")] = 20,
    per_round: Annotated[int, typer.Option(help="Candidates proposed per round.")] = 3,
    proposer: Annotated[
        str, typer.Option(help="'offline', or 'mutation': one random change of the best.")
    ] = "offline",
    workers: Annotated[
        int | None, typer.Option(help="Number of processes.", show_default="number of cores")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run whole searches on a table of harnesses, and compare protocols."""
    from coevolve.tables.search_series import report, run_series, settings

    if seeds < 1 or first_seed < 0:
        raise InputError(
            f"--seeds must be at least 1 and --first-seed at least 0, got {seeds} and "
            f"{first_seed}."
        )
    if seeds > MOST_SEEDS:
        raise InputError(f"--seeds must be at most {MOST_SEEDS:,}, got {seeds:,}.")
    if workers is not None and workers < 1:
        raise InputError(f"--workers must be at least 1, got {workers}.")
    plan = settings(
        names("--protocols", protocols),
        numbers("--fractions", fractions),
        rounds=rounds,
        candidates=per_round,
    )
    found, err = _table(table), Screen(stderr=True)
    done = with_bar(
        err,
        lambda told: run_series(
            found,
            plan,
            range(first_seed, first_seed + seeds),
            proposer=cast("ProposerName", proposer),
            workers=workers or os.cpu_count() or 1,
            told=told,
        ),
    )
    facts = found.facts
    about = {
        "set": facts.set,
        "harnesses": len(found.keys),
        "stage": facts.stage,
        "proposer": proposer,
        "best harness": float(found.validation.max()),
        "best start": float(max(found.validation[found.keys[name]] for name in found.starts)),
        "source": facts.source,
    }
    result = report(done, about)
    if as_json:
        echo_json(result, allow_nan=False)
        return
    screen = Screen()
    screen.print(_grid(result["series"]))
    screen.print(
        f"Percent, means ± standard errors over {plural(seeds, 'seed')}; "
        "bias: estimate - validation.",
        style="dim",
    )


def _table(name: str) -> "HarnessTable":
    from coevolve.tables.harness_table import HarnessTable
    from coevolve.tables.synthetic_table import synthetic_table

    if name == SYNTHETIC:
        return synthetic_table(0)
    return HarnessTable.read(Path(name))


_COLUMNS = ("validation", "test", "bias", "beats start", "beats full")


def _grid(series: Sequence[Mapping[str, Any]]) -> Table:
    grid = Table(
        Column("protocol", min_width=15),
        "share",
        *(name.replace(" ", "\n") for name in _COLUMNS),
        "evalu-\nations",
        box=box.SIMPLE,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    for one in series:
        grid.add_row(
            one["protocol"],
            f"{100 * one['fraction']:g}%",
            *(_percent(one.get(name), error=not name.startswith("beats")) for name in _COLUMNS),
            f"{one['evaluations']['mean']:.0f}",
        )
    return grid


def _percent(average: Mapping[str, float | None] | None, *, error: bool) -> str:
    if average is None or average["mean"] is None:
        return ""
    se = average["se"] if error else None
    return f"{100 * average['mean']:.1f}" + ("" if se is None else f" ± {100 * se:.1f}")
