"""Running a program in a sandbox from start to end."""

import os
import select
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from coevolve.executors.isolation.interruption import Interruption
from coevolve.executors.isolation.launch import HarnessFault, Launch, Limits
from coevolve.executors.isolation.resource_watch import Watch
from coevolve.executors.isolation.sandbox import Output, end, exit_fault, start
from coevolve.search.trials import Blame

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """The output of a program, its exit status, and how long it took.

    >>> Executed(stdout=b"0.5", stderr=b"", code=0, seconds=0.1).code
    0
    """

    stdout: bytes
    stderr: bytes
    code: int
    seconds: float


class Stream(Protocol):
    """An output stream that is read without blocking."""

    @property
    def fd(self) -> int: ...

    def read(self) -> bool:
        """Read once; False at the end of the stream."""
        ...


class Pipes:
    """The standard streams of a running program, served without blocking.

    Args:
        process: The program.
        stdin: Its input, which it need not read.
        streams: Its output streams.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], stdin: bytes, streams: Iterable[Stream]
    ) -> None:
        assert process.stdin is not None
        self._stdin, self._unsent = process.stdin, memoryview(stdin)
        self._streams = {stream.fd: stream for stream in streams}
        self._poll = select.poll()
        self._poll.register(self._stdin.fileno(), select.POLLOUT)
        for fd in self._streams:
            self._poll.register(fd, select.POLLIN)
        for fd in (self._stdin.fileno(), *self._streams):
            os.set_blocking(fd, False)

    @property
    def open(self) -> bool:
        """Whether an output stream is still open."""
        return bool(self._streams)

    def wait(self, seconds: float) -> None:
        """Serve the pipes that are ready; the end of the program wakes this up."""
        for fd, _ in self._poll.poll(seconds * 1000):
            if fd not in self._streams:
                self._feed(fd)
            elif not self._streams[fd].read():
                self._poll.unregister(fd)
                del self._streams[fd]

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


def execute(
    launch: Launch,
    limits: Limits,
    stdin: bytes = b"",
    interruption: Interruption | None = None,
) -> Executed:
    """Run a program until it ends, exceeds a limit or is interrupted.

    It need not read its input.
    """
    process = start(launch, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        return _finish(launch, process, limits, stdin, interruption or Interruption())
    finally:
        end(launch, process)


def _finish(
    launch: Launch,
    process: subprocess.Popen[bytes],
    limits: Limits,
    stdin: bytes,
    interruption: Interruption,
) -> Executed:
    assert process.stdout is not None
    assert process.stderr is not None
    kept = limits.output_bytes
    stdout = Output(process.stdout.fileno(), limits, kept)
    stderr = Output(process.stderr.fileno(), limits, kept)
    pipes = Pipes(process, stdin, (stdout, stderr))
    watch = Watch(launch, process.pid, limits)
    watch.restart()
    began = time.monotonic()
    while process.poll() is None:
        left = began + limits.seconds - time.monotonic()
        if left <= 0:
            raise HarnessFault("time-limit", f"ran longer than {limits.seconds:g} s")
        if interruption.is_set:
            raise interruption.error()
        pipes.wait(min(left, watch.wait_seconds, left if pipes.open else 0.01))
        fault = watch.look() if watch.wait_seconds == 0 else None
        if fault is not None:
            raise fault
    stdout.read_all()
    stderr.read_all()
    code = process.returncode
    if over := launch.memory_fault(limits):
        raise over
    fault = exit_fault(code, limits)
    if fault.kind == "cpu-limit" or fault.blame is Blame.DOUBTFUL:
        raise fault
    seconds = time.monotonic() - began
    return Executed(stdout=stdout.data, stderr=stderr.data, code=code, seconds=seconds)
