"""Folders of sandboxes and workers: copied, made, removed."""

import contextlib
import fcntl
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import Self

_PREFIX = "coevolve-scratch-"
_LOCK = ".lock"


def copy_folder(folder: Path, target: Path) -> Path:
    """Copy plain files and folders, readable by all users; links are not copied."""
    target.mkdir(parents=True)
    target.chmod(0o755)
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                copy_folder(Path(entry.path), target / entry.name)
            elif entry.is_file(follow_symlinks=False):
                runs = entry.stat().st_mode & stat.S_IXUSR
                shutil.copyfile(entry.path, target / entry.name, follow_symlinks=False)
                (target / entry.name).chmod(0o755 if runs else 0o644)
    return target


def open_to_all(folder: Path) -> bool:
    """Whether every user may read the whole folder."""
    if folder.stat().st_mode & 0o005 != 0o005:
        return False
    with os.scandir(folder) as entries:
        return all(
            open_to_all(Path(entry.path))
            if entry.is_dir(follow_symlinks=False)
            else entry.is_symlink() or bool(entry.stat().st_mode & 0o004)
            for entry in entries
        )


def remove(path: Path) -> None:
    """Delete a folder of any depth, whatever its permissions; a link or a file is unlinked."""
    if path.is_symlink() or not path.is_dir():
        with contextlib.suppress(OSError):
            path.unlink()
        return
    with contextlib.suppress(RecursionError):
        shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        for command in (("chmod", "-R", "u+rwX"), ("rm", "-rf")):
            subprocess.run([*command, "--", path], capture_output=True, check=False)


class Scratch:
    """A temporary folder that this process holds a lock on while it lives.

    Making one also removes those whose process has ended.
    """

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder, self.lock = folder, lock

    @classmethod
    def make(cls, parent: Path | None = None) -> Self:
        """Make a folder, in the system's folder for temporary files by default."""
        parent = Path(tempfile.gettempdir()) if parent is None else parent
        for stale in parent.glob(f"{_PREFIX}*"):
            _remove_if_stale(stale)
        while True:
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
            folder.chmod(0o755)  # a sandbox in it may run as another user
            lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
            # Between these lines another process may have taken it for a stale one.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (folder / _LOCK).exists():
                return cls(folder, lock)
            os.close(lock)

    def remove(self) -> None:
        """Remove the folder and everything in it."""
        remove(self.folder)
        os.close(self.lock)


def _remove_if_stale(folder: Path) -> None:
    """Remove a scratch folder that no living process holds."""
    # Folders of other users cannot be opened, and a folder that is being made has no lock yet.
    with contextlib.suppress(OSError):
        lock = os.open(folder / _LOCK, os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(folder)
        finally:
            os.close(lock)
