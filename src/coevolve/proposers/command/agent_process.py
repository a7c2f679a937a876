"""An agent's process: started, recorded, limited in disk use, ended."""

import asyncio
import contextlib
import math
import os
import select
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
from typing import Self

from coevolve.executors.isolation.launch import Launch
from coevolve.executors.isolation.process_table import kill_all
from coevolve.executors.isolation.sandbox import end, start
from coevolve.proposers.base import in_thread
from coevolve.proposers.workspace import Workspace

GIGABYTE = 10**9
MOST_BYTES = 2 * GIGABYTE
MOST_FILES = 500_000
"""Both for one proposal; files and folders count alike."""
LEAST_BYTES = GIGABYTE
LEAST_FILES = 20_000
"""What stays free on the disk, or half of what was free if that is less."""
_STEP = 0.25
_BLOCK = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Bytes and files; infinitely many files where a file system does not count them."""

    bytes: float
    files: float


class Room:
    """Watches what an agent takes of the disks of its workspace and of its private home.

    A disk says at once how much is free. Only when that has fallen by more than an agent may
    take are its own files counted, for others write to the same disk.

    What lies in the workspace at first, but for proposals, does not count.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._folder, self._proposals = workspace.folder, workspace.proposals.name
        self._laid_out = {path.name for path in workspace.folder.iterdir()}
        self._added: list[Path] = []
        self._disks: dict[int, tuple[Path, Amount]] = {}
        self._looks = Amount(bytes=MOST_BYTES, files=MOST_FILES)
        self._watch(workspace.folder)

    def add(self, place: Path) -> None:
        """Watch another folder, too, of which all counts."""
        self._added.append(place)
        self._watch(place)

    def _watch(self, place: Path) -> None:
        self._disks.setdefault(place.stat().st_dev, (place, free(place)))

    def exceeded(self) -> str:
        """Why an agent has no more room; empty while it has."""
        try:
            pairs = [(began, free(place)) for place, began in self._disks.values()]
        except FileNotFoundError:  # an agent that is trusted may have removed its folder
            return ""
        if any(_scarce(began, left) for began, left in pairs):
            return "the disk is nearly full"
        gone = Amount(
            bytes=sum(max(0.0, began.bytes - left.bytes) for began, left in pairs),
            files=sum(_fallen(began.files, left.files) for began, left in pairs),
        )
        if gone.bytes <= self._looks.bytes and gone.files <= self._looks.files:
            return ""
        self._looks = Amount(
            bytes=max(self._looks.bytes, gone.bytes + _STEP * MOST_BYTES),
            files=max(self._looks.files, gone.files + _STEP * MOST_FILES),
        )
        return _too_much(taken(self._own()))

    def _own(self) -> Iterator[str]:
        """Where the agent can have written."""
        yield from map(str, self._added)
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name == self._proposals or entry.name not in self._laid_out:
                    yield entry.path


def free(place: Path) -> Amount:
    """What is free on the disk of a folder."""
    found = os.statvfs(place)
    files = found.f_favail if found.f_files else math.inf
    return Amount(bytes=found.f_bavail * found.f_frsize, files=files)


def taken(places: Iterable[str]) -> Amount:
    """What lies at some places, counted until it is too much.

    Links are not followed. What cannot be looked into counts as too much: somebody hides it.
    """
    size = number = 0
    try:
        waiting = list(places)
        while waiting and size <= MOST_BYTES and number + len(waiting) <= MOST_FILES:
            place = waiting.pop()
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # it is at work
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


def _too_much(found: Amount) -> str:
    if found.bytes > MOST_BYTES:
        return f"it had written more than {MOST_BYTES / GIGABYTE:g} GB"
    return f"it had made more than {MOST_FILES:,} files" if found.files > MOST_FILES else ""


MEGABYTE = 1 << 20
MOST_LOG = 32 * MEGABYTE
MOST_TRANSCRIPT = MOST_LOG
_MOST_LINE = 4 * MEGABYTE
_HIDDEN = b"[hidden]"


