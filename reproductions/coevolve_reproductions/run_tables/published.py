"""The figures that the paper has published, beside those of runs."""

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from coevolve_reproductions.tables.table import Cell, Column, Row, Table

_PERCENT = ("score", "difference")


def beside_paper(table: Table) -> Table:
    """The table with a column of the paper's figures after each column that has some.

    Models match by their names, without the service before them. Tasks, rounds and candidates are
    not compared, so the figures compare only in the paper's setting.
    """
    rows: list[dict[str, Cell]] = []
    used: set[str] = set()
    for row in table.rows:
        found = _published(table.name, row)
        mine = dict(row)
        for column in table.columns:
            for name in filter(None, (column.name, column.spread)):
                value = _value(found, name)
                if value is not None:
                    mine[_theirs(name)] = _in_units(column, value)
                    used.add(column.name)
        rows.append(mine)
    note = (
        "paper: the published figures for the row. They compare only if tasks, "
        "model, rounds and candidates are those of the paper."
        if used
        else "The paper has no figures for these rows."
    )
    hidden = table.hidden | {_theirs(name) for name in table.hidden}
    return replace(
        table,
        columns=tuple(_with_paper(table, used)),
        rows=tuple(rows),
        hidden=hidden,
        note=f"{note} {table.note}",
    )


@cache
def published() -> Mapping[str, list[dict[str, Any]]]:
    """The rows of each table: which row it is, and the paper's columns."""
    text = Path(__file__).with_name("published.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _published(table: str, row: Row) -> dict[str, Any]:
    """What the paper has for a row: the entry that says most about it."""
    fits = [
        entry
        for entry in published().get(table, ())
        if all(_same(name, row.get(name), value) for name, value in entry["row"].items())
    ]
    best = max(fits, key=lambda entry: len(entry["row"]), default=None)
    found: dict[str, Any] = {} if best is None else best["paper"]
    return found


def _same(name: str, mine: Cell, theirs: Any) -> bool:
    if isinstance(theirs, float):
        return isinstance(mine, float | int) and math.isclose(mine, theirs, abs_tol=1e-9)
    if name == "model":
        return _model(str(mine or "")) == _model(theirs)
    return bool(mine == theirs)


def _model(name: str) -> str:
    return name.rpartition("/")[2].lower()


def _value(found: Mapping[str, Any], name: str) -> Any:
    """The value of a column, whose name may end with that of a model."""
    kind, colon, rest = name.partition(":")
    if not colon or kind != "model":
        return found.get(name)
    spread = "_sd" if rest.endswith("_sd") else ""
    return found.get(f"model:{_model(rest.removesuffix('_sd'))}{spread}")


def _in_units(column: Column, value: Any) -> Cell:
    if isinstance(value, str):
        return value
    in_millions = column.name.startswith("tokens_")
    return float(value / 100 if column.kind in _PERCENT else value * (1e6 if in_millions else 1))


def _with_paper(table: Table, used: set[str]) -> Iterator[Column]:
    for column in table.columns:
        yield column
        if column.name in used:
            spread = _theirs(column.spread) if column.spread else ""
            heading = f"{column.heading}, paper"
            yield replace(column, name=_theirs(column.name), heading=heading, spread=spread)


def _theirs(name: str) -> str:
    return f"{name}_paper"
