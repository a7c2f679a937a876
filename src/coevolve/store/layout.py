"""The files in the folder of a run, and messages for disk errors."""

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from coevolve.errors import CoevolveError, DamageError, StoreError

JOURNAL = "run.db"
"""The name of the journal; a folder with it is a run."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths below the folder of a run.

    >>> Layout(Path("runs/first")).journal.as_posix()
    'runs/first/run.db'
    """

    folder: Path

    @property
    def journal(self) -> Path:
        """The events."""
        return self.folder / JOURNAL

    @property
    def log(self) -> Path:
        """SQLite's write-ahead log, with events that are not in the main file yet."""
        return self.folder / "run.db-wal"

    @property
    def index(self) -> Path:
        """SQLite's index of the log, which it creates when it is missing."""
        return self.folder / "run.db-shm"

    @property
    def lock(self) -> Path:
        """The lock of the process that writes."""
        return self.folder / "run.lock"

    @property
    def blobs(self) -> Path:
        """Contents by address."""
        return self.folder / "blobs"

    @property
    def candidates(self) -> Path:
        """Folders with the files of candidates, created from the blobs."""
        return self.folder / "candidates"

    @property
    def unfinished(self) -> Path:
        """Files that are being written, not used after the writer has ended."""
        return self.folder / "unfinished"

    @property
    def repaired(self) -> Path | None:
        """The new journal of an unfinished repair, if there is one; see `repair`."""
        return next(self.folder.glob("run.db.repaired-*"), None)

    def clear_unfinished(self) -> None:
        """Remove the unfinished files of earlier writers."""
        with explained(self.unfinished):
            if self.unfinished.exists():
                shutil.rmtree(self.unfinished)


def run_folders(folder: Path) -> list[Path]:
    """The runs in a folder and in its `runs/`."""
    return sorted(
        path.parent
        for pattern in (f"runs/*/{JOURNAL}", f"*/{JOURNAL}")
        for path in folder.glob(pattern)
    )


def sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


FULL = "Free some disk space and resume; all events recorded before are intact."
DENIED = "Make the folder writable for this user, or copy it to a writable place."

_ERRNO = {
    errno.ENOSPC: ("the disk is full", FULL),
    errno.EDQUOT: ("the disk quota is used up", FULL),
    errno.EROFS: ("the file system is read-only", DENIED),
    errno.EACCES: ("permission is denied", DENIED),
    errno.EPERM: ("the operation is not permitted", DENIED),
    errno.ENOENT: ("it does not exist", "Check the path of the run folder."),
    errno.ENOTDIR: ("it is not a folder", "Check the path of the run folder."),
    errno.EMFILE: ("too many files are open", "Raise the limit with `ulimit -n` and resume."),
    errno.ENOLCK: ("the file system has no locks", "Move the run to a local disk."),
}

_SQLITE = {
    sqlite3.SQLITE_FULL: _ERRNO[errno.ENOSPC],
    sqlite3.SQLITE_READONLY: ("it is read-only", DENIED),
    sqlite3.SQLITE_PERM: _ERRNO[errno.EACCES],
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", DENIED),
    sqlite3.SQLITE_BUSY: ("another program has locked it", "Close that program and resume."),
    sqlite3.SQLITE_LOCKED: ("another program has locked it", "Close that program and resume."),
    sqlite3.SQLITE_IOERR: ("the disk failed", "Check the disk and its free space, then resume."),
    sqlite3.SQLITE_TOOBIG: ("an event is too long", "Store long contents as blobs."),
}

# SQLITE_ERROR too: our statements are fixed, so the tables must have changed.
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
_SHORT_READ = sqlite3.SQLITE_IOERR_SHORT_READ


class JournalDamage(DamageError):  # noqa: N818
    """A damaged journal; `what` is the part of the message that says what is wrong."""

    def __init__(self, message: str, *, intact: int, what: str) -> None:
        super().__init__(message, intact=intact)
        self.what = what


def damaged(folder: Path, intact: int, what: str) -> JournalDamage:
    """The error for a journal of which only the first `intact` events are good.

    >>> print(damaged(Path("runs/first"), 7, "its seal does not match"))
    the journal of runs/first is damaged at event 7: its seal does not match. The 7 events \
before it are intact; `coevolve doctor --repair runs/first` keeps them.
    """
    return JournalDamage(
        f"the journal of {folder} is damaged at event {intact}: {what}. The {intact} events "
        f"before it are intact; `coevolve doctor --repair {folder}` keeps them.",
        intact=intact,
        what=what,
    )


@contextmanager
def explained(path: Path, intact: int = 0) -> Iterator[None]:
    """Turn errors of the operating system and of SQLite into errors with a remedy.

    >>> with explained(Path("runs/first/run.db")):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
    coevolve.errors.StoreError: runs/first/run.db: the disk is full. Free some disk space \
and resume; all events recorded before are intact.
    """
    try:
        yield
    except OSError as error:
        raise _of_system(error, path) from error
    except sqlite3.Error as error:
        raise _of_sqlite(error, path, intact) from error
    except UnicodeDecodeError as error:  # SQLite shows a part of the schema that is damaged
        raise damaged(path.parent, intact, f"its schema is not text ({error})") from error


def _of_system(error: OSError, path: Path) -> StoreError:
    known = _ERRNO.get(error.errno or 0)
    what, advice = known or (str(error), "Check the disk, then resume.")
    return StoreError(f"{path}: {what}. {advice}")


def _of_sqlite(error: sqlite3.Error, path: Path, intact: int) -> CoevolveError:
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return StoreError(f"{path}: {error} Open the run again.")
    if code == _SHORT_READ or code & 0xFF in _DAMAGED:
        return damaged(path.parent, intact, str(error))
    what, advice = _SQLITE.get(code & 0xFF, (str(error), "Open the run again."))
    return StoreError(f"{path}: {what} ({error}). {advice}")
