"""The files and folders that past results are read from."""

from collections.abc import Callable
from hashlib import blake2b, file_digest
from pathlib import Path

from coevolve.errors import HistoryError
from coevolve.past_results.harbor_job import read_trials, trial_files
from coevolve.past_results.inspect_log import read_inspect
from coevolve.past_results.result_rows import PastResults, Rows, combined
from coevolve.past_results.result_tables import read_csv, read_jsonl, read_parquet

TABLES: dict[str, Callable[[Path, Rows], bool]] = {
    ".csv": read_csv,
    ".jsonl": read_jsonl,
    ".parquet": read_parquet,
}
LOGS = (".eval", ".json")
ENDINGS = (*TABLES, *LOGS)


def read_past(path: Path | str, *, scorer: str | None = None) -> PastResults:
    r"""The past results in a file or folder, every row checked.

    Args:
        path: A table (.csv, .jsonl or .parquet) with the columns candidate, task and score, and
            maybe trial and cost; a log of Inspect (.eval or .json); a job folder of Harbor; or a
            folder of such files.
        scorer: Which score of an Inspect log counts, if there are several.

    Raises:
        HistoryError: The first thing that is wrong, with its file, row and column.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "past.csv"
    >>> _ = path.write_text("candidate,task,score\nstart,sort-list,1\nstart,parse-date,0\n")
    >>> past = read_past(path)
    >>> len(past), past.candidates, past.score.tolist()
    (2, ('start',), [1.0, 0.0])
    """
    path = Path(path)
    try:
        if path.is_dir():
            return _folder(path, scorer)
        if not path.is_file():
            raise HistoryError(f"there is no file or folder {path}.")
        if path.suffix not in ENDINGS:
            raise HistoryError(
                f"{path} is not a {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]} file, nor a folder."
            )
        return _files(path, [path], scorer)
    except OSError as error:
        where = error.filename or path
        raise HistoryError(f"{where} cannot be read: {error.strerror or error}.") from error


def _folder(path: Path, scorer: str | None) -> PastResults:
    if trials := trial_files(path):
        if scorer is not None:
            raise HistoryError(f"{path} is a job of Harbor; a scorer has no effect on it.")
        rows = Rows()
        read_trials(trials, rows)
        return rows.results(str(path), _digest(trials), "harbor", True)
    if not (found := _inside(path)):
        raise HistoryError(
            f"the folder {path} has neither trials of Harbor nor {', '.join(ENDINGS)} files."
        )
    return _files(path, found, scorer)


def _inside(folder: Path) -> list[Path]:
    """The files of a folder that may have past results."""
    return sorted(file for file in folder.iterdir() if file.suffix in ENDINGS and file.is_file())


def past_digest(path: Path) -> str | None:
    """The digest that `read_past` finds without options; None if there is no such file."""
    try:
        if path.is_dir():
            return _digest(trial_files(path) or _inside(path))
        return _digest([path])
    except OSError:
        return None


def _files(source: Path, paths: list[Path], scorer: str | None) -> PastResults:
    if scorer is not None and not all(path.suffix in LOGS for path in paths):
        raise HistoryError("a scorer can be chosen only in logs of Inspect.")
    rows, numbered = Rows(), True
    for path in paths:
        rows.open(str(path))
        read = TABLES.get(path.suffix)
        known = read_inspect(path, rows, scorer) if read is None else read(path, rows)
        numbered = numbered and known
    kinds = {"inspect" if path.suffix in LOGS else path.suffix[1:] for path in paths}
    kind = kinds.pop() if len(kinds) == 1 else "folder"
    digest = _digest(paths) if scorer is None else combined(_digest(paths), scorer)
    return rows.results(str(source), digest, kind, numbered)


def _digest(paths: list[Path]) -> str:
    """Hash of the contents of files, in their order."""
    found = blake2b(digest_size=16)
    for path in paths:
        with path.open("rb") as file:
            found.update(file_digest(file, "blake2b").digest())
    return found.hexdigest()
