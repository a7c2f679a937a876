"""`coevolve analyse`: the paper's analyses of a finished run or an outcome matrix."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from coevolve.cli.command_arguments import (
    AsJson,
    ProtocolSettings,
    names,
    numbers,
    protocol_settings,
    whole_numbers,
)
from coevolve.cli.console_output import Screen, echo_json, with_bar
from coevolve.cli.paid_scores import Yes, lacking, pay
from coevolve.cli.table_grid import table_grid
from coevolve.errors import ConfigError, InputError, StateError

if TYPE_CHECKING:
    from coevolve_reproductions.tables import Source, Table


def analyse(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="A run folder, an .npz outcome matrix, a .csv or .parquet table of outcomes, or "
            "a .jsonl file of events.",
        ),
    ],
    table: Annotated[str, typer.Option(help="Its name, such as ties; an unknown name lists all.")],
    series: Annotated[
        str | None, typer.Option(help="Series of a matrix.", show_default="the first")
    ] = None,
    protocols: Annotated[
        str | None, typer.Option("--protocols", "--protocol", help="Names separated by commas.")
    ] = None,
    fractions: Annotated[
        str | None,
        typer.Option(
            "--fractions", "--fraction", help="Fractions of the tasks, separated by commas."
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Replays of each search.", show_default="10")
    ] = None,
    per_round: Annotated[
        int | None, typer.Option(help="Candidates per round of a replay.", show_default="1")
    ] = None,
    rounds: Annotated[
        str | None,
        typer.Option(help="Rounds that the table difficulty shows, separated by commas."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the CSV file and the figure.")] = Path(
        "analysis"
    ),
    figure: Annotated[
        Path | None,
        typer.Option(help="The figure's file, .svg, .png or .pdf.", show_default="SVG in --out"),
    ] = None,
    changes: ProtocolSettings = None,
    rescore: Annotated[
        str | None,
        typer.Option(
            metavar="all|topN",
            help="Score candidates of the run on every task first: all, or the N with the highest "
            "estimates, such as top10. Shows the price and asks.",
            show_default=False,
        ),
    ] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Print an analysis from the paper, and write it as a CSV file and a figure."""
    try:  # on first use: no other command needs the tables
        from coevolve_reproductions.tables import Settings, checked_suffix, read_source
        from coevolve_reproductions.tables import analyse as analysed
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the tables of the paper are not installed ({error}); reinstall task-coevolve, "
            "which includes them as coevolve_reproductions."
        ) from error
    if figure is not None:
        checked_suffix(figure)
    settings = Settings(
        protocols=None if protocols is None else names("--protocols", protocols),
        fractions=None if fractions is None else numbers("--fractions", fractions),
        seeds=seeds,
        per_round=per_round,
        rounds=None if rounds is None else whole_numbers("--rounds", rounds),
        set=protocol_settings(changes) or None,
    )
    if seeds is not None and seeds < 1:
        raise InputError(f"--seeds must be at least 1, got {seeds}.")
    if yes and rescore is None:
        raise InputError("--yes has an effect only with --rescore; leave it out.")
    source, err = read_source(run, series), Screen(stderr=True)
    if rescore is not None:
        _check_rescore(source, table)
        assert source.folder is not None
        pay(lacking(source.folder, rescore), yes=yes, quiet=as_json)
        source = read_source(run, series)
    try:
        made = with_bar(err, lambda report: analysed(source, table, settings, report))
    except StateError as error:
        raise StateError(f"{run}: {error}") from error
    files = _written(err, made, source.name, out, figure)
    if as_json:
        files_json = {"files": [str(path) for path in files]}
        echo_json(made.to_json() | files_json, allow_nan=False)
        return
    console = Screen()
    console.print(Text(made.title, "bold"))
    console.print(table_grid(made, console.width))
    console.print(made.note)
    err.print(f"written: {', '.join(str(path) for path in files)}", soft_wrap=True)


def _check_rescore(source: "Source", table: str) -> None:
    from coevolve_reproductions.tables import ANALYSES

    if source.folder is None:
        raise InputError("--rescore needs a run folder: a matrix or event file has no harnesses.")
    if table in ANALYSES and not ANALYSES[table].needs_truth:
        raise InputError(f"--rescore has no effect on the table {table}; leave it out.")


def _written(err: Screen, table: "Table", name: str, out: Path, figure: Path | None) -> list[Path]:
    """Write the table and its figure; without matplotlib only the table."""
    from coevolve_reproductions.tables import save_figure

    data = out / f"{name}-{table.name}.csv"
    drawn = figure or data.with_suffix(".svg")
    try:
        for path in (data, drawn):
            path.parent.mkdir(parents=True, exist_ok=True)
        data.write_text(table.csv(), encoding="utf-8")
        return [data, drawn] if save_figure(table, drawn) else [data]
    except OSError as error:
        raise InputError(f"cannot write {error.filename or out}: {error.strerror}.") from error
    except ImportError:
        err.print(
            "no figure: matplotlib is not installed; pip install 'task-coevolve[figures]'",
        )
        return [data]
