"""An agent at work: started, followed, ended with all its processes."""

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, replace

from coevolve.executors.isolation.base import Launch
from coevolve.executors.isolation.processes import kill_all
from coevolve.executors.isolation.starting import end, start
from coevolve.proposers.command.recording import Recording
from coevolve.proposers.command.room import Room
from coevolve.proposers.threads import in_thread

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
