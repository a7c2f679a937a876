"""Outcome matrices from `.npz` files, tables, event files and finished runs."""

import io
import json
import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from coevolve.analysis.matrix import STARTS, Matrix, Series
from coevolve.core.events import SCHEMA, Line, fitting, verified
from coevolve.core.identifiers import text_of
from coevolve.core.pool import UNIT_SCALE, Pool
from coevolve.errors import CoevolveError, EventError, HistoryError, MatrixError
from coevolve.past_results import read_past
from coevolve.views.export import matrix_arrays

OPTIONAL = ("run", "trials", "tasks", "candidates", "pools", "starts")


def read_matrix(path: str | Path) -> Matrix:
    """The matrix in a file, named after it.

    Args:
        path: An `.npz` file with the arrays of `Matrix.from_arrays` (`cost` may also be named
            `cost_usd`; other arrays are ignored), a `.csv` or `.parquet` table with a row per
            outcome, as `coevolve export` writes it, or a `.jsonl` file with an event of a selector
            per line.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "tiny.npz"
    >>> np.savez(path, outcomes=np.array([[0, 1], [1, 0], [1, 1]]), tasks=["a", "b"])
    >>> read_matrix(path)
    Matrix(tiny: 1 series of 3 to 3 candidates, 2 tasks)
    """
    path = Path(path)
    if not path.is_file():
        raise MatrixError(f"there is no file {path}.")
    readers = {
        ".npz": _from_npz,
        ".jsonl": _from_events,
        ".csv": _from_table,
        ".parquet": _from_table,
    }
    if path.suffix not in readers:
        raise MatrixError(f"{path} is not an .npz, .csv, .parquet or .jsonl file.")
    try:
        return readers[path.suffix](path)
    except HistoryError:
        raise  # it names the file
    except (CoevolveError, OSError, UnicodeError) as error:
        raise MatrixError(f"{path}: {error}") from error


def read_matrices(paths: Iterable[str | Path]) -> list[Matrix]:
    """The matrices in files and folders; of a folder every `.npz` file, in order of name."""
    files: dict[Path, None] = {}
    for path in map(Path, paths):
        found = sorted(path.glob("*.npz")) if path.is_dir() else [path]
        if not found:
            raise MatrixError(f"the folder {path} has no .npz file.")
        files |= dict.fromkeys(file.resolve() for file in found)
    named: dict[str, Path] = {}
    for file in files:
        if file.stem in named:
            raise MatrixError(
                f"two matrices are named {file.stem!r}: {named[file.stem]} and {file}; rename one."
            )
        named[file.stem] = file
    return [read_matrix(file) for file in named.values()]