class Recording:
    """Keeps what an agent prints, without its secrets and in bounds.

    Args:
        log: A file to follow while the agent is at work; it ends after `MOST_LOG`.
        line: Gets every line of standard output.

    Its transcript is everything, or its beginning and its end, half of `MOST_TRANSCRIPT` each.
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
        """Blank these texts out everywhere, from now on."""
        self.out.hide(secrets)
        self.err.hide(secrets)

    @property
    def transcript(self) -> str:
        """All that was printed, with the middle left out where it is too much."""
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
        half = MOST_TRANSCRIPT // 2
        self._size += len(data)
        room = half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[: max(0, len(self._tail) - half)]
        try:
            self._write(data)
        except OSError:  # a full disk, say: the work of the agent is worth more than its log
            self._left = 0

    def _write(self, data: bytes) -> None:
        if self._left > 0:
            self._log.write(data[: self._left])
            self._left -= len(data)
            if self._left <= 0:
                self._log.write(b"\n[the log ends here; the agent goes on]\n")


class Lines:
    r"""Whole lines of a stream, blanked of secrets; a line without end comes in pieces.

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
        """Blank these texts out of what is given away from now on."""
        self._secrets = sorted({s.encode() for s in secrets if s}, key=len, reverse=True)
        self._longest = max(map(len, self._secrets), default=1)

    def feed(self, data: bytes) -> None:
        """Add what was read."""
        cut = data.rfind(b"\n") + 1
        if cut:
            cut += len(self._held)
        self._held += data
        if not cut and len(self._held) > _MOST_LINE:
            self._held = bytearray(self._blanked(bytes(self._held)))
            cut = len(self._held) - self._longest
        if cut:
            self._give(cut)

    def close(self) -> None:
        """Give away the rest."""
        self._give(len(self._held))

    def _give(self, cut: int) -> None:
        data = self._blanked(bytes(self._held[:cut]))
        del self._held[:cut]
        if data:
            self._take(data)

    def _blanked(self, data: bytes) -> bytes:
        for secret in self._secrets:
            data = data.replace(secret, _HIDDEN)
        return data


_CHUNK = 1 << 16
_LONGEST_REST = 5.0
_LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the work of an agent ended, after how long.

    Args:
        code: Its exit code.
        late: Whether its time was over.
        seconds: How long it worked.
        full: Why it had no more room on the disk, if it was stopped for that; see `Room`.
    """

    code: int
    late: bool
    seconds: float
    full: str = ""

    @property
    def well(self) -> bool:
        """Whether it ended by itself and without complaint."""
        return self.code == 0 and not self.stopped

    @property
    def stopped(self) -> bool:
        """Whether it was ended before it was done."""
        return self.late or bool(self.full)


async def work(
    launch: Launch, stdin: str, recording: Recording, seconds: float, room: Room
) -> Ended:
    """Run an agent to its end, or to that of its time or of its room on the disk.

    None of its processes is left, nor what it was launched with, whatever fails.

    It is started by the thread of the event loop, since bwrap ends with the thread that
    started it.
    """
    try:
        process = start(launch, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    except BaseException:
        launch.close()  # the copies of its credentials
        raise
    try:
        text = stdin.encode(errors="replace")
        running = _Running(launch, process, text, recording, seconds, room)
    except BaseException:
        end(launch, process)
        raise
    try:
        return await in_thread(running.serve)
    finally:
        await asyncio.shield(in_thread(running.close))


class _Running:
    """The pipes of a running agent, served until it has ended."""

    def __init__(
        self,
        launch: Launch,
        process: subprocess.Popen[bytes],
        stdin: bytes,
        recording: Recording,
        seconds: float,
        room: Room,
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.over = threading.Event()
        self._launch, self._process, self._seconds = launch, process, seconds
        self._room = room
        if launch.scratch is not None:
            room.add(launch.scratch)
        self._stdin, self._unsent = process.stdin, memoryview(stdin)
        self._lines = {
            process.stdout.fileno(): recording.out,
            process.stderr.fileno(): recording.err,
        }
        self._poll = select.poll()
        self._poll.register(self._stdin.fileno(), select.POLLOUT)
        os.set_blocking(self._stdin.fileno(), False)
        for fd in self._lines:
            os.set_blocking(fd, False)
            self._poll.register(fd, select.POLLIN)

    def serve(self) -> Ended:
        """Serve the pipes until the agent ends, or end it when its time is over."""
        try:
            return self._serve()
        finally:
            self.over.set()

    def close(self) -> None:
        """End all its processes, and then what they were served with.

        A home that takes long to delete is deleted beside the search, lest candidates be lost.
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
        late, full = False, ""
        while self._process.poll() is None and not (late or full):
            left = began + self._seconds - time.monotonic()
            late, full = left <= 0, self._room.exceeded()
            self._wait(max(0.0, min(left, _LOOK_SECONDS)))
        self._kill()  # what it left behind may hold the pipes
        rest = time.monotonic() + _LONGEST_REST
        while self._lines and time.monotonic() < rest:
            self._wait(_LOOK_SECONDS)
        try:
            code = self._process.wait(timeout=_LONGEST_REST)
        except subprocess.TimeoutExpired:
            code = -signal.SIGKILL  # the kernel has not come to it yet
        return Ended(code=code, late=late, full=full, seconds=time.monotonic() - began)

    def _wait(self, seconds: float) -> None:
        """Serve what is ready; a process that ends closes its pipes, which wakes this up."""
        for fd, _ in self._poll.poll(seconds * 1000):
            if fd in self._lines:
                self._read(fd)
            else:
                self._feed(fd)

    def _read(self, fd: int) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(fd, _CHUNK)
            self._lines[fd].feed(data)
            if not data:
                self._poll.unregister(fd)
                del self._lines[fd]

    def _feed(self, fd: int) -> None:
        try:
            self._unsent = self._unsent[os.write(fd, self._unsent[:_CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._unsent = memoryview(b"")
        if not self._unsent:
            self._poll.unregister(fd)
            self._stdin.close()
