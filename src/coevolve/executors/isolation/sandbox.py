"""A running sandbox: its process, its pipes and its output."""

import contextlib
import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from coevolve.executors.isolation.framing import candidate_inbox, packed
from coevolve.executors.isolation.interruption import CallInterrupted
from coevolve.executors.isolation.launch import (
    MEGABYTE,
    HarnessFault,
    Launch,
    Limits,
    SandboxError,
)
from coevolve.executors.isolation.process_table import LeftoverCheck, kill_all, send_signal
from coevolve.executors.isolation.resource_watch import Watch, WatchThread
from coevolve.search.trials import Blame

KEPT = 1 << 16
_FROM_OUTSIDE = ("SIGKILL", "SIGTERM")
"""Signals of a kernel that is short of memory, or of an operator."""
_CHUNK = 1 << 16
_LONGEST_TIDYING = 1.0
_BETWEEN_POLLS = 0.02
_LONGEST_END = 10.0
"""Seconds to wait for a process that has closed its pipe; a loaded machine may need them."""
MOST_UNREAD = 64 * MEGABYTE
"""Bytes of replies that a candidate may leave unread while it sends further requests."""


class Output:
    """The output stream of a candidate, read without blocking; only its end is kept.

    Args:
        fd: The descriptor to read; it is made non-blocking.
        limits: `output_mb` applies from one `restart` to the next.
        kept: How many bytes to keep.
    """

    def __init__(self, fd: int, limits: Limits, kept: int = KEPT) -> None:
        self.fd, self._limits, self._kept = fd, limits, kept
        self._tail, self._count = bytearray(), 0
        os.set_blocking(fd, False)

    def restart(self) -> None:
        """Forget what was printed."""
        if self._count:
            self._tail, self._count = bytearray(), 0

    def read(self) -> bool:
        """Read once; False at the end of the stream."""
        try:
            data = os.read(self.fd, _CHUNK)
        except BlockingIOError:
            return True
        self._tail += data
        self._count += len(data)
        if self._count > self._limits.output_bytes:
            raise HarnessFault("output-limit", f"printed more than {self._limits.output_mb:g} MB")
        if len(self._tail) > 2 * self._kept:
            del self._tail[: -self._kept]
        return bool(data)

    def read_all(self) -> None:
        """Read everything that is available now."""
        before = -1
        while before != self._count:
            before = self._count
            self.read()

    @property
    def data(self) -> bytes:
        """The end of the output."""
        return bytes(self._tail[-self._kept :])

    @property
    def text(self) -> str:
        """The end of the output, as text."""
        return self.data.decode("utf-8", "replace")


