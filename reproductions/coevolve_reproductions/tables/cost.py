"""The table cost: the cost of the search phase, compared with full search."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from coevolve.analysis.matrix import Series
from coevolve.analysis.replay import Report
from coevolve.core.arrays import Floats
from coevolve.core.events import Event
from coevolve.views.spend_parts import FAILED, PREPARATION, PROPOSING, SpendParts
from coevolve_reproductions.tables.analysis_source import Settings, about, replayed
from coevolve_reproductions.tables.finished_search import Search
from coevolve_reproductions.tables.table import (
    BLUE,
    INK,
    PALE,
    Column,
    Row,
    Table,
    height,
    mean_and_sd,
)

MEASURES = ("tokens_in", "tokens_out", "dollars", "hours")
_WORDS = {"tokens_in": "input tokens", "tokens_out": "output tokens"}
SECONDS = 3600.0

_VS_FULL = Column(name="reduction", heading="vs. full", kind="score", digits=0)


class Trials(NamedTuple):
    """The tasks of some trials, and the usage of each (NaN where it is unknown)."""

    tasks: list[int]
    used: dict[str, Floats]


def of_run(search: Search, settings: Settings, report: Report) -> Table:
    """The cost of a run's search phase; full search is projected from the same trials."""
    phase = trials_used(search, ("told",))
    every = trials_used(search, ("told", "told_full"))
    state = search.state
    asked = len(state.candidates) * len(state.pool) * state.trials
    spent: dict[str, Any] = {"search": state.protocol.name, "trials": len(phase.tasks)}
    full: dict[str, Any] = {"search": "full, projected", "trials": asked}
    for measure in MEASURES:
        spent[measure] = _total(phase.used[measure])
        each = projected(every.tasks, every.used[measure], len(state.pool))
        full[measure] = None if each is None else each * len(state.candidates) * state.trials
    parts = [] if search.spent is None else _parts(search.spent, spent, full)
    by = next((m for m in MEASURES if spent[m] and full[m]), "trials")
    spent["reduction"] = reduction(spent[by], full[by])
    known = int((~np.isnan(phase.used["tokens_in"])).sum())
    note = (
        f"Search phase only: the starting harnesses and later scoring are not counted. vs. full "
        f"compares {_WORDS.get(by, by)}. Full search runs every candidate on every task; it is "
        "projected from the mean usage per trial of each task, and of all tasks where one was "
        "never run. In and out are tokens; hours are the sum over trials."
    )
    if parts:
        note += (
            f" The row {state.protocol.name} includes failed attempts and preparation; proposing "
            "is apart. `coevolve table cost` also has the other parts of the run."
        )
    if known < len(phase.tasks):
        note += f" Usage is known for {known} of {len(phase.tasks)} trials."
    columns = (
        Column(name="search", heading="search"),
        Column(name="trials", heading="trials", kind="count"),
        Column(name="tokens_in", heading="in (M)", kind="number", unit=1e6),
        Column(name="tokens_out", heading="out (M)", kind="number", unit=1e6),
        Column(name="dollars", heading="US$", kind="number"),
        Column(name="hours", heading="hours", kind="number"),
        _VS_FULL,
    )
    bars = {
        _WORDS.get(m, m): 100 * spent[m] / full[m]
        for m in ("trials", *MEASURES)
        if spent[m] is not None and full[m]
    }
    return _table(columns, [full, spent, *parts], note, bars)


