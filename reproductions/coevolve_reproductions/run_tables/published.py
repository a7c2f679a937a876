"""The figures that the paper has published, beside those of runs."""

import math
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from coevolve.formatting import plural
from coevolve_reproductions.run_tables.recorded_run import RecordedRun
from coevolve_reproductions.run_tables.run_group import RunGroups
from coevolve_reproductions.tables.table import Cell, Column, Row, Table

_PERCENT = ("score", "difference")
_MINOR = ("per_round", "evaluations", "ties", "trials", "tokens_out")
"""Columns whose published values a narrow terminal leaves out first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperSetting:
    """One of the two settings of the paper's experiments.

    Args:
        name: The name of the benchmark.
        pools: Its validation tasks by pool; None if the pool may have any name.
        tasks: The number of its validation tasks.
        rounds: Rounds of a search.
        candidates: Candidates of a round.
        models: The models, without the service before their names.
    """

    name: str
    pools: Mapping[str, int] | None
    tasks: int
    rounds: int
    candidates: int
    models: tuple[str, ...]

    def has_tasks_of(self, run: RecordedRun) -> bool:
        """Whether a run has the paper's validation tasks, by their numbers."""
        pool = run.pool
        sizes = {name: len(pool.members(name)) for name in pool.names}
        if self.pools is None:
            return list(sizes.values()) == [self.tasks]
        return sizes == self.pools

    def __str__(self) -> str:
        """The setting and its tasks."""
        if self.pools is None:
            return f"{self.name} with {self.tasks} tasks"
        return f"{self.name} with {' + '.join(f'{n} {pool}' for pool, n in self.pools.items())}"


SETTINGS: Mapping[str, PaperSetting] = {
    "text-classification": PaperSetting(
        name="text classification",
        pools={"uspto": 30, "s2d": 50, "law": 50},
        tasks=130,
        rounds=20,
        candidates=3,
        models=("gpt-oss-120b",),
    ),
    "terminal-bench": PaperSetting(
        name="Terminal-Bench",
        pools=None,
        tasks=89,
        rounds=10,
        candidates=1,
        models=("gpt-5.6-luna", "qwen3.6-35b-a3b", "deepseek-v4-flash"),
    ),
}
"""The settings by the key that entries of `published.toml` name."""


def beside_paper(table: Table, groups: RunGroups) -> Table:
    """The table with a column of the paper's figures after each column that has some.

    A row has figures only if its runs have the paper's tasks, and its protocol, estimator and ρ
    are those of a row of the paper; on Terminal-Bench, its model as well.
    """
    models = {_model(one.name.partition(":")[2]) for one in table.columns if _of_model(one.name)}
    firsts = {group.benchmark: group.first for group in groups.groups}
    rows: list[dict[str, Cell]] = []
    used: set[str] = set()
    settings: set[str] = set()
    for row in table.rows:
        first = firsts.get(str(row.get("benchmark")), groups.groups[0].first)
        found = _published(table.name, row, first)
        mine = dict(row)
        for column in table.columns:
            for name in filter(None, (column.name, column.spread)):
                value = _value(found.get("paper", {}), name, models)
                if value is not None:
                    mine[_theirs(name)] = _in_units(column, value)
                    used.add(column.name)
                    settings.add(found["setting"])
        rows.append(mine)
    note = " ".join(_differences(settings, groups)) if used else _none(table.name, groups)
    hidden = table.hidden | {_theirs(name) for name in table.hidden}
    minor = (name for one in table.minor for name in (_theirs(one), one))
    return replace(
        table,
        columns=tuple(_with_paper(table, used)),
        rows=tuple(rows),
        hidden=hidden,
        minor=(*map(_theirs, _MINOR), *minor),
        note=f"{note} {table.note}",
    )


def _differences(settings: Collection[str], groups: RunGroups) -> Iterator[str]:
    """What the columns are, and how runs with figures differ from the paper's."""
    yield "paper: what the paper has published for the row."
    for key in sorted(settings):
        setting = SETTINGS[key]
        runs = [run for run in groups.runs if setting.has_tasks_of(run)]
        sizes = {(run.state.settings.rounds, run.state.settings.candidates) for run in runs}
        if other := sorted(sizes - {(setting.rounds, setting.candidates)}):
            yield (
                f"Its searches on {setting.name} have {_size(setting.rounds, setting.candidates)};"
                f" some of these runs have {' or '.join(_size(*one) for one in other)}."
            )
        models = {run.model for run in runs if _model(run.model) not in setting.models}
        if models:
            yield (
                f"Its model{'s are' if len(setting.models) > 1 else ' is'} "
                f"{', '.join(setting.models)}; some of these runs have "
                f"{', '.join(sorted(name or 'no model' for name in models))}."
            )


def _size(rounds: int, candidates: int) -> str:
    return f"{plural(rounds, 'round')} of {plural(candidates, 'candidate')}"


def _none(table: str, groups: RunGroups) -> str:
    """Why a table has no figures of the paper."""
    keys = dict.fromkeys(entry["setting"] for entry in published()[table])
    settings = [SETTINGS[key] for key in keys]
    fitting = [one for one in settings if any(map(one.has_tasks_of, groups.runs))]
    if not fitting:
        shown = " and ".join(map(str, settings))
        pools = dict.fromkeys(_tasks(run) for run in groups.runs)
        return (
            f"There are no figures of the paper: its table is on {shown}, and these runs have "
            f"{'; '.join(pools)}."
        )
    models = {_model(run.model) for run in groups.runs}
    named = {name for one in fitting for name in one.models}
    if not models & named and all(one.pools is None for one in fitting):
        return (
            f"There are no figures of the paper: its models are {', '.join(sorted(named))}, and "
            f"these runs have {', '.join(sorted(name or 'no model' for name in models))}."
        )
    return "The paper has no figures for these rows."


def _tasks(run: RecordedRun) -> str:
    return " + ".join(f"{len(run.pool.members(name))} {name}" for name in run.pool.names)


@cache
def published() -> Mapping[str, list[dict[str, Any]]]:
    """The rows of each table: which row it is, and the paper's columns."""
    text = Path(__file__).with_name("published.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _published(table: str, row: Row, run: RecordedRun) -> dict[str, Any]:
    """What the paper has for a row of a run: the entry that says most about it."""
    fits = [
        entry
        for entry in published().get(table, ())
        if SETTINGS[entry["setting"]].has_tasks_of(run)
        and all(_same(name, row.get(name), value) for name, value in entry["row"].items())
    ]
    return max(fits, key=lambda entry: len(entry["row"]), default={})


def _same(name: str, mine: Cell, theirs: Any) -> bool:
    if isinstance(theirs, float):
        return isinstance(mine, float | int) and math.isclose(mine, theirs, abs_tol=1e-9)
    if name == "model":
        return _model(str(mine or "")) == _model(theirs)
    return bool(mine == theirs)


def _model(name: str) -> str:
    return name.rpartition("/")[2].lower()


def _of_model(column: str) -> bool:
    return column.startswith("model:")


def _value(paper: Mapping[str, Any], name: str, models: Collection[str]) -> Any:
    """The value of a column, whose name may end with that of a model.

    An average is that of the paper only over the models of the paper.
    """
    if name == "average" and {f"model:{model}" for model in models} != paper.keys() - {name}:
        return None
    if not _of_model(name):
        return paper.get(name)
    spread = "_sd" if name.endswith("_sd") else ""
    model = _model(name.removeprefix("model:").removesuffix("_sd"))
    return paper.get(f"model:{model}{spread}")


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
