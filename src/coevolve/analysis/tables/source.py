"""What an analysis reads: an outcome matrix, or the events of a run."""

from dataclasses import dataclass
from pathlib import Path

from coevolve.analysis.reading import read_matrix
from coevolve.analysis.run import read_events
from coevolve.analysis.series import Series
from coevolve.analysis.tables.search import Search
from coevolve.errors import CoevolveError, EventError, InputError, MatrixError, nearest

EVENTS = "events.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """A run's search, or a series of a matrix: one of the two, and notes on what was left out."""

    name: str
    search: Search | None = None
    series: Series | None = None
    notes: tuple[str, ...] = ()


def read_source(path: str | Path, series: str | None = None) -> Source:
    """The run or matrix under a path.

    Args:
        path: An `.npz` outcome matrix; a `.jsonl` file with an event of a selector per line; or a
            folder with such a file, named events.jsonl.
        series: Name of the series of a matrix; the first when left out.

    >>> import tempfile, numpy as np
    >>> path = Path(tempfile.mkdtemp()) / "tiny.npz"
    >>> np.savez(path, outcomes=np.array([[0, 1], [1, 0], [1, 1]]))
    >>> read_source(path).series.generated
    ('candidate-2',)
    """
    path = Path(path)
    name = path.resolve().name if path.is_dir() else path.stem
    if path.is_dir():
        path = path / EVENTS
    if path.suffix == ".npz":
        return _from_matrix(path, name, series)
    if path.suffix != ".jsonl" or not path.is_file():
        raise MatrixError(
            f"{path} is no run or matrix; give an .npz outcome matrix, a .jsonl file of events, "
            f"or a folder with {EVENTS}."
        )
    if series is not None:
        raise InputError(f"--series chooses a series of a matrix, and {path} is a run.")
    try:
        return Source(name=name, search=Search.of_events(read_events(path)))
    except (CoevolveError, UnicodeError) as error:
        raise EventError(f"{path}: {error}") from error


def _from_matrix(path: Path, name: str, wanted: str | None) -> Source:
    matrix = read_matrix(path)
    names = [series.name for series in matrix.series]
    if wanted is not None and wanted not in names:
        shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        raise MatrixError(
            f"{path} has no series {wanted!r}; there are {shown}." + nearest(wanted, names)
        )
    chosen = matrix.series[0 if wanted is None else names.index(wanted)]
    notes = list(matrix.notes)
    if wanted is None and len(names) > 1:
        notes.append(f"{len(names)} series, of which this is the first; --series chooses another")
    return Source(name=name, series=chosen, notes=tuple(notes))
