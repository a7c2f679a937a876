"""`coevolve export`: the outcomes of a run as a table, a matrix or events."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from coevolve.cli.places import find_run
from coevolve.cli.resume import Run
from coevolve.errors import InputError

ENDINGS = (".csv", ".parquet", ".npz", ".jsonl")


def export(
    to: Annotated[
        Path,
        typer.Option(help=f"File to write; its ending says how: {', '.join(ENDINGS)}."),
    ],
    run: Run = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was written as JSON.")
    ] = False,
) -> None:
    """Write the outcomes of a run: .csv or .parquet rows, an .npz matrix, .jsonl events."""
    from coevolve.cli.files import write_csv, write_events, write_matrix, write_parquet
    from coevolve.runs.session import find_protocol

    folder = find_run(run)
    find_protocol(folder)
    writers: dict[str, tuple[Callable[[Path, Path], int], str]] = {
        ".csv": (write_csv, "outcomes"),
        ".parquet": (write_parquet, "outcomes"),
        ".npz": (write_matrix, "candidates"),
        ".jsonl": (write_events, "events"),
    }
    if to.suffix not in writers:
        what = f"ends in {to.suffix!r}" if to.suffix else "has no ending"
        raise InputError(f"--to {str(to)!r} {what}; it may be {', '.join(ENDINGS)}.")
    write, what = writers[to.suffix]
    part = to.with_name(f".{to.name}.part")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        written = write(folder, part)
        part.replace(to)
    except OSError as error:
        raise InputError(f"cannot write {to}: {error.strerror}.") from error
    finally:
        with contextlib.suppress(OSError):  # it was not made, where nothing can be written
            part.unlink()
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), "file": str(to), what: written}))
    else:
        typer.echo(f"Wrote {written:,} {what} of {folder} to {to}.")
