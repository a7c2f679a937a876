"""`coevolve protocols`: what can be chosen by name."""

import json
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from coevolve.core.protocols import protocols as registered


def protocols(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, not a table.")] = False,
) -> None:
    """List the protocols and what each does."""
    if as_json:
        rows = [known.to_json() | {"summary": known.summary} for known in registered()]
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("protocol", no_wrap=True, style="bold")
    table.add_column("what it does")
    for known in registered():
        table.add_row(known.name, known.summary)
    Console().print(table)
