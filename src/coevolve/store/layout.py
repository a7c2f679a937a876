"""What lies where in the folder of a run, and what disk errors mean."""

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from coevolve.errors import CoevolveError, DamageError, StoreError


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
        return self.folder / "run.db"

    @property
    def log(self) -> Path:
        """SQLite's write-ahead log: events that are not in the main file yet."""
        return self.folder / "run.db-wal"

    @property
    def index(self) -> Path:
        """SQLite's index of the log; made anew whenever it is missing."""
        return self.folder / "run.db-shm"

    @property
    def lock(self) -> Path:
        """Who writes; see `lock`."""
        return self.folder / "run.lock"

    @property
    def blobs(self) -> Path:
        """Contents by address."""
        return self.folder / "blobs"

    @property
    def candidates(self) -> Path:
        """Folders with the files of candidates, made from the blobs."""
        return self.folder / "candidates"

    @property
    def unfinished(self) -> Path:
        """What is being written; of no use to anybody once its writer is gone."""
        return self.folder / "unfinished"

    @property
    def repaired(self) -> Path | None:
        """A journal that a repair has made and not put in its place yet; see `replacing`."""
        return next(self.folder.glob("run.db.repaired-*"), None)

    def clear_unfinished(self) -> None:
        """Remove what a writer that is gone left behind."""
        with explained(self.unfinished):
            if self.unfinished.exists():
                shutil.rmtree(self.unfinished)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


FULL = "Make room on the disk and go on; all that was recorded before is intact."
DENIED = "Make the folder writable for this user, or copy it to where it is."

_ERRNO = {
    errno.ENOSPC: ("the disk is full", FULL),
    errno.EDQUOT: ("the disk quota is used up", FULL),
    errno.EROFS: ("the file system is read-only", DENIED),
    errno.EACCES: ("permission is denied", DENIED),
    errno.EPERM: ("the operation is not permitted", DENIED),
    errno.ENOENT: ("it is not there", "Check the path of the run folder."),
    errno.ENOTDIR: ("it is not a folder", "Check the path of the run folder."),
    errno.EMFILE: ("too many files are open", "Raise the limit with `ulimit -n` and go on."),
    errno.ENOLCK: ("the file system has no locks", "Move the run to a local disk."),
}

_SQLITE = {
    sqlite3.SQLITE_FULL: _ERRNO[errno.ENOSPC],
    sqlite3.SQLITE_READONLY: ("it is read-only", DENIED),
    sqlite3.SQLITE_PERM: _ERRNO[errno.EACCES],
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", DENIED),
    sqlite3.SQLITE_BUSY: ("another program holds it", "Close that program and go on."),
    sqlite3.SQLITE_LOCKED: ("another program holds it", "Close that program and go on."),
    sqlite3.SQLITE_IOERR: ("the disk failed", "Look at the disk and its free space, then go on."),
    sqlite3.SQLITE_TOOBIG: ("an event is too long", "Keep long contents as blobs."),
}

# Our statements are fixed: when SQLite finds one wrong, the tables are not what they were.
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
_SHORT_READ = sqlite3.SQLITE_IOERR_SHORT_READ


class JournalDamage(DamageError):  # noqa: N818
    """A damaged journal; `what` says what is wrong and leaves out the rest."""

    def __init__(self, message: str, *, intact: int, what: str) -> None:
        super().__init__(message, intact=intact)
        self.what = what


def damaged(folder: Path, intact: int, what: str) -> JournalDamage:
    """The error for a journal whose first `intact` events are good and whose next is not.

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
    """Turn errors of the operating system and of SQLite into ours, which say what to do.

    >>> with explained(Path("runs/first/run.db")):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
    coevolve.errors.StoreError: runs/first/run.db: the disk is full. Make room on the disk \
and go on; all that was recorded before is intact.
    """
    try:
        yield
    except OSError as error:
        raise _of_system(error, path) from error
    except sqlite3.Error as error:
        raise _of_sqlite(error, path, intact) from error


def _of_system(error: OSError, path: Path) -> StoreError:
    known = _ERRNO.get(error.errno or 0)
    what, advice = known or (str(error), "Look at the disk, then go on.")
    return StoreError(f"{path}: {what}. {advice}")


def _of_sqlite(error: sqlite3.Error, path: Path, intact: int) -> CoevolveError:
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return StoreError(f"{path}: {error} Open the run again.")
    if code == _SHORT_READ or code & 0xFF in _DAMAGED:
        return damaged(path.parent, intact, str(error))
    what, advice = _SQLITE.get(code & 0xFF, (str(error), "Open the run again."))
    return StoreError(f"{path}: {what} ({error}). {advice}")
