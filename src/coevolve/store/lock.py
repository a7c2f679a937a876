"""One writer per run: a lock that dies with its process."""

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
"""Seconds to wait for a lock: `owner` holds it for an instant to see whether it is free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The process that writes a run; without a pid in the instant before it has signed."""

    pid: int | None = None
    host: str = ""
    since: str = ""
    command: str = ""

    def __str__(self) -> str:
        if self.pid is None:
            return "another process"
        return f"process {self.pid} on {self.host} since {self.since} ({self.command})"


class Lock:
    """The right to write, held until `release` or the end of the process.

    The lock is the operating system's, on the open file; what is written in the file only tells
    people who holds it and means nothing once the lock is gone.
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
                f"the run {path.parent} is being written by {holder}. Wait until it ends or stop "
                f"it; `coevolve status {path.parent}` shows how it is doing."
            )
        _let_go_in_children(self)

    def release(self) -> None:
        """Give the right to write back."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def owner(folder: Path) -> Owner | None:
    """Who writes the run in a folder as of now, if anybody does."""
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


def _let_go_in_children(lock: Lock) -> None:
    """A forked child would hold on to the lock after its parent's end."""
    held = weakref.ref(lock)

    def let_go() -> None:
        if (mine := held()) is not None:
            mine.release()

    os.register_at_fork(after_in_child=let_go)