def _from_npz(path: Path) -> Matrix:
    try:
        with path.open("rb") as file:
            loaded = np.load(io.BytesIO(file.read()), allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise MatrixError("this is not an .npz file.") from error
    if not isinstance(loaded, np.lib.npyio.NpzFile):
        raise MatrixError("this holds one array, not the named arrays of an .npz file.")
    with loaded:
        if "outcomes" not in loaded:
            held = ", ".join(loaded.files) or "none"
            raise MatrixError(f"there is no array 'outcomes'; the arrays are: {held}.")
        cost = next((name for name in ("cost", "cost_usd") if name in loaded), None)
        return Matrix.from_arrays(
            path.stem,
            _array(loaded, "outcomes"),
            cost=None if cost is None else _array(loaded, cost),
            **{name: _array(loaded, name) for name in OPTIONAL if name in loaded},
        )


def _array(loaded: Mapping[str, Any], name: str) -> Any:
    try:
        return loaded[name]
    except (ValueError, zipfile.BadZipFile) as error:
        raise MatrixError(
            f"array {name!r} cannot be read ({error}); save text as text, not as objects."
        ) from error


def _from_table(path: Path) -> Matrix:
    """A series with the candidates by round, then in the order of the rows."""
    past = read_past(path)
    order = list(range(len(past.candidates)))
    starts = None
    if past.rounds is not None:
        order.sort(key=past.rounds.__getitem__)
        starts = past.rounds.count(0) or None
    shape = len(past.candidates), len(past.tasks)
    scored = ~np.isnan(past.score)
    cells = past.candidate[scored], past.task[scored]
    trials, sums, costs, priced = (np.zeros(shape) for _ in range(4))
    np.add.at(trials, cells, 1)
    np.add.at(sums, cells, past.score[scored])
    np.add.at(costs, cells, np.nan_to_num(past.cost[scored]))
    np.add.at(priced, cells, ~np.isnan(past.cost[scored]))
    with np.errstate(invalid="ignore"):
        outcomes, cost = sums / trials, costs / np.where(priced, priced, np.nan)
    matrix = Matrix.from_arrays(
        path.stem,
        outcomes[order],
        trials=trials[order],
        cost=cost[order] if (costs > 0).any() else None,
        tasks=list(past.tasks),
        candidates=[past.candidates[at] for at in order],
        pools=past.pools,
        starts=starts,
    )
    return _noted(matrix)


def _from_events(path: Path) -> Matrix:
    return matrix_of_run(path.stem, read_events(path))


def matrix_of_run(name: str, events: Iterable[Mapping[str, Any]]) -> Matrix:
    """The outcomes of a run as one series: starting harnesses first, then by proposal.

    A cell is the mean of its trials, NaN where nothing was evaluated; its cost is the mean of the
    dollars that they report. The protocol does not matter, because the draws are not used.

    >>> from coevolve import Pool, Selector
    >>> selector = Selector(Pool(["a", "b"]), protocol="full")
    >>> for start in ("start-a", "start-b"):
    ...     selector.tell_full(start, {"a": 1, "b": 0})
    >>> (assignment,) = selector.ask(["new"])
    >>> selector.tell(assignment, {"a": 1, "b": 1})
    >>> matrix_of_run("mine", selector.events).series[0].outcomes.tolist()
    [[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]]
    """
    lines = iter(verified(events))
    opened = next(lines, None)
    if opened is None or opened.event["type"] != "opened":
        found = "no event" if opened is None else repr(opened.event["type"])
        raise EventError(f"the first event must be 'opened', got {found}.")
    with fitting(opened.event):
        if opened.event["schema"] != SCHEMA:
            found = opened.event["schema"]
            raise EventError(f"the events have schema {found!r}; this version reads {SCHEMA}.")
        pool = Pool.from_json(opened.event["pool"])
    rest = list(lines)
    for line in rest:
        if line.event["type"] == "grown":
            with fitting(line.event):
                new = {name: line.event[name] for name in ("pools", "weights", "costs")}
                pool = pool.grown(line.event["tasks"], **new)
    starts = {
        text_of(line.event["candidate"])
        for line in takewhile(lambda line: line.event["type"] != "drawn", rest)
        if line.event["type"] == "told_full"
    }
    arrays = matrix_arrays(_replayable(pool), _outcomes(rest, pool))
    series = Series(
        matrix=name,
        name="all",
        pool=_replayable(pool),
        candidates=tuple(arrays["candidates"].tolist()),
        outcomes=arrays["outcomes"],
        costs=arrays.get("cost"),
        started=len(starts) or STARTS,
    )
    return _noted(Matrix.from_series(name, [series]))


def read_events(path: Path) -> Iterator[Any]:
    """The events in a `.jsonl` file, one per line; blank lines are skipped."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    yield json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise EventError(f"line {number} is not JSON: {error}.") from error


def _noted(matrix: Matrix) -> Matrix:
    """The matrix with a note on cells without an outcome."""
    open_cells = float(np.isnan(matrix.series[0].outcomes).mean())
    if not open_cells:
        return matrix
    note = f"{open_cells:.0%} of the cells were never evaluated; true scores use the others"
    return replace(matrix, notes=(*matrix.notes, note))


def _replayable(pool: Pool) -> Pool:
    """The pool with text as ids and scores from 0 to 1."""
    return Pool.from_json(
        pool.to_json() | {"tasks": list(map(text_of, pool.tasks)), "scale": UNIT_SCALE}
    )


def _outcomes(lines: Iterable[Line], pool: Pool) -> Iterator[tuple[str, str, float | None, float]]:
    """Candidate, task, score and dollars of every trial; a drawn candidate begins without any."""
    for line in lines:
        found: list[tuple[str, str, float | None, float]] = []
        with fitting(event := line.event):
            if event["type"] == "drawn":
                found = [(text_of(name), "", None, 0.0) for name in event["candidates"]]
            elif event["type"] in ("told", "told_full"):
                pool.positions(event["tasks"])
                pairs = zip(event["tasks"], event["scores"], strict=True)
                for at, (task, score) in enumerate(pairs):
                    dollars = event["usage"].get(str(at), {}).get("dollars", math.nan)
                    value = None if score is None else float(pool.to_unit(np.array(score)))
                    found.append((text_of(event["candidate"]), text_of(task), value, dollars))
        yield from found
