"""Tables of past results: CSV, JSONL and Parquet, a row per outcome."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from coevolve.errors import HistoryError, nearest
from coevolve.formatting import plain_cell
from coevolve.past_results.result_rows import Row, Rows

REQUIRED = ("candidate", "task", "score")
OPTIONAL = ("trial", "cost", "pool", "split", "round")
SAME = {"cost": "dollars"}
"""Another name of a column, as `coevolve export` writes it."""
_CHUNK = 65_536


def read_csv(path: Path, rows: Rows) -> bool:
    """Add the rows of a CSV file; whether they have trial numbers.

    The header is row 1. Texts that `coevolve export` has escaped are read as they were.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = enumerate(csv.reader(file, strict=True), start=1)
            _, header = next(lines, (1, []))
            _check_separator(header, rows)
            take = _columns(header, rows)
            width = len(header)
            for number, cells in lines:
                if len(cells) == width:
                    rows.add(number, take(cells))
                elif cells:
                    raise rows.wrong(
                        number, "", f"it has {len(cells)} cells, but the header has {width}."
                    )
    except csv.Error as error:
        raise rows.wrong(_csv_row(path), "", f"this is not CSV: {error}.") from None
    except UnicodeDecodeError:
        number, before = _undecodable(path)
        raise rows.wrong(number, _column_after(before, path), _NOT_UTF8) from None
    return "trial" in header


_NOT_UTF8 = "this is not UTF-8 text; save the file as UTF-8."


def _check_separator(header: Sequence[str], rows: Rows) -> None:
    """Refuse an empty file, and one whose cells are separated by something else than commas."""
    if not header:
        raise rows.wrong(
            0, "", f"the file is empty, or begins with an empty line; {_HEADER_NEEDED}."
        )
    other = next((mark for mark in ";\t|" if mark in header[0]), None)
    if len(header) == 1 and other is not None:
        raise rows.wrong(
            1, "", f"the cells are separated by {other!r}; save the file with commas between them."
        )


_HEADER_NEEDED = "its first line must name the columns candidate, task and score"


def _columns(header: Sequence[str], rows: Rows) -> Callable[[Sequence[str]], Row]:
    """How to take a row out of the cells of a line."""
    names = [name.strip() for name in header]
    if twice := next((name for name in names if name and names.count(name) > 1), None):
        raise rows.wrong(1, twice, "two columns have this name.")
    check_columns(names, rows, 1)
    places = [names.index(name) if name in names else None for name in Row._fields]
    for name, other in SAME.items():
        if name not in names and other in names:
            places[Row._fields.index(name)] = names.index(other)
    texts = {Row._fields.index(name) for name in ("candidate", "task", "pool")}

    def take(cells: Sequence[str]) -> Row:
        found = [None if at is None else cells[at] for at in places]
        for at in texts:
            if (text := found[at]) and text[0] == "'":
                found[at] = plain_cell(text)
        return Row._make(found)

    return take


def check_columns(names: Sequence[str], rows: Rows, number: int) -> None:
    """Refuse a table without a required column, or with a misspelt one."""
    known = (*REQUIRED, *OPTIONAL)
    others = [name for name in names if name not in known]
    shown = ", ".join(names[:20]) or "none"
    for name in (*REQUIRED, "trial"):
        if name in names:
            continue
        lower = [other.lower() for other in others]
        close = next((o for o in others if nearest(o.lower(), [name])), "") if lower else ""
        if name in REQUIRED:
            hint = f" Is it {close!r}? Rename it." if close else ""
            raise rows.wrong(
                number,
                name,
                f"there is no such column; candidate, task and score are needed, and the columns "
                f"are: {shown}.{hint}",
            )
        if close:
            raise rows.wrong(
                number, close, f"this column is unknown; rename it to {name!r}, or remove it."
            )


