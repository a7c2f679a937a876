"""`coevolve protocols`: the protocols known by name."""

import json

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from coevolve.cli.command_arguments import AsJson
from coevolve.core.protocols import protocols as registered


def protocols(as_json: AsJson = False) -> None:
    """List the protocols with a description of each."""
    if as_json:
        rows = [known.to_json() | {"summary": known.summary} for known in registered()]
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("protocol", no_wrap=True, style="bold")
    table.add_column("description")
    for known in registered():
        table.add_row(known.name, known.summary)
    Console().print(table)
