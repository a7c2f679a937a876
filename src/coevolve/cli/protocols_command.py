"""`coevolve protocols`: the protocols known by name."""

import json

import typer
from rich.console import Console

from coevolve.cli.command_arguments import AsJson
from coevolve.cli.console_output import table
from coevolve.core.protocols import protocols as registered


def protocols(as_json: AsJson = False) -> None:
    """List the protocols with a description of each."""
    if as_json:
        rows = [known.to_json() | {"summary": known.summary} for known in registered()]
        typer.echo(json.dumps(rows, indent=2))
        return
    made = table("protocol", "description", wrap=("description",))
    for known in registered():
        made.add_row(f"[bold]{known.name}[/]", known.summary)
    Console().print(made)
