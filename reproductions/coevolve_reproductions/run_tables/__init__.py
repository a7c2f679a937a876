"""The tables of the paper from run folders: seeds are averaged, and what is missing is named."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coevolve.errors import InputError, nearest
from coevolve.views.score_table import Split
from coevolve_reproductions.run_tables.component_tables import ablation, swap, ties
from coevolve_reproductions.run_tables.cost_table import cost
from coevolve_reproductions.run_tables.published import beside_paper
from coevolve_reproductions.run_tables.recorded_run import RecordedRun, read_runs
from coevolve_reproductions.run_tables.run_group import RunGroups
from coevolve_reproductions.run_tables.score_tables import stronger, tb, tc
from coevolve_reproductions.run_tables.task_tables import accuracy, difficulty, phase0
from coevolve_reproductions.tables.table import Table

__all__ = ["TABLES", "RecordedRun", "RunTable", "checked_name", "read_runs", "run_table"]

TABLES: Mapping[str, Callable[[RunGroups], Table]] = {
    "tc": tc,
    "tb": tb,
    "cost": cost,
    "difficulty": difficulty,
    "accuracy": accuracy,
    "ablation": ablation,
    "swap": swap,
    "ties": ties,
    "stronger": stronger,
    "phase0": phase0,
}
"""The tables by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTable:
    """A table, the commands that complete it, and the candidates that they score."""

    table: Table
    commands: tuple[str, ...]
    payable: Mapping[tuple[Path, Split], Sequence[str]]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; `missing` lists the commands."""
        return self.table.to_json() | {"missing": list(self.commands)}


def checked_name(name: str) -> str:
    """The name of a table, if there is one."""
    if name not in TABLES:
        raise InputError(
            f"there is no table {name!r}; use one of {', '.join(TABLES)}.{nearest(name, TABLES)}"
        )
    return name


def run_table(
    name: str,
    runs: Sequence[RecordedRun],
    *,
    rounds: Sequence[int] | None = None,
    paper: bool = False,
) -> RunTable:
    """A table of some runs.

    Args:
        name: A name in `TABLES`.
        runs: What `read_runs` read.
        rounds: The rounds that the table difficulty shows.
        paper: Whether to show what the paper has published beside it.
    """
    made, groups = TABLES[checked_name(name)], RunGroups.of(runs)
    if rounds is not None and name != "difficulty":
        raise InputError(f"--rounds has no effect on the table {name}; leave it out.")
    table = difficulty(groups, rounds) if rounds is not None else made(groups)
    table = replace(table, steps=groups.steps())
    if paper:
        table = beside_paper(table, groups)
    return RunTable(table=table, commands=tuple(groups.commands()), payable=groups.payable())
