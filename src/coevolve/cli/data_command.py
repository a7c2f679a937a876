"""`coevolve data`: the published data sets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevolve.cli.command_arguments import AsJson
from coevolve.cli.console_output import Screen, echo, echo_json, table

if TYPE_CHECKING:
    from coevolve.benchmarks.textclass.published_sets import KnownSet

data = typer.Typer(
    name="data", no_args_is_help=True, help="Download the published data sets, or list them."
)


@data.command()
def get(
    sets: Annotated[list[str], typer.Argument(help="Names that `coevolve data list` shows.")],
    origin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FOLDER|URL",
            help="A folder or a mirror to copy from. Default: the public sources.",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where to store them. Default: the cache."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Download data sets, verify their checksums, and store them for benchmarks."""
    from coevolve.benchmarks.textclass.set_download import get_set

    rows: list[dict[str, Any]] = []
    for known in _known(sets):
        got = get_set(known, origin=origin, to=to)
        rows.append({"set": got.name, "folder": str(got.folder), "origin": got.origin})
        if not as_json:
            source = "already" if got.origin is None else f"fetched from {got.origin},"
            echo(f"{got.name}: {source} in {got.folder}")
    if as_json:
        echo_json(rows)


@data.command("list")
def list_sets(
    folder: Annotated[
        Path | None,
        typer.Option("--in", metavar="FOLDER", help="Where to look. Default: the cache."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the known data sets, and which of them are available here."""
    rows = _listed(folder)
    if as_json:
        echo_json(rows)
        return
    numbers = ("train", "val", "test", "labels")
    made = table("set", "content", *numbers, "here", right=numbers)
    for row in rows:
        cells = (str(row[key]) for key in ("set", "title", *numbers))
        made.add_row(*cells, "yes" if row["here"] else "no")
    Screen().print(made)
    if missing := [row["set"] for row in rows if not row["here"]]:
        echo(f"Get the others with: coevolve data get {' '.join(missing)}")


def _known(names: list[str]) -> "list[KnownSet]":
    from coevolve.benchmarks.textclass.published_sets import KNOWN, SHIPPED
    from coevolve.errors import InputError, nearest

    for name in names:
        if name == SHIPPED:
            raise InputError(f"{SHIPPED} is included in coevolve; it needs no download.")
        if name not in KNOWN:
            raise InputError(
                f"there is no data set {name!r}; known: {', '.join(KNOWN)}." + nearest(name, KNOWN)
            )
    return [KNOWN[name] for name in dict.fromkeys(names)]


def _listed(folder: Path | None) -> list[dict[str, Any]]:
    from coevolve.benchmarks.textclass.data_sets import data_folder, load_set
    from coevolve.benchmarks.textclass.published_sets import KNOWN, SHIPPED
    from coevolve.benchmarks.textclass.set_download import is_complete

    base = data_folder() if folder is None else folder
    rows: list[dict[str, Any]] = [
        {
            "set": known.name,
            "title": known.title,
            **known.rows,
            "labels": known.labels,
            "here": is_complete(known, base / known.name),
        }
        for known in KNOWN.values()
    ]
    own = load_set(SHIPPED)
    sizes = {"train": len(own.train), "val": len(own.val), "test": len(own.test)}
    title = "Requests to a service desk"
    return [
        *rows,
        {"set": SHIPPED, "title": title, **sizes, "labels": len(own.labels), "here": True},
    ]
