"""`coevolve run`: a search from its TOML file to its end."""

from pathlib import Path
from typing import Annotated

import typer

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the end.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the report as JSON at the end.")]


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="What to search, and how.")],
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Search: propose, check, evaluate, and choose, until rounds or a budget end it."""
    from coevolve.cli.aside import prints_aside
    from coevolve.cli.working import work
    from coevolve.runs.session import create_run

    with prints_aside(as_json):
        folder = create_run(file)
    work(folder, quiet=quiet, as_json=as_json)
