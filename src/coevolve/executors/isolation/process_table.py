"""The processes of a sandbox, read from /proc: which exist, what they use; ending them."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coevolve.executors.isolation.launch import Launch

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LONGEST_KILL = 5.0
_PRIVATE = ("tmp", "dev/shm")
"""The writable folders of a namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What one process, or all processes of a sandbox, use now."""

    threads: int = 0
    cpu_seconds: float = 0.0
    memory_bytes: int = 0

    def __add__(self, other: "Use") -> "Use":
        return Use(
            threads=self.threads + other.threads,
            cpu_seconds=self.cpu_seconds + other.cpu_seconds,
            memory_bytes=self.memory_bytes + other.memory_bytes,
        )


def members(launch: Launch, root: int, *, strayed: bool = True) -> set[int]:
    """All processes of a sandbox; with `strayed`, also those that left its process tree.

    None can leave the tree of a namespace. Otherwise all processes of the machine are searched.
    """
    tree = set(descendants(root))
    if strayed and not launch.namespace:
        for pid in _all_pids():
            if pid not in tree and _belongs(launch, pid):
                tree |= {pid, *descendants(pid)}
    return tree


def descendants(root: int) -> Iterator[int]:
    """A process, its children, their children, ..."""
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += children(pid)


def children(pid: int) -> list[int]:
    """Children of all threads of a process; empty if the kernel does not list them."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{pid}/task/{task}/children").read_bytes()
                found += [int(child) for child in text.split()]
    return found


def use(pid: int) -> Use:
    """What a process uses; CPU time includes that of children it has waited for."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return Use()
    fields = text[text.rindex(b")") + 2 :].split()
    return Use(
        threads=int(fields[17]) if fields[0] not in (b"Z", b"X") else 0,
        cpu_seconds=sum(map(int, fields[11:15])) / _TICKS,
        memory_bytes=int(fields[21]) * _PAGE,
    )


class LeftoverCheck:
    """Looks for what a trial has left in a sandbox: processes, threads, files.

    It keeps files of /proc open, because it looks after every trial.

    Args:
        launch: How the sandbox was started.
        root: Its first process; no trial is under way.
    """

    def __init__(self, launch: Launch, root: int) -> None:
        self._stat = self._runner = -1
        self._lists: dict[int, bytes] = {}
        self._folders: list[int] = []
        chain = [root]
        while len(found := children(chain[-1])) == 1:
            chain += found
        if found or len(chain) != launch.wrappers:
            return
        # Orphans become children of the runner, or of the first process of its namespace.
        for pid, child in zip(chain[-2:], [*map(str, chain[1:]), ""][-2:], strict=True):
            self._runner = _opened(f"/proc/{pid}/task/{pid}/children")
            self._lists[self._runner] = child.encode()
        self._stat = _opened(f"/proc/{chain[-1]}/stat")
        if launch.namespace:
            self._folders = [_opened(f"/proc/{chain[-1]}/root/{name}") for name in _PRIVATE]

    def trial_processes(self) -> list[int]:
        """The processes that the runner has forked and that were not waited for."""
        try:
            return [int(pid) for pid in os.pread(self._runner, 999, 0).split()]
        except OSError:
            return []

    def alone(self) -> bool:
        """Whether only the runner is alive, with one thread."""
        try:
            for fd, own in self._lists.items():
                if os.pread(fd, 99, 0).strip() != own:
                    return False
            text = os.pread(self._stat, 999, 0)
            return text[text.rindex(b")") :].split(None, 19)[18] == b"1"
        except OSError:
            return False

    def empty(self) -> bool:
        """Whether the private folders of a namespace are empty; False if unknown."""
        try:
            return bool(self._folders) and not any(map(os.listdir, self._folders))
        except OSError:
            return False

    def close(self) -> None:
        """Close the files."""
        for fd in (self._stat, *self._lists, *self._folders):
            if fd >= 0:
                os.close(fd)


def _opened(path: str) -> int:
    """A descriptor, or -1, which cannot be read."""
    with contextlib.suppress(OSError):
        return os.open(path, os.O_RDONLY)
    return -1


def proportional_memory(pids: set[int]) -> int | None:
    """Memory with shared pages counted once; None if it cannot be read."""
    total = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_bytes()
        except PermissionError:
            return None
        except OSError:
            continue
        for line in text.splitlines():
            if line.startswith(b"Pss:"):
                total += int(line.split()[1]) * 1024
    return total


def private_files(root: int) -> int:
    """How many files a namespace keeps in memory; 0 if unknown."""
    total = 0
    for first in children(root)[:1]:
        with contextlib.suppress(OSError):
            top = os.open(f"/proc/{first}/root", os.O_PATH | os.O_DIRECTORY)
            try:
                # Until the sandbox has its own root, it has ours, with our files in it.
                if not os.path.samestat(os.fstat(top), os.stat("/")):  # noqa: PTH116
                    total += sum(_files(f"/proc/self/fd/{top}/{name}") for name in _PRIVATE)
            finally:
                os.close(top)
    return total


def _files(place: str) -> int:
    with contextlib.suppress(OSError):
        numbers = os.statvfs(place)
        return numbers.f_files - numbers.f_ffree
    return 0


def kill_all(launch: Launch, root: int) -> None:
    """End every process of a sandbox; its first process remains to be waited for."""
    if launch.namespace:
        # The kernel ends a namespace with its first process; bwrap then ends by itself.
        for pid in children(root) or [root]:
            send_signal(pid, signal.SIGKILL)
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(root, signal.SIGKILL)
    deadline = time.monotonic() + _LONGEST_KILL
    while time.monotonic() < deadline:
        alive = {pid for pid in members(launch, root) if use(pid).threads}
        if not alive:
            return
        for pid in alive:
            send_signal(pid, signal.SIGSTOP)
        for pid in alive | members(launch, root):
            send_signal(pid, signal.SIGKILL)
        time.sleep(0.001)


def send_signal(pid: int, number: int) -> None:
    """Send a signal to a process, if it exists and may be signalled."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _all_pids() -> Iterator[int]:
    with contextlib.suppress(OSError):
        yield from (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208


def _belongs(launch: Launch, pid: int) -> bool:
    folder = Path(f"/proc/{pid}")
    with contextlib.suppress(OSError):
        if launch.uid is not None:
            # Bytes, from the beginning of a line: a process chooses its name, which is in there.
            return b"\nUid:\t%d\t" % launch.uid in (folder / "status").read_bytes()
        return launch.mark.encode() in (folder / "environ").read_bytes().split(b"\0")
    return False
