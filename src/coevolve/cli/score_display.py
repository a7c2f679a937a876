"""Tables of scores: harnesses side by side, their costs, and what went wrong."""

from collections.abc import Callable, Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from coevolve.cli.console_output import Screen, fitted, narrowed, table
from coevolve.core.population import LIKE_THESE
from coevolve.formatting import (
    UNIT,
    count,
    difference,
    dollars,
    duration,
    estimate,
    interval,
    plural,
    score,
    short,
    tasks_seen,
)
from coevolve.views.score_table import ScoreRow, ScoreTable

_LONGEST_FAULT = 200
_SHOWN_FAULTS = 3


def print_scores(console: Screen, found: ScoreTable) -> None:
    """Print a table of scores, and below it what its reader should know."""
    for part in _parts(found, console.width):
        console.print(part)


def _parts(found: ScoreTable, width: int) -> Iterator[RenderableType]:
    where = "sealed test" if found.split == "test" else "validation"
    trials = "" if found.trials == 1 else f", {plural(found.trials, 'trial')} each"
    yield Text(f"{plural(found.tasks, 'task')} ({where}){trials}", "bold")
    several = len(found.models) > 1
    if several:
        yield _matrix(found, width)
    for model in found.models:
        rows = [row for row in found.rows if row.model == model]
        if model:
            yield Text.assemble(("model  ", "bright_black"), (model, "bold cyan"))
        yield _scores(rows, width)
    yield _costs(found.rows, width, several=several)
    yield from _notes(found)


def _matrix(found: ScoreTable, width: int) -> Table:
    """Harnesses by models."""
    made = table("harness", *found.models, wrap=("harness", *found.models))
    for harness in found.harnesses:
        cells = [_score(found.row(harness, model)) for model in found.models]
        made.add_row(harness, *cells)
    return narrowed(made, width)


def _scores(rows: list[ScoreRow], width: int) -> Table:
    first = rows[0].harness
    searched = any(row.search is not None for row in rows)
    compared = any(row.difference is not None for row in rows)
    partial = any(row.score is None or row.score.tasks < row.score.pool_size for row in rows)
    columns: dict[str, Callable[[ScoreRow], str]] = {
        "harness": lambda row: row.harness,
        "score": lambda row: _score(row, se=not compared),
        "interval": _interval,
    }
    if partial:
        columns["tasks"] = _tasks
    if searched:
        columns["estimate"] = _estimate
    if compared:
        columns["minus the first"] = lambda row: "" if row.harness == first else _difference(row)
    return fitted(
        width,
        tuple(columns),
        [[text(row) for text in columns.values()] for row in rows],
        right=("tasks",),
        wrap=("harness", "minus the first"),
        drop=("estimate", "tasks", "interval"),
    )


def _score(row: ScoreRow, *, se: bool = True) -> str:
    if row.score is None:
        return "-"
    found = row.score.to_json()
    return estimate(found) if se else score(found["value"], found.get("scale", UNIT))


def _interval(row: ScoreRow) -> str:
    return "" if row.score is None else interval(row.score.to_json())


def _estimate(row: ScoreRow) -> str:
    return "-" if row.search is None else estimate(row.search.to_json())


def _tasks(row: ScoreRow) -> str:
    return "0" if row.score is None else tasks_seen(row.score.to_json())


def _difference(row: ScoreRow) -> str:
    found = row.difference
    if found is None:
        return "-"
    ends = (found.low, found.high)
    if None in ends:
        return difference(found.value)
    return f"{difference(found.value)} ({difference(found.low)} to {difference(found.high)})"


def _costs(rows: tuple[ScoreRow, ...], width: int, *, several: bool) -> Table:
    """What the trials cost, including failed attempts; measures that nothing used are left out."""
    columns: dict[str, Callable[[ScoreRow], str]] = {"harness": lambda row: row.harness}
    if several:
        columns["model"] = lambda row: row.model
    columns["trials"] = lambda row: f"{row.cost.trials:,}"
    if any(row.cost.tokens for row in rows):
        columns["tokens in"] = lambda row: count(row.cost.tokens_in)
        columns["out"] = lambda row: count(row.cost.tokens_out)
        columns["cost"] = lambda row: dollars(row.cost.dollars) if row.priced else "unknown"
    columns["per trial"] = _time
    return fitted(
        width,
        tuple(columns),
        [[text(row) for text in columns.values()] for row in rows],
        right=tuple(columns)[1 + several :],
        wrap=("harness", "model"),
        drop=("out", "tokens in", "per trial"),
    )


def _time(row: ScoreRow) -> str:
    each = row.cost.seconds / max(1, row.cost.trials + row.cost.failed_attempts)
    return duration(each) if each >= 10 else f"{each:.2g}s"


def _notes(found: ScoreTable) -> Iterator[Text]:
    percent = f"{found.confidence:.0%}"
    like = f"Intervals ({percent}) are for other tasks like these"
    pairs = ", differences task by task" if len(found.harnesses) > 1 else ""
    searched = any(row.search is not None for row in found.rows)
    search = " The estimate is that of the search." if searched else ""
    yield Text(f"{like}{pairs}.{search}", "bright_black")
    for row in found.rows:
        name = row.harness if len(found.models) == 1 else f"{row.harness} with {row.model}"
        if row.score is not None and row.score.se is None:
            unknown = row.score.note.removesuffix(LIKE_THESE).rstrip("; ")
            yield Text(f"{name}: {unknown}.", "bright_black")
        elif row.difference is not None and row.difference.se is None:
            yield Text(f"{name}, minus the first: {row.difference.note}.", "bright_black")
        if row.reason:
            yield Text(f"{name}: {row.reason}.", "yellow")
        if row.missing:
            yield Text(f"{name}: {plural(row.missing, 'trial')} without a score", "yellow")
        for fault, number in list(row.faults.items())[:_SHOWN_FAULTS]:
            text = short(" ".join(fault.split()), _LONGEST_FAULT)
            yield Text(f"{name}: {number:,} × {text}", "yellow")
        if (more := len(row.faults) - _SHOWN_FAULTS) > 0:
            yield Text(f"{name}: and {plural(more, 'other fault')}", "yellow")
        for leak in row.leaks[:1]:
            yield Text(f"{name} may know answers: {leak}", "yellow")
    for warning in found.warnings:
        yield Text(f"warning: {warning}", "bold yellow")
