"""Running a program in a sandbox from start to end."""

import os
import select
import subprocess
import time
from dataclasses import dataclass

from coevolve.executors.isolation.launch import HarnessFault, Launch, Limits
from coevolve.executors.isolation.sandbox import Output, Watch, end, exit_fault, start

_CPU_SIGNAL = 24


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


def execute(launch: Launch, limits: Limits, stdin: bytes = b"") -> Executed:
    """Run a program until it ends or exceeds a limit, whether or not it reads its input."""
    process = start(launch, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        return _Execution(launch, process, limits, stdin).finish()
    finally:
        end(launch, process)


class _Execution:
    """The pipes of a running program, served until it has ended."""

    def __init__(
        self, launch: Launch, process: subprocess.Popen[bytes], limits: Limits, stdin: bytes
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process, self._limits = process, limits
        self._watch = Watch(launch, process.pid, limits)
        self._watch.restart()
        self._stdin, self._unsent = process.stdin, memoryview(stdin)
        os.set_blocking(self._stdin.fileno(), False)
        kept = limits.output_bytes
        self._stdout = Output(process.stdout.fileno(), limits, kept)
        self._stderr = Output(process.stderr.fileno(), limits, kept)
        self._streams = {output.fd: output for output in (self._stdout, self._stderr)}
        self._poll = select.poll()
        for fd in self._streams:
            self._poll.register(fd, select.POLLIN)
        self._poll.register(self._stdin.fileno(), select.POLLOUT)

    def finish(self) -> Executed:
        """Serve the pipes until the program ends, within its time."""
        began = time.monotonic()
        deadline = began + self._limits.seconds
        while self._process.poll() is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise HarnessFault("time-limit", f"ran longer than {self._limits.seconds:g} s")
            self._wait(min(left, self._watch.wait_seconds, 0.01 if not self._streams else left))
        for output in (self._stdout, self._stderr):
            output.read_all()
        code = self._process.returncode
        if code in (-_CPU_SIGNAL, 128 + _CPU_SIGNAL):
            raise exit_fault(code, self._limits)
        return Executed(
            stdout=self._stdout.data,
            stderr=self._stderr.data,
            code=code,
            seconds=time.monotonic() - began,
        )

    def _wait(self, seconds: float) -> None:
        for fd, _ in self._poll.poll(seconds * 1000):
            if fd in self._streams:
                if not self._streams[fd].read():
                    self._poll.unregister(fd)
                    del self._streams[fd]
            else:
                self._feed()
        if self._watch.wait_seconds == 0:
            fault = self._watch.look()
            if fault is not None:
                raise fault

    def _feed(self) -> None:
        fd = self._stdin.fileno()
        try:
            self._unsent = self._unsent[os.write(fd, self._unsent[: 1 << 16]) :]
        except BrokenPipeError:
            self._unsent = memoryview(b"")
        if not self._unsent:
            self._poll.unregister(fd)
            self._stdin.close()
