"""An agent's process: started, recorded, limited in disk use, ended."""

import asyncio
import contextlib
import math
import os
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from coevolve.executors.isolation.execution import Pipes
from coevolve.executors.isolation.launch import Launch
from coevolve.executors.isolation.process_table import kill_all
from coevolve.executors.isolation.sandbox import end, start
from coevolve.formatting import visible
from coevolve.proposers.base import in_thread
from coevolve.proposers.workspace import Workspace
from coevolve.redaction import Redaction

GIGABYTE = 10**9
MOST_BYTES = 2 * GIGABYTE
MOST_FILES = 500_000
"""The disk quota of one proposal; files and folders count alike."""
LEAST_BYTES = GIGABYTE
LEAST_FILES = 20_000
"""What must stay free on the disk, or half of what was free if that is less."""
_STEP = 0.25
_BLOCK = 512
MEGABYTE = 1 << 20
MOST_LOG = 32 * MEGABYTE
MOST_TRANSCRIPT = MOST_LOG
_MOST_LINE = 4 * MEGABYTE
_CHUNK = 1 << 16
_LONGEST_REST = 5.0
_LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Bytes and files; infinitely many files if the file system does not count them."""

    bytes: float
    files: float


class DiskQuota:
    """Limits the disk space that an agent uses in its workspace and its private home.

    Reading the free space of a disk is fast, but other programs write to the same disk. The files
    of the agent are counted only after the free space has fallen by more than the quota.

    Files that are in the workspace at the beginning do not count, except proposals.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._folder, self._proposals = workspace.folder, workspace.proposals.name
        self._initial = {path.name for path in workspace.folder.iterdir()}
        self._added: list[Path] = []
        self._disks: dict[int, tuple[Path, Amount]] = {}
        self._next_count = Amount(bytes=MOST_BYTES, files=MOST_FILES)
        self._watch(workspace.folder)

    def add(self, place: Path) -> None:
        """Watch another folder; all its files count."""
        self._added.append(place)
        self._watch(place)

    def _watch(self, place: Path) -> None:
        self._disks.setdefault(place.stat().st_dev, (place, free(place)))

    def exceeded(self) -> str:
        """Why the quota is exceeded; empty if it is not."""
        try:
            pairs = [(began, free(place)) for place, began in self._disks.values()]
        except FileNotFoundError:  # a trusted agent may have removed its folder
            return ""
        if any(_scarce(began, left) for began, left in pairs):
            return "the disk is nearly full"
        gone = Amount(
            bytes=sum(max(0.0, began.bytes - left.bytes) for began, left in pairs),
            files=sum(_fallen(began.files, left.files) for began, left in pairs),
        )
        if gone.bytes <= self._next_count.bytes and gone.files <= self._next_count.files:
            return ""
        self._next_count = Amount(
            bytes=max(self._next_count.bytes, gone.bytes + _STEP * MOST_BYTES),
            files=max(self._next_count.files, gone.files + _STEP * MOST_FILES),
        )
        return _excess(disk_use(self._own()))

    def _own(self) -> Iterator[str]:
        """The places where the agent may have written."""
        yield from map(str, self._added)
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name == self._proposals or entry.name not in self._initial:
                    yield entry.path


def free(place: Path) -> Amount:
    """The free space on the disk of a folder."""
    found = os.statvfs(place)
    files = found.f_favail if found.f_files else math.inf
    return Amount(bytes=found.f_bavail * found.f_frsize, files=files)


def disk_use(places: Iterable[str]) -> Amount:
    """The size of some files and folders, counted until it exceeds the quota.

    Links are not followed. A folder that cannot be read counts as infinite, because an agent
    could hide files in it.
    """
    size = number = 0
    try:
        waiting = list(places)
        while waiting and size <= MOST_BYTES and number + len(waiting) <= MOST_FILES:
            place = waiting.pop()
            with contextlib.suppress(
                FileNotFoundError, NotADirectoryError
            ):  # the agent is still writing
                found = os.lstat(place)
                number, size = number + 1, size + _BLOCK * found.st_blocks
                if stat.S_ISDIR(found.st_mode):
                    with os.scandir(place) as entries:
                        waiting += [entry.path for entry in islice(entries, MOST_FILES)]
    except OSError:
        return Amount(bytes=math.inf, files=math.inf)
    return Amount(bytes=size, files=number + len(waiting))


