"""What lies where in the folder of a run."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from coevolve.store.trouble import explained


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
