"""Names of task environments, and the removal of those whose owner was killed.

The name of an environment says which process owns it, and when that process was started, since
process numbers are used again. The keeper of an environment holds a lock on its folder.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from coevolve.benchmarks.harbor.namespace_limits import group_parents

_PREFIX = "coevolve-env"
_PATIENCE = 5.0
"""Seconds for a keeper that is just cleaning up."""


def new_name() -> str:
    """A name for an environment of this process."""
    return f"{_PREFIX}-{os.getpid()}-{_started(os.getpid())}-{secrets.token_hex(4)}"


def sweep_leftovers(folder: Path) -> list[str]:
    """Remove what killed processes have left of environments in a folder; their names."""
    names = {path.name for path in _found(folder)}
    names |= {path.name for parent in group_parents().values() for path in _found(parent)}
    gone = sorted(name for name in names if not _owned(name))
    for name in gone:
        with _locked(folder / name):
            remove_environment(folder, name)
    return gone


def remove_environment(folder: Path, name: str) -> None:
    """Remove what a keeper that was killed has left: its control groups and its folder."""
    for parent in group_parents().values():
        _remove_group(parent / name)
    shutil.rmtree(folder / name, ignore_errors=True)


def _found(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from folder.glob(f"{_PREFIX}-*-*-*")


def _owned(name: str) -> bool:
    pid, started = name.removeprefix(f"{_PREFIX}-").split("-")[:2]
    return pid.isdigit() and _started(int(pid)) == started


def _started(pid: int) -> str:
    """When a process was started, in ticks since boot; empty if it has ended."""
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{pid}/stat").read_bytes()
        fields = text[text.rindex(b")") + 2 :].split()
        return "" if fields[0] in (b"Z", b"X") else fields[19].decode()
    return ""


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait for a keeper that is still at work; it removes nearly all by itself."""
    try:
        fd = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.01)
        yield
    finally:
        os.close(fd)


def _remove_group(group: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and group.exists():
        with contextlib.suppress(OSError):
            for pid in (group / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            group.rmdir()
        time.sleep(0.002)