def _scarce(began: Amount, left: Amount) -> bool:
    least_bytes = min(LEAST_BYTES, began.bytes / 2)
    least_files = min(LEAST_FILES, began.files / 2)
    return left.bytes < least_bytes or left.files < least_files


def _fallen(began: float, left: float) -> float:
    return max(0.0, began - left) if math.isfinite(began) else 0.0


def _excess(found: Amount) -> str:
    if found.bytes > MOST_BYTES:
        return f"it wrote more than {MOST_BYTES / GIGABYTE:g} GB"
    return f"it created more than {MOST_FILES:,} files" if found.files > MOST_FILES else ""


class Recording:
    """Keeps the output of an agent, without its secrets and within limits.

    Args:
        log: A file to follow while the agent works; it ends after `MOST_LOG` bytes.
        line: Receives every line of standard output.

    The transcript is the whole output, or its beginning and its end, half of `MOST_TRANSCRIPT`
    each.
    """

    def __init__(self, log: Path, *, line: Callable[[str], None]) -> None:
        self._log = log.open("wb", buffering=0)
        self._left = MOST_LOG
        self._head, self._tail, self._size = bytearray(), bytearray(), 0
        self._line = line
        self.out = Lines(self._printed)
        self.err = Lines(self._keep)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.out.close()
        self.err.close()
        self._log.close()

    def hide(self, secrets: Sequence[str]) -> None:
        """Replace these texts in everything that follows."""
        self.out.hide(secrets)
        self.err.hide(secrets)

    @property
    def transcript(self) -> str:
        """The output, without its middle part if it is too long."""
        left_out = self._size - len(self._head) - len(self._tail)
        gap = f"\n[... {left_out:,} bytes left out ...]\n" if left_out else ""
        head, tail = bytes(self._head), bytes(self._tail)
        if not left_out:
            return (head + tail).decode("utf-8", "replace")
        return f"{head.decode('utf-8', 'replace')}{gap}{tail.decode('utf-8', 'replace')}"

    def _printed(self, data: bytes) -> None:
        self._keep(data)
        for line in data.splitlines():
            self._line(line.decode("utf-8", "replace"))

    def _keep(self, data: bytes) -> None:
        data = visible(data.decode("utf-8", "replace")).encode()  # the log is followed with tail
        half = MOST_TRANSCRIPT // 2
        self._size += len(data)
        cut = half - len(self._head)
        self._head += data[:cut]
        self._tail += data[cut:]
        del self._tail[: max(0, len(self._tail) - half)]
        try:
            self._write(data)
        except OSError:  # such as a full disk: the agent's work is worth more than its log
            self._left = 0

    def _write(self, data: bytes) -> None:
        if self._left > 0:
            self._log.write(data[: self._left])
            self._left -= len(data)
            if self._left <= 0:
                self._log.write(b"\n[the log ends here; the agent continues]\n")


