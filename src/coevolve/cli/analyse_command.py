"""`coevolve analyse`: the paper's analyses of a finished run or an outcome matrix."""

import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table as Grid
from rich.text import Text

from coevolve.cli.command_arguments import (
    JOURNAL,
    AsJson,
    ProtocolSettings,
    names,
    numbers,
    protocol_settings,
    whole_numbers,
)
from coevolve.cli.console_output import Screen, echo_json, fitted, with_bar
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
    as_json: AsJson = False,
) -> None:
    """Print an analysis from the paper, and write it as a CSV file and a figure."""
    try:  # on first use: no other command needs the tables
        from coevolve_reproductions.tables import Settings, checked_suffix
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
    source = _source(run, series)
    err = Screen(stderr=True)
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
    console.print(_grid(made, console.width))
    console.print(made.note)
    err.print(f"written: {', '.join(str(path) for path in files)}", soft_wrap=True)


def _source(path: Path, series: str | None) -> "Source":
    """The run or matrix at a path; a run folder is read through its exported events."""
    from coevolve_reproductions.tables import EVENTS, read_source

    if not (path / JOURNAL).is_file():
        return read_source(path, series)
    from coevolve.runs.session import find_protocol
    from coevolve.store import RunStore
    from coevolve.views.export import write_events

    find_protocol(path)
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder) / path.resolve().name
        events.mkdir()
        with RunStore.read(path) as store:
            write_events(store, events / EVENTS)
        return read_source(events, series)


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


def _grid(table: "Table", width: int) -> Grid:
    """The table; names wrap, and the last columns are left out where they do not fit."""
    lines = table.lines()
    headings = []
    for place, column in enumerate(table.shown):
        longest = max(
            [len(line[place]) for line in lines] + list(map(len, column.heading.split()))
        )
        headings.append("\n".join(textwrap.wrap(column.heading, longest)))
    numbers = [head for head, col in zip(headings, table.shown, strict=True) if not col.left]
    names = [head for head, col in zip(headings, table.shown, strict=True) if col.left]
    grid = fitted(width, headings, lines, right=numbers, wrap=names, drop=[*reversed(numbers[1:])])
    notes = [] if grid.caption is None else [f"{grid.caption}; the CSV file has them"]
    if more := len(table.rows) - len(lines):
        notes.insert(0, f"and {more} more in the CSV file")
    if notes:
        grid.caption, grid.caption_justify = "; ".join(notes), "left"
    return grid
