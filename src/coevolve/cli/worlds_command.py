"""`coevolve worlds`: synthetic searches under four protocols, side by side."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from coevolve.benchmarks.synthetic import RoundDone, SyntheticWorld, search, summary
from coevolve.cli.command_arguments import AsJson, ProtocolSettings, protocol_settings
from coevolve.cli.console_output import Screen, echo_json, table
from coevolve.core.protocol_settings import changed_where_fitting
from coevolve.core.protocols import SearchProtocol
from coevolve.core.protocols import protocol as known_protocol
from coevolve.errors import InputError
from coevolve.formatting import score

PROTOCOLS = ("full", "naive", "random-resample", "task-coevolve")


def worlds(
    tasks: Annotated[int, typer.Option(help="Tasks in the pool.")] = 89,
    fraction: Annotated[
        float, typer.Option(help="Fraction of the tasks that a round draws.")
    ] = 0.2,
    rounds: Annotated[int, typer.Option(help="Rounds of each search.")] = 20,
    per_round: Annotated[int, typer.Option(help="Candidates proposed per round.")] = 3,
    searches: Annotated[
        int, typer.Option(help="Searches per protocol, each in a world of its own.")
    ] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the first world.")] = 0,
    changes: ProtocolSettings = None,
    as_json: AsJson = False,
) -> None:
    """Compare four protocols on synthetic searches whose true scores are known."""
    least = {"--tasks": 1, "--rounds": 1, "--per-round": 1, "--searches": 1, "--seed": 0}
    for option, value in zip(least, (tasks, rounds, per_round, searches, seed), strict=True):
        if value < least[option]:
            raise InputError(f"{option} must be at least {least[option]}, got {value}.")
    if not 0 < fraction <= 1:
        raise InputError(f"--fraction must be in (0, 1], got {fraction}.")
    rules = changed_where_fitting(
        [known_protocol(name) for name in PROTOCOLS], protocol_settings(changes)
    )
    given = [SyntheticWorld(pools={"all": tasks}, seed=seed + i) for i in range(searches)]

    def run(protocol: SearchProtocol, report: Callable[[RoundDone], None]) -> dict[str, Any]:
        options = {"fraction": fraction, "rounds": rounds, "per_round": per_round}
        return summary(
            [search(world, protocol=protocol, report=report, **options) for world in given]  # type: ignore[arg-type]
        )

    console = Screen(stderr=as_json)
    console.print(
        Text.assemble(
            (f"Synthetic worlds of {tasks} tasks", "bold"),
            f", {rounds} rounds of {per_round} candidates.\nfull evaluates every task, the other "
            f"protocols {fraction:.0%} of them per round.",
        )
    )
    rows = _with_progress(console, rules, rounds * searches, run)
    if as_json:
        echo_json(rows)
    else:
        console.print(_table(rows))


def _with_progress(
    console: Screen,
    rules: Sequence[SearchProtocol],
    steps: int,
    run: Callable[[SearchProtocol, Callable[[RoundDone], None]], dict[str, Any]],
) -> list[dict[str, Any]]:
    """Run every protocol with a progress bar, or with plain lines without a terminal."""
    columns = (
        TextColumn("{task.description:<16}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    rows = []
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        for protocol in rules:
            bar = progress.add_task(protocol.name, total=steps, note="")

            def show(done: RoundDone, bar: Any = bar) -> None:
                note = f"round {done.round}: best estimate {score(done.estimate)}"
                progress.update(bar, advance=1, note=note)

            row = run(protocol, show)
            rows.append(row)
            note = f"true score of the winner {_number(row, 'truth', digits=3)}"
            progress.update(bar, note=note)
            if not console.is_terminal:
                console.print(f"{protocol.name}: {row['searches']} searches done, {note}")
    return rows


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    searches, start = rows[0]["searches"], rows[0]["start"]
    numbers = ("true score", "regret", "Spearman")
    made = table("protocol", "evaluations", *numbers, right=("evaluations", *numbers))
    made.caption_justify = "left"
    made.caption = (
        f"Means ± standard errors over {searches} searches.\n"
        f"The better starting harness has {start:.3f}."
    )
    for row in rows:
        made.add_row(
            row["protocol"],
            f"{row['evaluations']:,}",
            _number(row, "truth", digits=3),
            _number(row, "regret", digits=3),
            _number(row, "spearman", digits=2),
            style="bold" if row is rows[-1] else "",
        )
    return made


def _number(row: dict[str, Any], name: str, *, digits: int) -> str:
    value, error = row[name], row[f"{name}_se"]
    if value is None:
        return "-"
    spread = "" if error is None else f" ± {error:.{digits}f}"
    return f"{value:.{digits}f}{spread}"