class Lines:
    r"""Splits a stream into whole lines without secrets; a very long line comes in pieces.

    >>> lines = Lines(print)
    >>> lines.hide(["sk-12345678"])
    >>> lines.feed(b"key sk-123")
    >>> lines.feed(b"45678 used\nnext")
    b'key [hidden] used\n'
    """

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take, self._held = take, bytearray()
        self.hide(())

    def hide(self, secrets: Sequence[str]) -> None:
        """Replace these texts in everything that follows."""
        self._redaction = Redaction(secrets)

    def feed(self, data: bytes) -> None:
        """Add bytes that were read."""
        cut = data.rfind(b"\n") + 1
        if cut:
            cut += len(self._held)
        self._held += data
        if not cut and len(self._held) > _MOST_LINE:
            self._held = bytearray(self._redaction.data(bytes(self._held)))
            cut = len(self._held) - self._redaction.longest
        if cut:
            self._pass_on(cut)

    def close(self) -> None:
        """Pass on the rest."""
        self._pass_on(len(self._held))

    def _pass_on(self, cut: int) -> None:
        data = self._redaction.data(bytes(self._held[:cut]))
        del self._held[:cut]
        if data:
            self._take(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How and when an agent ended.

    Args:
        code: Its exit status.
        late: Whether it was stopped at its time limit.
        seconds: How long it worked.
        over_quota: Why it was stopped by the `DiskQuota`; empty if it was not.
    """

    code: int
    late: bool
    seconds: float
    over_quota: str = ""

    @property
    def well(self) -> bool:
        """Whether it ended by itself and without an error."""
        return self.code == 0 and not self.stopped

    @property
    def stopped(self) -> bool:
        """Whether it was stopped before it finished."""
        return self.late or bool(self.over_quota)


async def work(
    launch: Launch, stdin: str, recording: Recording, seconds: float, quota: DiskQuota
) -> Ended:
    """Run an agent until it ends, or exceeds its time limit or its disk quota.

    Its processes end and its scratch folder is removed, whatever fails.

    The thread of the event loop starts it, because bwrap ends with the thread that started it.
    """
    try:
        process = start(launch, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    except BaseException:
        launch.close()  # the copies of its credentials
        raise
    try:
        text = stdin.encode(errors="replace")
        running = _Running(launch, process, text, recording, seconds, quota)
    except BaseException:
        end(launch, process)
        raise
    try:
        return await in_thread(running.serve)
    finally:
        await asyncio.shield(in_thread(running.close))


class _Stream(NamedTuple):
    """An output stream of an agent, split into lines."""

    fd: int
    lines: Lines

    def read(self) -> bool:
        try:
            data = os.read(self.fd, _CHUNK)
        except BlockingIOError:
            return True
        self.lines.feed(data)
        return bool(data)


class _Running:
    """The pipes of a running agent, served until it has ended."""

    def __init__(
        self,
        launch: Launch,
        process: subprocess.Popen[bytes],
        stdin: bytes,
        recording: Recording,
        seconds: float,
        quota: DiskQuota,
    ) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.over = threading.Event()
        self._launch, self._process, self._seconds = launch, process, seconds
        self._quota = quota
        if launch.scratch is not None:
            quota.add(launch.scratch)
        out = _Stream(process.stdout.fileno(), recording.out)
        err = _Stream(process.stderr.fileno(), recording.err)
        self._pipes = Pipes(process, stdin, (out, err))

    def serve(self) -> Ended:
        """Serve the pipes until the agent ends or must be stopped."""
        try:
            return self._serve()
        finally:
            self.over.set()

    def close(self) -> None:
        """End all its processes, then remove its scratch folder.

        A folder that takes long to delete is deleted in the background, so that no candidate is
        lost to a time limit.
        """
        try:
            self._kill()
            self.over.wait(3 * _LONGEST_REST)  # another thread reads the pipes until then
            end(replace(self._launch, scratch=None), self._process)
        finally:
            removing = threading.Thread(target=self._launch.close, daemon=True)
            removing.start()
            removing.join(_LONGEST_REST)

    def _kill(self) -> None:
        if self._process.poll() is None or not self._launch.namespace:
            kill_all(self._launch, self._process.pid)

    def _serve(self) -> Ended:
        began = time.monotonic()
        late, over_quota = False, ""
        while self._process.poll() is None and not (late or over_quota):
            left = began + self._seconds - time.monotonic()
            late, over_quota = left <= 0, self._quota.exceeded()
            self._pipes.wait(max(0.0, min(left, _LOOK_SECONDS)))
        self._kill()  # processes it left may hold the pipes open
        rest = time.monotonic() + _LONGEST_REST
        while self._pipes.open and time.monotonic() < rest:
            self._pipes.wait(_LOOK_SECONDS)
        try:
            code = self._process.wait(timeout=_LONGEST_REST)
        except subprocess.TimeoutExpired:
            code = -signal.SIGKILL  # the kernel has not ended it yet
        seconds = time.monotonic() - began
        return Ended(code=code, late=late, over_quota=over_quota, seconds=seconds)
