"""`coevolve export`: the outcomes of a run as a table, a matrix or events."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coevolve.cli.command_arguments import AsJson, Run, find_run
from coevolve.cli.console_output import echo, echo_json
from coevolve.errors import InputError, StateError

if TYPE_CHECKING:
    from coevolve.search.journal import Journal

ENDINGS = (".csv", ".parquet", ".npz", ".jsonl")


def export(
    to: Annotated[
        Path,
        typer.Option(help=f"The file to write. Its suffix is the format: {', '.join(ENDINGS)}."),
    ],
    run: Run = None,
    as_json: AsJson = False,
) -> None:
    """Export the outcomes of a run: .csv or .parquet rows, an .npz matrix, or .jsonl events."""
    from coevolve.runs.session import find_protocol
    from coevolve.store import RunStore
    from coevolve.views.export import write_csv, write_events, write_matrix, write_parquet

    folder = find_run(run)
    find_protocol(folder)
    writers: dict[str, tuple[Callable[[Journal, Path], int], str]] = {
        ".csv": (write_csv, "outcomes"),
        ".parquet": (write_parquet, "outcomes"),
        ".npz": (write_matrix, "candidates"),
        ".jsonl": (write_events, "events"),
    }
    if to.suffix not in writers:
        what = f"has the suffix {to.suffix!r}" if to.suffix else "has no suffix"
        raise InputError(f"--to {str(to)!r} {what}; use one of {', '.join(ENDINGS)}.")
    write, what = writers[to.suffix]
    part = to.with_name(f".{to.name}.part")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with RunStore.read(folder) as store:
            written = write(store, part)
        part.replace(to)
    except StateError as error:
        raise StateError(f"{folder}: {error}") from error
    except OSError as error:
        raise InputError(f"cannot write {to}: {error.strerror}.") from error
    finally:
        with contextlib.suppress(OSError):  # it does not exist if the folder is not writable
            part.unlink()
    if as_json:
        echo_json({"folder": str(folder), "file": str(to), what: written})
    else:
        echo(f"Wrote {written:,} {what} of {folder} to {to}.")
