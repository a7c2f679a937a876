"""`coevolve protocols`: the protocols known by name, with their parts and settings."""

from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from rich.text import Text

from coevolve.cli.command_arguments import AsJson
from coevolve.cli.console_output import Screen, echo_json, table
from coevolve.core.protocol_settings import PARTS, settings_of
from coevolve.core.protocols import SearchProtocol, protocol
from coevolve.core.protocols import protocols as registered


def protocols(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="A protocol, to explain its settings.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the protocols with their parts and settings, or explain the settings of one."""
    known = registered() if name is None else (protocol(name),)
    if as_json:
        echo_json([_to_json(one) for one in known])
    elif name is None:
        made = table("protocol", "description", wrap=("description",))
        for one in known:
            described = Text.assemble(f"{one.summary}\n", (_parts(one), "bright_black"))
            made.add_row(Text(one.name, "bold"), described)
        Screen().print(made)
        Screen().print(
            'Change a setting in [search] of a TOML file (rounding = "floor"); with --set '
            "search.rounding=floor in `coevolve run`, --set rounding=floor in `replay`, `analyse` "
            'and `worlds`; or with protocol(NAME, rounding="floor") in Python. '
            "`coevolve protocols NAME` explains the settings."
        )
    else:
        _print_settings(known[0])


def _to_json(one: SearchProtocol) -> dict[str, Any]:
    values = {key: found.value for key, found in settings_of(one).items()}
    return one.to_json() | {"summary": one.summary, "settings": values}


def _parts(one: SearchProtocol) -> str:
    """The parts of a protocol by name, with their settings in brackets."""
    found = settings_of(one)
    texts = []
    for part in PARTS:
        own = [
            f"{key} {_shown(setting.value)}"
            for key, setting in found.items()
            if setting.part == part and key != part
        ]
        more = f" ({', '.join(own)})" if own else ""
        texts.append(f"{part} {found[part].value}{more}")
    return "; ".join(texts)


def _print_settings(one: SearchProtocol) -> None:
    """Every setting of a protocol with its value, what it may be, and what it means."""
    console = Screen()
    console.print(Text.assemble((one.name, "bold"), f": {one.summary}"))
    made = table("setting", "value", "meaning", wrap=("meaning",))
    for key, found in settings_of(one).items():
        is_part = key in PARTS
        if is_part:
            made.add_section()
        names = get_args(found.type) if get_origin(found.type) is Literal else ()
        choices = f" One of {', '.join(map(str, names))}." if names else ""
        made.add_row(
            Text(key, "bold" if is_part else ""),
            _shown(found.value),
            Text(f"{found.meaning}{choices}"),
        )
    console.print(made)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else f"{value}"
