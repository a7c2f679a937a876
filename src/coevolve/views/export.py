"""A run as a file of another format: CSV, Parquet, an outcome matrix, or selector events."""

import csv
from collections.abc import Iterable
from dataclasses import asdict, fields
from itertools import batched
from pathlib import Path
from typing import Any

import numpy as np

from coevolve.core.events import Event, Line, sealed
from coevolve.core.outcomes import USAGE
from coevolve.core.pool import Pool
from coevolve.core.selector import Selector
from coevolve.errors import InputError, StateError
from coevolve.formatting import csv_cell
from coevolve.search.effects import apply
from coevolve.search.journal import Journal
from coevolve.search.run_state import EVALUATION, RunState
from coevolve.views.outcome_rows import OutcomeRow, outcome_rows

COLUMNS = tuple(field.name for field in fields(OutcomeRow))
_BATCH = 50_000


def write_csv(journal: Journal, path: Path) -> int:
    """Write one row per outcome; a missing score is an empty cell. Returns the number of rows.

    Texts are escaped: a spreadsheet must not take one for a formula.
    """
    written = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for row in outcome_rows(journal.events()):
            cells = (getattr(row, name) for name in COLUMNS)
            rows.writerow(csv_cell(cell) if isinstance(cell, str) else cell for cell in cells)
            written += 1
    return written


def write_parquet(journal: Journal, path: Path) -> int:
    """Write one row per outcome, in columns. Returns the number of rows."""
    try:
        import pyarrow  # type: ignore[import-untyped]
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            "Parquet needs pyarrow: pip install 'task-coevolve[parquet]', or export .csv."
        ) from None
    types: dict[Any, Any] = {int: pyarrow.int64(), str: pyarrow.string()}
    schema = pyarrow.schema(
        [(field.name, types.get(field.type, pyarrow.float64())) for field in fields(OutcomeRow)]
    )
    written = 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as file:
        for some in batched(outcome_rows(journal.events()), _BATCH, strict=False):
            file.write_table(pyarrow.Table.from_pylist([asdict(row) for row in some], schema))
            written += len(some)
    return written


def write_matrix(journal: Journal, path: Path) -> int:
    """Write the matrix that `coevolve replay` reads. Returns the number of candidates.

    A cell is the mean of its trials, NaN where there is none. Trials of an evaluation count, those
    of a run that are not part of its search do not.
    """
    opened = next(journal.events(until=1))
    pool = Pool.from_json(opened["selector"]["pool"])
    starts = {start["name"] for start in opened["starts"]}
    split = "rescore" if EVALUATION in opened["config"] else "validation"
    rows = (row for row in outcome_rows(journal.events()) if row.split == split)
    arrays = matrix_arrays(pool, ((r.candidate, r.task, r.score, r.dollars) for r in rows))
    if not len(arrays["candidates"]):
        raise StateError("the run has no outcomes yet.")
    evaluated = sum(name in starts for name in arrays["candidates"].tolist())
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays, starts=np.array(max(1, evaluated)))
    return len(arrays["candidates"])


def matrix_arrays(
    pool: Pool, outcomes: Iterable[tuple[str, str, float | None, float]]
) -> dict[str, Any]:
    """Trials as the arrays of an outcome matrix: means over the trials of a cell with a score.

    Args:
        pool: The tasks.
        outcomes: Candidate, task, score and dollars of each trial, in the order of proposal.
    """
    sums: dict[str, np.ndarray[Any, np.dtype[np.float64]]] = {}
    for candidate, task, score, cost in outcomes:
        cells = sums.setdefault(candidate, np.zeros((3, len(pool))))
        if score is not None:
            cells[:, pool.position(task)] += (1, score, cost)
    stacked = np.array(list(sums.values())).reshape(len(sums), 3, len(pool))
    trials, scores, dollars = stacked[:, 0], stacked[:, 1], stacked[:, 2]
    with np.errstate(invalid="ignore"):
        arrays = {"outcomes": scores / trials, "trials": trials.astype(np.int64)}
        if (dollars > 0).any():
            arrays["cost"] = dollars / trials
    labels = np.empty(len(pool), dtype=object)
    for name in pool.names:
        labels[pool.members(name)] = name
    return arrays | {
        "tasks": np.array(pool.tasks),
        "candidates": np.array(list(sums), dtype=str),
        "pools": labels.astype(str),
    }


def write_events(journal: Journal, path: Path) -> int:
    """Write the selector's events, one per line (`docs/events.md`). Returns their number."""
    lines = selector_lines(journal)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line.text}\n" for line in lines)
    return len(lines)


def selector_lines(journal: Journal) -> list[Line]:
    """The selector's events, with what each trial consumed."""
    rows = [o for o in outcome_rows(journal.events()) if o.split == "validation"]
    spent = {(o.candidate, o.task, o.trial): o for o in rows}
    lines: list[Line] = []
    for event in _selector_of(journal).events:
        before = lines[-1].event["seal"] if lines else ""
        lines.append(sealed(event["seq"], event["type"], _with_usage(event, spent), before))
    return lines


def _with_usage(event: Event, spent: dict[tuple[str, str, int], OutcomeRow]) -> dict[str, Any]:
    """The body of an event, with what its trials consumed, which a run records elsewhere."""
    body = {key: value for key, value in event.items() if key not in ("seq", "type", "seal")}
    if event["type"] not in ("told", "told_full"):
        return body
    keys = zip(event["tasks"], event["trials"], strict=True)
    rows = [spent.get((event["candidate"], task, trial)) for task, trial in keys]
    found = {str(at): row for at, row in enumerate(rows) if row is not None}
    usage = {at: {name: getattr(row, name) for name in USAGE} for at, row in found.items()}
    traces = {at: row.trace for at, row in found.items() if row.trace}
    return body | {"usage": usage, "traces": traces}


class _KeepingSelector(Selector):
    """A selector that keeps its events."""

    def forget_events(self) -> None:
        """Forget nothing."""


def _selector_of(journal: Journal) -> Selector:
    """The selector of a run, with all its events."""
    events = journal.events()
    first = next(events)
    state = RunState.opened(first)
    state.selector = _KeepingSelector.from_events([first["selector"]])
    for event in events:
        apply(state, event)
    return state.selector
