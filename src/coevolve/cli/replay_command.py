"""`coevolve replay`: replays of protocols on outcome matrices, and their tables."""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from coevolve.analysis import (
    Comparison,
    Entry,
    Matrix,
    Mean,
    Replay,
    check_alike,
    read_matrices,
    synthetic_matrix,
)
from coevolve.analysis import replay as replayed
from coevolve.analysis.replay_search import PROTOCOLS, Plan
from coevolve.cli.command_arguments import (
    AsJson,
    ProtocolSettings,
    names,
    numbers,
    protocol_settings,
)
from coevolve.cli.console_output import Screen, echo_json, with_bar
from coevolve.core.protocols import protocols as registered
from coevolve.errors import InputError

_METRICS = {
    "regret": ("regret", ".4f"),
    "spearman": ("Spearman", ".2f"),
    "kendall": ("Kendall", ".2f"),
    "rank": ("rank", ".1f"),
    "rmse": ("RMSE", ".3f"),
    "coverage": ("coverage", ".0%"),
    "evaluations": ("evaluations", ".0f"),
    "share": ("share", ".1%"),
    "cost": ("cost", ".2f"),
}
"""Heading and format of each metric: scores are fractions, shares are in percent."""
_SPENT = ("evaluations", "share", "cost")
"""Metrics of spending, shown without their spread over series."""


def replay(
    matrices: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="MATRIX",
            help="An .npz matrix, a .csv or .parquet table of outcomes, a .jsonl file of events, "
            "or a folder of .npz files.",
        ),
    ] = None,
    protocols: Annotated[
        str | None,
        typer.Option(
            "--protocols",
            "--protocol",
            help="Names separated by commas; the others are compared with the first. With --aa, "
            "the default is all of them.",
            show_default=", ".join(PROTOCOLS),
        ),
    ] = None,
    fractions: Annotated[
        str,
        typer.Option(
            "--fractions",
            "--fraction",
            help="Fractions of the tasks that a round draws, separated by commas.",
        ),
    ] = "0.07,0.2",
    seeds: Annotated[int, typer.Option(help="Number of seeds.")] = 20,
    first_seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    per_round: Annotated[int, typer.Option(help="Candidates proposed per round.")] = 1,
    max_series: Annotated[int, typer.Option(help="Maximum number of series of a matrix.")] = 4,
    max_candidates: Annotated[
        int, typer.Option(help="Maximum number of candidates of a series.")
    ] = 60,
    bernoulli: Annotated[
        bool,
        typer.Option(
            "--bernoulli", help="Replace each mean of trials by one random trial, 0 or 1."
        ),
    ] = False,
    aa: Annotated[
        bool,
        typer.Option(
            "--aa", help="Make all candidates identical and count the differences declared."
        ),
    ] = False,
    workers: Annotated[
        int | None, typer.Option(help="Number of processes.", show_default="number of cores")
    ] = None,
    changes: ProtocolSettings = None,
    as_json: AsJson = False,
) -> None:
    """Replay protocols on outcome matrices and compare their results."""
    if seeds < 1:
        raise InputError(f"--seeds must be at least 1, got {seeds}.")
    plan = Plan.of(
        protocols=_protocols(protocols, aa),
        fractions=numbers("--fractions", fractions),
        seeds=range(first_seed, first_seed + seeds),
        per_round=per_round,
        bernoulli=bernoulli,
        settings=protocol_settings(changes),
    )
    found = [
        matrix.limited(series=max_series, candidates=max_candidates)
        for matrix in _matrices(matrices or [], aa)
    ]
    err = Screen(stderr=True)
    if not as_json:
        err.print(headline(found, plan))
    cores = os.cpu_count() or 1 if workers is None else workers
    run = check_alike if aa else replayed
    done = with_bar(
        err,
        lambda report: run(
            found,
            protocols=plan.protocols,
            fractions=plan.fractions,
            seeds=plan.seeds,
            per_round=plan.per_round,
            bernoulli=plan.bernoulli,
            workers=cores,
            report=report,
        ),
    )
    if as_json:
        echo_json(done.to_json(), allow_nan=False)
        return
    out = Screen()
    for part in alarm_tables(done, out.width) if aa else replay_tables(done, out.width):
        out.print(part)


def _protocols(given: str | None, aa: bool) -> tuple[str, ...]:
    if given is not None:
        return tuple(names("--protocols", given))
    return tuple(known.name for known in registered()) if aa else PROTOCOLS


def _matrices(paths: list[Path], aa: bool) -> list[Matrix]:
    if paths:
        return read_matrices(paths)
    if not aa:
        raise InputError("name at least one matrix, or use --aa.")
    return [synthetic_matrix()]


class Column(NamedTuple):
    """A column of a table, as text."""

    heading: str
    cells: list[str]

    @property
    def width(self) -> int:
        return max(len(text) for text in (self.heading, *self.cells))


def headline(matrices: Sequence[Matrix], plan: Plan) -> Text:
    """The plan of the replay, and the notes of the matrices."""
    series = sum(len(matrix.series) for matrix in matrices)
    searches = series * len(plan.protocols) * len(plan.fractions) * len(plan.seeds)
    single = "; means replaced by single trials" if plan.bernoulli else ""
    notes = [f"\n{m.name}: {note}" for m in matrices for note in m.notes]
    return Text.assemble(
        (f"{searches:,} searches", "bold"),
        f": matrices {len(matrices)}, series {series}, protocols {len(plan.protocols)}, "
        f"fractions {len(plan.fractions)}, seeds {len(plan.seeds)}; {plan.per_round} per round"
        f"{single}",
        ("".join(notes), "dim"),
    )


