"""`coevolve fill`: a table of every harness of a space on every task of a set."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coevolve.cli.console_output import echo
from coevolve.errors import InputError

if TYPE_CHECKING:
    from coevolve.tables.table_filler import Progress


def fill(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="The .npz file to write.")],
    data_set: Annotated[
        str, typer.Option("--set", help="A known set, or a folder with your own rows.")
    ] = "service-desk",
    data: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where the published sets are. Default: the cache."),
    ] = None,
    space: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A TOML file with the blocks of each stage.",
            show_default="the space of docs/harness-table.md",
        ),
    ] = None,
    stage: Annotated[
        int | None,
        typer.Option(help="The last stage of the space to fill.", show_default="all"),
    ] = None,
    device: Annotated[str, typer.Option(help="A device of torch: cpu, cuda, cuda:1.")] = "cpu",
    threads: Annotated[int, typer.Option(help="Cores for the model on a CPU.")] = 1,
    workers: Annotated[int, typer.Option(help="Processes that run harnesses.")] = 1,
    python: Annotated[
        str, typer.Option(help="A Python that has torch and numpy.", show_default="this one")
    ] = sys.executable,
    work: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Where answers and rows are kept until the table is full.",
            show_default="beside the table",
        ),
    ] = None,
    count: Annotated[
        bool,
        typer.Option("--count", help="Only count the harnesses and the requests they send."),
    ] = False,
    save_only: Annotated[
        bool,
        typer.Option("--save-only", help="Only write the stages that are already finished."),
    ] = False,
) -> None:
    """Evaluate every harness of a space on every task, and write the table."""
    from coevolve.benchmarks.textclass.data_sets import load_set
    from coevolve.models.batched.label_scorer import LabelScorer
    from coevolve.models.embedded.model_weights import find_weights
    from coevolve.tables.table_filler import Speller, TableFiller
    from coevolve.tables.table_space import TableSpace

    harnesses = TableSpace() if space is None else TableSpace.read(space)
    last = len(harnesses.stages) if stage is None else stage
    harnesses.blocks(last)  # refuses an unknown stage
    for name, value in (("--threads", threads), ("--workers", workers)):
        if value < 1:
            raise InputError(f"{name} must be at least 1, got {value}.")
    if table.suffix != ".npz":
        raise InputError(f"a table is an .npz file, got {table}.")
    if not table.parent.is_dir():
        raise InputError(f"there is no folder {table.parent} to write {table.name} to.")
    if count and save_only:
        raise InputError("--count writes nothing; remove it or --save-only.")
    rows, weights = load_set(data_set, data), find_weights()
    folder = work or table.with_name(f"{table.stem}.work")
    speller = Speller(weights)
    families = 1 if device == "cpu" else GPU_FAMILIES
    filler = TableFiller(
        rows, harnesses, folder, speller=speller, families=families, workers=workers
    )
    try:
        if count:
            requests, tokens = filler.requests(last)
            number = sum(row.stage <= last for row in harnesses.rows())
            echo(f"{number:,} harnesses send {requests:,} requests of {tokens:,} tokens.")
            return
        filler.check(table)
        command = f"coevolve fill {table.name} --set {rows.name}"
        command += f" --space {space.name}" if space else ""
        command += f" --device {device}" if device != "cpu" else ""
        if not save_only:
            with LabelScorer(weights, device=device, threads=threads, python=python) as scorer:
                for each in range(1, last + 1):
                    filler.fill(scorer, _told, each)
                    filler.save(table, f"{command} --stage {each}")
        else:
            filler.save(table, f"{command} --stage {filler.stage}")
    finally:
        filler.close()
        speller.close()
    echo(f"{table}: {table.stat().st_size / 1e6:.1f} MB")


GPU_FAMILIES = 1000
"""Families of harnesses whose prompts a GPU gets at once."""


def _told(progress: "Progress") -> None:
    echo(
        f"{progress.rows:,} of {progress.of:,} harnesses, stage {progress.stage}; "
        f"{progress.asked:,} requests of {progress.read:,} tokens in {progress.seconds:.0f} s"
    )
