"""Outcome matrices from files: `.npz` arrays, or the events of a run as `.jsonl`."""

import io
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from coevolve.analysis.matrix import Matrix
from coevolve.analysis.run import matrix_of_run, read_events
from coevolve.errors import CoevolveError, MatrixError

OPTIONAL = ("run", "trials", "tasks", "candidates", "pools")


def read_matrix(path: str | Path) -> Matrix:
    """The matrix in a file, named after it.

    Args:
        path: An `.npz` file with the arrays of `Matrix.from_arrays` (`cost` may also be named
            `cost_usd`; other arrays are ignored), or a `.jsonl` file with an event of a selector
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
    readers = {".npz": _from_npz, ".jsonl": _from_events}
    if path.suffix not in readers:
        raise MatrixError(f"{path} is neither an .npz nor a .jsonl file.")
    try:
        return readers[path.suffix](path)
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


def _from_events(path: Path) -> Matrix:
    return matrix_of_run(path.stem, read_events(path))