def _undecodable(path: Path) -> tuple[int, str]:
    """The number of the first line that is not UTF-8, and its text up to there."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return number, line[: error.start].decode()
    return 0, ""


def _column_after(text: str, path: Path) -> str:
    """The column of the cell in which a part of a line ends; empty in or above the header."""
    try:
        with path.open(encoding="utf-8-sig", newline="", errors="replace") as file:
            header = next(csv.reader(file), [])
        at = len(list(csv.reader(io.StringIO(f"{text}x", newline="")))[-1]) - 1
    except csv.Error:  # a cell that is too long
        return ""
    name = header[at] if at < len(header) else ""
    return name if name in (*REQUIRED, *OPTIONAL, *SAME.values()) else ""


def _csv_row(path: Path) -> int:
    """The number of the row that is not CSV."""
    number = 1
    with path.open(encoding="utf-8-sig", newline="", errors="replace") as file:
        try:
            for number, _ in enumerate(csv.reader(file, strict=True), start=2):  # noqa: B007
                pass
        except csv.Error:
            return number
    return 0


def read_jsonl(path: Path, rows: Rows) -> bool:
    """Add the rows of a JSONL file, an object per line; whether they have trial numbers."""
    numbered = False
    number = 0
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                found = _object(line, rows, number)
                if not numbered:
                    _check_keys(found, rows, number)
                    numbered = found.get("trial") is not None
                rows.add(number, _row(found, rows, number))
    except UnicodeDecodeError:
        raise rows.wrong(_undecodable(path)[0], "", _NOT_UTF8) from None
    return numbered


def _object(line: str, rows: Rows, number: int) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise rows.wrong(number, "", f"this is not JSON: {str(error)[:200]}.") from None
    if not isinstance(found, dict):
        raise rows.wrong(number, "", f"it must be a JSON object, got {found!r:.80}.")
    return found


def _check_keys(found: dict[str, Any], rows: Rows, number: int) -> None:
    if "seq" in found and "type" in found:
        raise rows.wrong(
            number,
            "",
            "this is an event and not an outcome; export the run as .csv with `coevolve export`.",
        )
    check_columns(list(found), rows, number)


def _row(found: dict[str, Any], rows: Rows, number: int) -> Row:
    for name in REQUIRED:
        if name not in found:
            raise rows.wrong(number, name, "it is missing; use null for a missing score.")
    values = [found.get(name, found.get(SAME.get(name, ""))) for name in Row._fields]
    return checked_values(Row._make(values), rows, number)


def checked_values(row: Row, rows: Rows, number: int) -> Row:
    """A row of values with types, where only numbers are numbers."""
    for name, value in zip(Row._fields, row, strict=True):
        if isinstance(value, list | dict) or (name == "score" and value == ""):
            raise rows.wrong(number, name, f"a single value is needed, got {value!r:.80}.")
    return row


def read_parquet(path: Path, rows: Rows) -> bool:
    """Add the rows of a Parquet file; whether they have trial numbers."""
    try:
        import pyarrow  # type: ignore[import-untyped]
        from pyarrow import parquet
    except ImportError:
        raise HistoryError(
            f"{path}: Parquet needs pyarrow: pip install 'task-coevolve[parquet]', or save the "
            "results as .csv."
        ) from None
    try:
        with parquet.ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
            check_columns(names, rows, 0)
            used = [n for n in (*Row._fields, *SAME.values()) if n in names]
            number = 0
            for values in _batches(file, used):
                for cells in values:
                    number += 1
                    given = [cells.get(n, cells.get(SAME.get(n, ""))) for n in Row._fields]
                    rows.add(number, checked_values(Row._make(given), rows, number))
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        if isinstance(error, HistoryError):
            raise
        why = str(error)[:200].rstrip(". ")
        raise HistoryError(f"{path}: this is not a Parquet file: {why}.") from None
    return "trial" in names


def _batches(file: Any, columns: list[str]) -> Iterator[list[dict[str, Any]]]:
    for batch in file.iter_batches(_CHUNK, columns=columns):
        yield batch.to_pylist()
