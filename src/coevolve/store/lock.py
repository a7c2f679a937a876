"""One writer per run: a lock that ends with its process."""

import fcntl
import json
import os
import shlex
import socket
import sys
import time
import weakref
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from coevolve.errors import OwnedError
from coevolve.store.layout import explained

PATIENCE = 0.3
"""Seconds to wait for a lock; `owner` takes it briefly to check whether it is free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The process that writes a run; its pid is unknown until it has written it to the file."""

    pid: int | None = None
    host: str = ""
    since: str = ""
    command: str = ""

    def __str__(self) -> str:
        if self.pid is None:
            return "another process"
        return f"process {self.pid} on {self.host} since {self.since} ({self.command})"


class Lock:
    """The right to write, until `release` or the end of the process.

    It is a lock of the operating system on the open file. The text in the file names the process
    that holds the lock, and has no meaning after its release.
    """

    def __init__(self, path: Path) -> None:
        with explained(path):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                free = _taken(self._file, fcntl.LOCK_EX, PATIENCE)
                if free:
                    _sign(self._file)
            except BaseException:
                os.close(self._file)
                raise
        if not free:
            holder = _signature(self._file)
            os.close(self._file)
            raise OwnedError(
                f"the run {path.parent} is being written by {holder}. Wait until it ends, or stop "
                f"it. `coevolve status {path.parent}` shows its progress."
            )
        _release_in_children(self)

    def release(self) -> None:
        """Release the lock."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def owner(folder: Path) -> Owner | None:
    """The process that writes the run in a folder now, if there is one."""
    path = folder / "run.lock"
    if not path.exists():
        return None
    with explained(path):
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if _taken(file, fcntl.LOCK_SH, 0.0):
                return None
            return _signature(file)
        finally:
            os.close(file)


def _taken(file: int, kind: int, patience: float) -> bool:
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
        else:
            return True


def _sign(file: int) -> None:
    since = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
    command = shlex.join(sys.argv)[:200]
    mine = Owner(pid=os.getpid(), host=socket.gethostname(), since=since, command=command)
    os.ftruncate(file, 0)
    os.pwrite(file, json.dumps(asdict(mine)).encode() + b"\n", 0)


def _signature(file: int) -> Owner:
    try:
        return Owner(**json.loads(os.pread(file, 4096, 0)))
    except (ValueError, TypeError):
        return Owner()


def _release_in_children(lock: Lock) -> None:
    """Close the lock in forked children, which would hold it after their parent has ended."""
    held = weakref.ref(lock)

    def release() -> None:
        if (mine := held()) is not None:
            mine.release()

    os.register_at_fork(after_in_child=release)