def replay_tables(done: Replay, width: int) -> Iterator[Text | Table]:
    """Regret and Spearman by matrix, then means and comparisons, for every fraction."""
    for fraction, entries in _by_fraction(done.summary):
        overall = [entry for entry in entries if entry.matrix is None]
        yield from _by_matrix(fraction, entries, width)
        yield from _means(fraction, overall, width)
        yield from _comparisons(fraction, overall, width)


def alarm_tables(done: Replay, width: int) -> Iterator[Text | Table]:
    """How often identical candidates are declared different."""
    for fraction, entries in _by_fraction(done.summary):
        overall = [entry for entry in entries if entry.matrix is None]
        columns = [
            Column(heading, [_rate(entry.means[name]) for entry in overall])
            for name, heading in (
                ("pairs_different", "pairs declared different"),
                ("winner_better", "winner declared better"),
            )
        ]
        title = f"Identical candidates, ρ = {fraction:g}: false alarms of 5% tests"
        yield from _fitting(title, _protocol_column(overall), columns, width)


def _by_matrix(fraction: float, entries: Sequence[Entry], width: int) -> Iterator[Text | Table]:
    rows = list(dict.fromkeys((entry.matrix, entry.run) for entry in entries))
    columns = [
        Column(protocol, [_pair(entry) for entry in entries if entry.protocol == protocol])
        for protocol in dict.fromkeys(entry.protocol for entry in entries)
    ]
    index = Column("matrix", [_row(matrix, run) for matrix, run in rows])
    title = f"ρ = {fraction:g}: regret / Spearman"
    return _fitting(title, index, columns, width, last="bold")


def _row(matrix: str | None, run: str | None) -> str:
    return "mean" if matrix is None else matrix if run is None else f"  series {run}"


def _means(fraction: float, overall: Sequence[Entry], width: int) -> Iterator[Text | Table]:
    columns = [
        Column(
            heading,
            [_mean(e.means[name], form, spread=name not in _SPENT) for e in overall],
        )
        for name, (heading, form) in _METRICS.items()
        if any(entry.means[name].mean is not None for entry in overall)
    ]
    title = f"ρ = {fraction:g}: means over matrices ± standard errors over series"
    return _fitting(title, _protocol_column(overall), columns, width)


def _comparisons(fraction: float, overall: Sequence[Entry], width: int) -> Iterator[Text | Table]:
    compared = [entry for entry in overall if entry.paired is not None]
    if not compared:
        return
    found = [entry.paired for entry in compared if entry.paired is not None]
    columns = [
        Column("regret", [_difference(c) for c in found]),
        Column("z", [_number(c.z, ".1f") for c in found]),
        Column("|z| > 2", ["yes" if c.significant else "no" for c in found]),
        Column("wins / ties / losses", [f"{c.wins} / {c.ties} / {c.losses}" for c in found]),
    ]
    title = f"ρ = {fraction:g}: difference from {found[0].against} on the same series and seeds"
    yield from _fitting(title, _protocol_column(compared), columns, width)


def _fitting(
    title: str, index: Column, columns: Sequence[Column], width: int, last: str = ""
) -> Iterator[Text | Table]:
    """A title and a table, repeated for the columns that do not fit the width.

    `last` is the style of the last row.
    """
    rest = list(columns)
    while rest:
        taken, used = 1, index.width + 2 + rest[0].width
        while taken < len(rest) and used + 2 + rest[taken].width <= width:
            used += 2 + rest[taken].width
            taken += 1
        yield Text(f"\n{title}", style="bold")
        yield _table([index, *rest[:taken]], last)
        rest = rest[taken:]


def _table(columns: Sequence[Column], last: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for number, column in enumerate(columns):
        table.add_column(column.heading, justify="right" if number else "left", no_wrap=True)
    rows = list(zip(*(column.cells for column in columns), strict=True))
    for number, row in enumerate(rows, start=1):
        table.add_row(*row, style=last if number == len(rows) else "")
    return table


def _by_fraction(entries: Iterable[Entry]) -> Iterator[tuple[float, list[Entry]]]:
    for fraction, group in groupby(entries, key=lambda entry: entry.fraction):
        yield fraction, list(group)


def _protocol_column(entries: Sequence[Entry]) -> Column:
    return Column("protocol", [entry.protocol for entry in entries])


def _pair(entry: Entry) -> str:
    regret, spearman = entry.means["regret"].mean, entry.means["spearman"].mean
    return f"{_number(regret, '.4f')} / {_number(spearman, '.2f')}"


def _mean(mean: Mean, form: str, *, spread: bool = True) -> str:
    shown = _number(mean.mean, form)
    if mean.se is None or not spread:
        return shown
    return f"{shown} ± {mean.se:{form}}"


def _difference(found: Comparison) -> str:
    spread = "" if found.se is None else f" ± {found.se:.4f}"
    return f"{found.difference:+.4f}{spread}"


def _rate(mean: Mean) -> str:
    return "no interval" if mean.mean is None else _mean(mean, ".1%")


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"
