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
"""Seconds for processes to end."""


def new_name() -> str:
    """A name for an environment of this process."""
    return f"{_PREFIX}-{os.getpid()}-{start_ticks(os.getpid())}-{secrets.token_hex(4)}"


def sweep_leftovers(folder: Path) -> list[str]:
    """Remove what killed processes have left of environments in a folder; their names."""
    names = {path.name for path in _found(folder)}
    names |= {path.name for parent in group_parents().values() for path in _found(parent)}
    gone = []
    for name in sorted(names):
        if not _owned(name) and _unlocked(folder / name):
            remove_environment(folder, name, kill=(folder / name).exists())
            gone.append(name)
    return gone


def remove_environment(folder: Path, name: str, *, kill: bool = True) -> None:
    """Remove what a keeper that was killed has left: its control groups and its folder.

    Args:
        folder: Where the folders of environments are.
        name: The environment.
        kill: End what is still in its groups. A group without a folder may belong to an owner
            that is not visible here, as in another container; it is removed if it is empty.
    """
    for parent in group_parents().values():
        _remove_group(parent / name, kill=kill)
    shutil.rmtree(folder / name, ignore_errors=True)


def _found(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from folder.glob(f"{_PREFIX}-*-*-*")


def _owned(name: str) -> bool:
    pid, started = name.removeprefix(f"{_PREFIX}-").split("-")[:2]
    return pid.isdigit() and start_ticks(int(pid)) == started


def start_ticks(pid: int) -> str:
    """When a process was started, in ticks since boot; empty if it has ended."""
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{pid}/stat").read_bytes()
        fields = text[text.rindex(b")") + 2 :].split()
        return "" if fields[0] in (b"Z", b"X") else fields[19].decode()
    return ""


def _unlocked(folder: Path) -> bool:
    """Whether no keeper is at work in a folder; one that cleans up just now removes all itself."""
    try:
        fd = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def _remove_group(group: Path, *, kill: bool) -> None:
    deadline = time.monotonic() + (_PATIENCE if kill else 0)
    while group.exists():
        with contextlib.suppress(OSError):
            for pid in (group / "cgroup.procs").read_text().split() if kill else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            group.rmdir()
        if time.monotonic() > deadline:
            return
        time.sleep(0.002)
