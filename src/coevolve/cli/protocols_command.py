"""`coevolve protocols`: the protocols known by name."""

from coevolve.cli.command_arguments import AsJson
from coevolve.cli.console_output import Screen, echo_json, table
from coevolve.core.protocols import protocols as registered


def protocols(as_json: AsJson = False) -> None:
    """List the protocols with a description of each."""
    if as_json:
        rows = [known.to_json() | {"summary": known.summary} for known in registered()]
        echo_json(rows)
        return
    made = table("protocol", "description", wrap=("description",))
    for known in registered():
        made.add_row(f"[bold]{known.name}[/]", known.summary)
    Screen().print(made)