def start(launch: Launch, *, stdin: int, stderr: int) -> subprocess.Popen[bytes]:
    """Start a program in its own session, so that Ctrl-C here does not reach it."""
    try:
        return subprocess.Popen(
            launch.argv,
            env=dict(launch.env),
            cwd=launch.cwd,
            pass_fds=launch.fds,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        launch.close()
        raise SandboxError(f"the sandbox cannot be started: {error}.") from error
    finally:
        launch.started()


def end(launch: Launch, process: subprocess.Popen[bytes]) -> None:
    """End all processes of a program and remove what they left."""
    if process.poll() is None or not launch.namespace:
        kill_all(launch, process.pid)
    try:
        process.wait(timeout=_LONGEST_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    launch.close()


def exit_fault(code: int, limits: Limits) -> HarnessFault:
    """The fault of a program that ended with this status; bwrap adds 128 to a signal.

    A signal that this machine or its operator may have sent is doubtful.

    >>> exit_fault(-11, Limits()).reason
    'its process was ended by SIGSEGV'
    """
    number = -code if code < 0 else code - 128
    try:
        name = signal.Signals(number).name
    except ValueError:
        return HarnessFault("exit", f"its process ended with exit status {code}")
    if name == "SIGXCPU":
        return HarnessFault("cpu-limit", f"used more than {limits.cpu:g} s of CPU time")
    if name in _FROM_OUTSIDE:
        reason = f"its process was ended by {name}, from outside or by itself"
        return HarnessFault("killed", reason, blame=Blame.DOUBTFUL)
    return HarnessFault("killed", f"its process was ended by {name}")


class Waker:
    """Wakes a thread that waits in `poll`; any thread may do so, even after `close`."""

    def __init__(self) -> None:
        self.fd, self._writer = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._writer, False)
        self._lock = threading.Lock()
        self._open = True

    def wake(self) -> None:
        """Make the descriptor readable."""
        with self._lock, contextlib.suppress(BlockingIOError):  # if full, it is readable anyway
            if self._open:
                os.write(self._writer, b".")

    def clear(self) -> None:
        """Make it unreadable again."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.fd, _CHUNK)

    def close(self) -> None:
        """Close the descriptors."""
        with self._lock:
            self._open = False
            os.close(self.fd)
            os.close(self._writer)


class Sandbox:
    """A started program with a pipe each way and one for its output.

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
        self._inbox = candidate_inbox(limits.answer_bytes)
        self._outbox: deque[memoryview] = deque()
        self._unread_trial = False
        self._waker = Waker()
        self._interrupted = False
        self._poll, self._messages = select.poll(), select.poll()
        self._poll.register(self._from, select.POLLIN)
        self._messages.register(self._from, select.POLLIN)
        self._poll.register(self.output.fd, select.POLLIN)
        self._poll.register(self._waker.fd, select.POLLIN)
        self._watch = Watch(self._launch, self._process.pid, limits)
        self._watcher = WatchThread(self._watch, self._kill)
        self._leftovers: LeftoverCheck | None = None
        self._stopped: list[int] = []
        self.begin()

    @property
    def usable(self) -> bool:
        """Whether it can still be used: the kernel ends it with the thread that started it."""
        return self._thread.is_alive()

    @property
    def unread(self) -> int:
        """How many bytes that were sent are not in the pipe of the program yet."""
        return sum(map(len, self._outbox))

    def wake(self) -> None:
        """Make `receive` look at `until` again; any thread may call this."""
        self._waker.wake()

    def interrupt(self) -> None:
        """Kill all processes and make `receive` fail; any thread may do this before `close`."""
        self._interrupted = True
        self._waker.wake()
        self._kill()

    def _kill(self) -> None:
        if self._process.returncode is None or not self._launch.namespace:  # not waited for yet
            kill_all(self._launch, self._process.pid)

    def begin(self) -> None:
        """Begin a call: forget the output, restart the CPU clock.

        Raises:
            HarnessFault: The processes have exceeded a limit since the last call.
        """
        fault = self._watcher.stop()
        if fault is not None:
            raise fault
        self.output.restart()
        self._watch.restart()

    def end_call(self) -> None:
        """Watch the processes until the next call, or until the trial ends."""
        self._watcher.start()

    def send(self, message: object) -> None:
        """Send a message; what the pipe cannot take now is sent later."""
        self._outbox.append(memoryview(packed(message)))
        self._flush()

    def receive(
        self,
        deadline: float,
        late: Callable[[], Exception],
        until: Callable[[], bool] = lambda: False,
    ) -> Any:
        """The next message; raises `late()` after the deadline.

        Returns None as soon as `until` is true, which is looked at after `wake`.
        """
        while not until():
            if self._interrupted:
                raise CallInterrupted("the call was interrupted.")
            message = self._inbox.take()
            if message is not None:
                return message
            now = time.monotonic()
            if now >= deadline:
                raise late()
            self._wait(min(deadline - now, self._watch.wait_seconds))
        return None

    def has_message(self) -> bool:
        """Whether a message has arrived that was not received yet."""
        if not self._inbox.complete and self._readable():
            self._inbox.feed(os.read(self._from, _CHUNK))
        return self._inbox.complete

    def expect_trials(self) -> None:
        """Note the processes of the sandbox, before it forks one for the first trial."""
        self._leftovers = LeftoverCheck(self._launch, self._process.pid)

    def stop_trial(self) -> None:
        """Kill the process of the trial, without waiting for its end."""
        if self._leftovers is not None:
            self._unread_trial = bool(self._outbox) or _unread(self._to)
            self._stopped = self._leftovers.trial_processes()
            for pid in self._stopped:
                send_signal(pid, signal.SIGKILL)

    def end_trial(self) -> bool:
        """End the trial; False if the sandbox cannot serve another one.

        The candidate may have changed the runner, so that only what is seen from outside counts,
        as far as it can be seen.
        """
        if self._watcher.stop() is not None or self._leftovers is None:
            return False
        if not self._stopped:
            self.stop_trial()
        if self._unread_trial:
            return False  # the runner would take the rest for its next call
        stopped, self._stopped = self._stopped, []
        if not stopped and not self.has_message():
            return False  # the runner could not fork
        late = HarnessFault("protocol", "its process did not end")
        deadline = time.monotonic() + _LONGEST_TIDYING
        try:
            self.receive(deadline, lambda: late)
            if not (self._leftovers.alone() and self._leftovers.empty()):
                self.send({"tidy": True})
                message = self.receive(deadline, lambda: late)
                if message.get("clean") is not True or not self._leftovers.alone():
                    return False
        except (HarnessFault, SandboxError):
            return False
        return not (self._inbox.waiting or self._readable())

    def check(self) -> None:
        """Raise the fault of a limit that is exceeded now."""
        fault = self._watch.look()
        if fault is not None:
            raise fault

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Watch the processes while this thread does something else."""
        self._watcher.start()
        try:
            yield
        finally:
            fault = self._watcher.stop()
        if fault is not None:
            raise fault

    def close(self) -> None:
        """End all processes and remove what they left."""
        self._watcher.close()
        end(self._launch, self._process)
        os.close(self._to)
        os.close(self._from)
        self._waker.close()
        if self._leftovers is not None:
            self._leftovers.close()

    def _wait(self, seconds: float) -> None:
        if self._watch.wait_seconds == 0:
            # Another process of the candidate may keep the pipe open.
            if self._process.poll() is not None and not self._readable():
                raise self._ended()
            self.check()
        for fd, _ in self._poll.poll(seconds * 1000):
            if fd == self._from:
                self._read()
            elif fd == self._to:
                self._flush()
            elif fd == self._waker.fd:
                self._waker.clear()
            elif not self.output.read():
                self._poll.unregister(fd)

    def _readable(self) -> bool:
        return bool(self._messages.poll(0))

    def _read(self) -> None:
        data = os.read(self._from, _CHUNK)
        if not data:
            raise self._ended()
        self._inbox.feed(data)

    def _flush(self) -> None:
        try:
            while self._outbox:
                left = self._outbox[0]
                left = self._outbox[0] = left[os.write(self._to, left) :]
                if not left:
                    self._outbox.popleft()
        except BlockingIOError:
            self._poll.register(self._to, select.POLLOUT)
            return
        except BrokenPipeError:
            self._outbox.clear()  # the other pipe reports the end
        with contextlib.suppress(KeyError):
            self._poll.unregister(self._to)

    def _ended(self) -> Exception:
        """Why the program ended or closed its pipe."""
        deadline = time.monotonic() + _LONGEST_END
        while (code := self._process.poll()) is None:
            if time.monotonic() > deadline:
                return HarnessFault("protocol", "closed the pipe to its host")
            self.check()
            time.sleep(_BETWEEN_POLLS)
        self.output.read_all()
        if not self._thread.is_alive():
            return SandboxError("the sandbox ended together with the thread that started it.")
        return self._launch.memory_fault(self._limits) or exit_fault(code, self._limits)


def _unread(pipe: int) -> bool:
    """Whether a pipe contains bytes that were not read."""
    (count,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))
    return bool(count)
