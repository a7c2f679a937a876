"""A running sandbox: its process, its pipes, and waiting for it without ever being stuck."""

import contextlib
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from coevolve.executors.isolation.base import Launch
from coevolve.executors.isolation.faults import HarnessFault, SandboxError
from coevolve.executors.isolation.framing import Inbox, packed
from coevolve.executors.isolation.limits import Limits
from coevolve.executors.isolation.output import Output
from coevolve.executors.isolation.processes import kill_all
from coevolve.executors.isolation.starting import end, exit_fault, start
from coevolve.executors.isolation.watch import EVERY_SECONDS, Watch

_CHUNK = 1 << 16


class Sandbox:
    """One started program with a pipe each way and one for what it prints.

    Args:
        launch: How to start the program, given the descriptors it reads and writes messages on.
        limits: What it may use.
    """

    def __init__(self, launch: Callable[[int, int], Launch], limits: Limits) -> None:
        self._limits = limits
        theirs, self._to = os.pipe()
        self._from, their_end = os.pipe()
        try:
            self._launch = launch(theirs, their_end)
            self._process = start(self._launch, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        except BaseException:
            os.close(self._to)
            os.close(self._from)
            raise
        finally:
            os.close(theirs)
            os.close(their_end)
        self._thread = threading.current_thread()
        assert self._process.stdout is not None
        self.output = Output(self._process.stdout.fileno(), limits)
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self._inbox, self._outbox = Inbox(limits.answer_bytes), memoryview(b"")
        self._poll = select.poll()
        self._poll.register(self._from, select.POLLIN)
        self._poll.register(self.output.fd, select.POLLIN)
        self._watch = Watch(self._launch, self._process.pid, limits)
        self.begin()

    @property
    def usable(self) -> bool:
        """Whether it will go on: the kernel ends it with the thread that started it."""
        return self._thread.is_alive()

    @property
    def unread(self) -> bool:
        """Whether the program has not yet taken what was sent."""
        return bool(self._outbox)

    def begin(self) -> None:
        """Begin a call: forget what was printed, count CPU time anew."""
        self.output.restart()
        self._watch.restart()

    def send(self, message: object) -> None:
        """Send a message, later as far as the pipe is full."""
        data = packed(message)
        self._outbox = memoryview(bytes(self._outbox) + data if self._outbox else data)
        self._flush()

    def receive(self, deadline: float, late: Callable[[], Exception]) -> Any:
        """The next message, or the error that it did not come in time."""
        while True:
            message = self._inbox.take()
            if message is not None:
                return message
            now = time.monotonic()
            if now >= deadline:
                raise late()
            self._wait(min(deadline - now, self._watch.wait_seconds))

    def check(self) -> None:
        """Raise the fault of a limit that is passed now."""
        fault = self._watch.look()
        if fault is not None:
            raise fault

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Watch the processes while this thread is busy with something else."""
        over = threading.Event()
        faults: list[HarnessFault] = []

        def watch() -> None:
            while not over.wait(EVERY_SECONDS):
                fault = self._watch.look()
                if fault is not None:
                    faults.append(fault)
                    kill_all(self._launch, self._process.pid)
                    return

        thread = threading.Thread(target=watch, name="coevolve-watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        if faults:
            raise faults[0]

    def close(self) -> None:
        """End all processes and remove what they left."""
        end(self._launch, self._process)
        os.close(self._to)
        os.close(self._from)

    def _wait(self, seconds: float) -> None:
        for fd, _ in self._poll.poll(seconds * 1000):
            if fd == self._from:
                self._read()
            elif fd == self._to:
                self._flush()
            elif not self.output.read():
                self._poll.unregister(fd)
        if self._watch.wait_seconds == 0:
            if self._process.poll() is not None and not self._readable():
                raise self._ended()
            self.check()

    def _readable(self) -> bool:
        poll = select.poll()
        poll.register(self._from, select.POLLIN)
        return bool(poll.poll(0))

    def _read(self) -> None:
        data = os.read(self._from, _CHUNK)
        if not data:
            raise self._ended()
        self._inbox.add(data)

    def _flush(self) -> None:
        try:
            while self._outbox:
                self._outbox = self._outbox[os.write(self._to, self._outbox) :]
        except BlockingIOError:
            self._poll.register(self._to, select.POLLOUT)
            return
        except BrokenPipeError:
            self._outbox = memoryview(b"")  # its end shows on the other pipe
        with contextlib.suppress(KeyError):
            self._poll.unregister(self._to)

    def _ended(self) -> Exception:
        """Why the program is gone or has closed its pipe."""
        try:
            code = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            return HarnessFault("protocol", "closed the pipe to its host")
        self.output.read_all()
        if not self._thread.is_alive():
            return SandboxError("the thread that started the sandbox has ended, and it with it.")
        return exit_fault(code, self._limits)
