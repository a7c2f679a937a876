"""The trials of a candidate on a task, with what their traces tell."""

import json
from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from coevolve.cli.details import outcome_json
from coevolve.cli.details_print import SPLITS, scored, time_of
from coevolve.cli.outcomes import outcome_rows
from coevolve.cli.words import count, dollars
from coevolve.errors import titled
from coevolve.store import RunStore


def trials_json(candidate: str, task: str, store: RunStore) -> list[dict[str, Any]]:
    """Every outcome of a candidate on a task, with the content of its trace."""
    return [
        outcome_json(row) | {"content": _content(row.trace, store)}
        for row in outcome_rows(store.events())
        if (row.candidate, row.task) == (candidate, task)
    ]


def print_trials(console: Console, trials: list[dict[str, Any]]) -> None:
    """Print trials one after another."""
    for number, row in enumerate(trials):
        if number:
            console.print()
        where = f"{row['candidate']} on {row['task']}"
        console.print(Text.assemble((where, "bold cyan"), f"{SPLITS[row['split']]}  {_head(row)}"))
        if row["fault"]:
            console.print(Text(titled(row["fault"], row["reason"]), "yellow"))
        if row["content"] is None:
            console.print("No trace.")
        else:
            console.print(rendered(_flat(row["content"])))


def rendered(value: Any) -> RenderableType:
    """JSON as people read it: names beside values, texts with their lines."""
    if isinstance(value, Mapping):
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bright_black", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, inner in value.items():
            if inner not in (None, [], {}):
                grid.add_row(Text(str(name)), rendered(inner))
        return grid
    if isinstance(value, list) and any(isinstance(inner, Mapping | list) for inner in value):
        return Group(*(rendered(inner) for inner in value))
    if isinstance(value, list):
        return Text(", ".join(map(_text, value)))
    return Text(_text(value))


def _head(row: Mapping[str, Any]) -> str:
    tokens = row["tokens_in"] + row["tokens_out"]
    parts = [f"score {scored(row)}", time_of(row["seconds"])]
    parts += [f"trial {row['trial']}"] if row["trial"] else []
    parts += [f"{count(tokens)} tokens"] if tokens else []
    parts += [dollars(row["dollars"])] if row["dollars"] else []
    return ", ".join(parts)


def _content(address: str, store: RunStore) -> Any:
    if not address:
        return None
    text = store.get(address).decode(errors="replace")
    try:
        return json.loads(text)
    except ValueError:
        return text


def _flat(content: Any) -> Any:
    """What the benchmark says beside what the harness printed."""
    if isinstance(content, Mapping) and isinstance(content.get("trace"), Mapping):
        return {**content["trace"], **{k: v for k, v in content.items() if k != "trace"}}
    return content


def _text(value: Any) -> str:
    return value if value and isinstance(value, str) else json.dumps(value, ensure_ascii=False)
