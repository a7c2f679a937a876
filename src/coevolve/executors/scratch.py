"""Temporary folders that are cleared away even after a process was killed."""

import contextlib
import fcntl
import os
import tempfile
from pathlib import Path
from typing import Self

from coevolve.executors.isolation.base import remove

_PREFIX = "coevolve-scratch-"
_LOCK = ".lock"


class Scratch:
    """A temporary folder of this process, which holds a lock on it while it lives.

    Making one clears away those whose process is gone.
    """

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder, self.lock = folder, lock

    @classmethod
    def make(cls, parent: Path | None = None) -> Self:
        """A new folder, in the system's folder for temporary files unless another is given."""
        parent = Path(tempfile.gettempdir()) if parent is None else parent
        for stale in parent.glob(f"{_PREFIX}*"):
            _clear_if_left(stale)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        folder.chmod(0o755)  # a sandbox below it may be another user's
        lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return cls(folder, lock)

    def remove(self) -> None:
        """Remove the folder and what is in it."""
        remove(self.folder)
        os.close(self.lock)


def _clear_if_left(folder: Path) -> None:
    """Remove a folder of ours that no living process holds."""
    # Other users' folders cannot be opened, and one that is just being made has no lock yet.
    with contextlib.suppress(OSError):
        lock = os.open(folder / _LOCK, os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(folder)
        finally:
            os.close(lock)
