"""Checks of the arrays of an outcome matrix; each names the array and the value."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from coevolve.core.arrays import Bools, Floats, Indices
from coevolve.errors import MatrixError


def checked_outcomes(given: Any) -> Floats:
    """Candidates × tasks in [0, 1], or NaN."""
    values = _numbers("outcomes", given)
    if values.ndim != 2 or not values.size:
        raise MatrixError(
            f"array 'outcomes' must be candidates × tasks, got shape {values.shape}."
        )
    _refuse("outcomes", values, ~(np.isnan(values) | ((values >= 0) & (values <= 1))), "in [0, 1]")
    return values


def checked_trials(given: Any, outcomes: Floats) -> Indices | None:
    """Number of trials of each cell; a cell with an outcome has at least one."""
    if given is None:
        return None
    values = _numbers("trials", given)
    if values.shape == (1,):
        values = values[0]
    cells = _cells("trials", values, outcomes.shape, "one number, ")
    _refuse("trials", cells, ~((cells >= 0) & (cells == np.floor(cells))), "0, 1, 2, ...")
    _refuse("trials", cells, (cells == 0) & ~np.isnan(outcomes), "at least 1 for an outcome")
    return cells.astype(np.int64)


def checked_costs(given: Any, shape: tuple[int, ...]) -> Floats | None:
    """Cost of each cell, NaN where unknown; None if it is unknown for all."""
    if given is None:
        return None
    values = _numbers("cost", given)
    if not values.ndim:
        raise MatrixError("array 'cost' must be per task or per cell, got one number.")
    cells = _cells("cost", values, shape, "")
    _refuse("cost", cells, ~(np.isnan(cells) | ((cells >= 0) & (cells < np.inf))), "at least 0")
    return None if np.isnan(cells).all() else cells


def checked_names(array: str, given: Any, number: int, kind: str) -> tuple[str, ...]:
    """One name per row or column; numbered ones when left out."""
    if given is None:
        return tuple(f"{kind}-{i}" for i in range(number))
    values = _labels(array, given, number)
    return tuple(str(value) for value in values.tolist())


def checked_runs(given: Any, number: int) -> Iterator[tuple[str, Bools]]:
    """The name of each series, and which rows belong to it."""
    if given is None:
        yield "all", np.ones(number, dtype=np.bool_)
        return
    values = _labels("run", given, number)
    for value in np.unique(values):
        yield str(value), np.asarray(values == value)


def _labels(array: str, given: Any, number: int) -> Any:
    values = np.asarray(given)
    if values.shape != (number,):
        raise MatrixError(
            f"array {array!r} has shape {values.shape}, but there are {number} of them in "
            "'outcomes'."
        )
    if values.dtype.kind not in "USiub":
        raise MatrixError(f"array {array!r} must hold text or whole numbers, got {values.dtype}.")
    return np.char.decode(values) if values.dtype.kind == "S" else values


def _numbers(array: str, given: Any) -> Floats:
    values = np.asarray(given)
    if values.dtype.kind not in "fiub":
        raise MatrixError(f"array {array!r} must hold numbers, got {values.dtype}.")
    return values.astype(np.float64)


def _cells(array: str, values: Floats, shape: tuple[int, ...], also: str) -> Floats:
    """Values spread over all cells."""
    if values.shape not in ((), shape[1:], shape):
        raise MatrixError(
            f"array {array!r} must be {also}per task {shape[1:]} or per cell {shape}, got shape "
            f"{values.shape}."
        )
    return np.broadcast_to(values, shape).copy()


def _refuse(array: str, values: Floats, wrong: Bools, wanted: str) -> None:
    if wrong.any():
        row, column = np.unravel_index(int(np.argmax(wrong)), values.shape)
        raise MatrixError(
            f"array {array!r} must be {wanted}, got {values[row, column]:g} in row {row}, column "
            f"{column}."
        )