def _parts(run: SpendParts, spent: dict[str, Any], full: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows for what a search has spent beside its trials, which is added to the search itself.

    A full search prepares the same candidates.
    """
    rows = []
    for part in (FAILED, PREPARATION, PROPOSING):
        row: dict[str, Any] = {
            "search": part if part == PROPOSING else f"of it {part}",
            **used_by(run, part),
        }
        if all(row[measure] is None for measure in MEASURES):
            continue
        rows.append(row)
        for total in (spent,) if part == FAILED else (spent, full) if part == PREPARATION else ():
            for measure in MEASURES:
                if row[measure] is not None:
                    total[measure] = (total[measure] or 0.0) + row[measure]
    return rows


def used_by(run: SpendParts, *parts: str) -> dict[str, float | None]:
    """What some parts of a run have used; a measure that is 0 was not measured."""
    total = run.total(*parts)
    found = {"hours": total.seconds / SECONDS} | {
        name: float(getattr(total, name)) for name in ("tokens_in", "tokens_out", "dollars")
    }
    return {measure: found[measure] or None for measure in MEASURES}


def of_series(series: Series, settings: Settings, report: Report) -> Table:
    """The cost of replays, by the costs of the matrix."""
    groups = replayed(series, settings, ["naive", "random-resample", "task-coevolve"], report)
    cells = series.spent()
    starts = len(series.starts)
    full: dict[str, Any] = {
        "search": "full",
        "trials": len(series.generated) * len(series.pool),
        "cost": None if cells is None else float(cells[starts:].sum()),
    }
    rows, bars = [full], {}
    for group in groups:
        costs = [
            None if cells is None else _cost(search, series, cells) for search in group.searches
        ]
        row: dict[str, Any] = {
            "search": group.label,
            **mean_and_sd("trials", [search.state.evaluations for search in group.searches]),
            **mean_and_sd("cost", costs),
        }
        by = "cost" if full["cost"] else "trials"
        row["reduction"] = reduction(row[by], full[by])
        bars[group.label] = 100 * row[by] / full[by]
        rows.append(row)
    unit = "the matrix's cost" if full["cost"] else "trials: the matrix has no costs"
    note = (
        f"Search phase only: the starting harnesses are not counted. Means ± SD over "
        f"{about(series, groups)} vs. full compares {unit}."
    )
    columns = (
        Column(name="search", heading="search"),
        Column(name="trials", heading="trials", kind="count"),
        Column(name="cost", heading="cost", kind="number", spread="cost_sd"),
        _VS_FULL,
    )
    return _table(columns, rows, note, bars, {"cost"} if cells is None else set())


def trials_used(search: Search, kinds: Sequence[str]) -> Trials:
    """The trials that events of these kinds record."""
    tasks: list[int] = []
    used: dict[str, list[float]] = {measure: [] for measure in MEASURES}
    for event in search.events:
        if event["type"] in kinds:
            tasks += search.state.pool.positions(event["tasks"]).tolist()
            for usage in _usages(event):
                for measure in MEASURES:
                    used[measure].append(usage.get(measure, np.nan))
    # A measure that is 0 in every trial was not measured.
    arrays = {m: np.array(v) for m, v in used.items()}
    return Trials(
        tasks, {m: v if (v > 0).any() else np.full(len(v), np.nan) for m, v in arrays.items()}
    )


def _usages(event: Event) -> Iterator[Mapping[str, float]]:
    for at in range(len(event["tasks"])):
        usage = event["usage"].get(str(at), {})
        yield usage | ({"hours": usage["seconds"] / SECONDS} if usage else {})


def _total(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.sum()) if len(known) else None


def projected(tasks: Sequence[int], values: Floats, size: int) -> float | None:
    """The usage of one trial of every task, by the mean of each task's trials."""
    known = ~np.isnan(values)
    if not known.any():
        return None
    at = np.array(tasks)[known]
    count = np.bincount(at, minlength=size)
    sums = np.bincount(at, weights=values[known], minlength=size)
    mean = np.divide(sums, count, out=np.zeros(size), where=count > 0)
    return float(np.where(count > 0, mean, mean[count > 0].mean()).sum())


def reduction(spent: float | None, full: float | None) -> float | None:
    """The change from full search as a share; -0.8 is a fifth of the cost.

    >>> reduction(20, 100)
    -0.8
    """
    return None if spent is None or not full else spent / full - 1


def _cost(search: Search, series: Series, cells: Floats) -> float:
    row = {name: at for at, name in enumerate(series.candidates)}
    asked = (progress.assignment for each in search.state.batches.values() for progress in each)
    parts = (cells[row[a.candidate], series.pool.positions(a.tasks)].sum() for a in asked)
    return float(sum(parts))


def _table(
    columns: Sequence[Column],
    rows: Sequence[Row],
    note: str,
    bars: Mapping[str, float],
    hidden: set[str] | None = None,
) -> Table:
    def draw(figure: Any) -> None:
        figure.set_size_inches(6.0, height(len(bars)))
        axes = figure.subplots()
        places, values = range(len(bars)), list(bars.values())
        axes.barh(places, [100] * len(bars), height=0.55, color=PALE, alpha=0.5)
        axes.barh(places, values, height=0.55, color=BLUE)
        for place, value in zip(places, values, strict=True):
            axes.text(value + 1.5, place, f"{value:.0f}%", va="center", color=INK)
        axes.set_yticks(places, list(bars))
        axes.set_ylim(len(bars) - 0.4, -0.6)
        axes.set_xlim(0, max(104.0, *(v + 10 for v in values)))
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("share of full search (%)")

    return Table(
        name="cost",
        title="Cost of the search phase",
        columns=tuple(columns),
        rows=tuple(rows),
        note=note,
        hidden=frozenset(hidden or ()),
        draw=draw if bars else None,
    )
