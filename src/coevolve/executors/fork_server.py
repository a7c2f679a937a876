"""A fork server: a process that builds the benchmark once and forks workers from it.

Starting Python and building the benchmark takes seconds of processor time for each worker; a fork
takes milliseconds and shares the memory. If building leaves anything that forked processes must
not share, every worker is started as a fresh process instead.

`ForkServer` and `ForkedProcess` are the engine's side; `ForkCheck` and `ForkLoop` run in the
server process (`coevolve.executors.worker`).
"""

import asyncio
import contextlib
import gc
import os
import pickle
import random
import select
import signal
import socket
import struct
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import Any, NamedTuple

import numpy as np

from coevolve.executors.channel import Message
from coevolve.executors.failures import InfrastructureError
from coevolve.executors.isolation.process_table import children
from coevolve.executors.worker_process import (
    Descriptors,
    Process,
    Services,
    ServiceUse,
    WorkerHandle,
    die_with,
    start_fresh,
)

_NUMBER = struct.Struct("=i")
"""A status pipe carries two numbers: the process id of a worker, later its exit status."""
_FORK_SECONDS = 30.0
_MOST_DRAWS = 1_000
_NO_THREADS = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # of pyarrow, which scikit-learn imports
}
"""Libraries read these when they are loaded; a process with threads cannot be forked safely."""


class ForkServer:
    """The engine's side of the fork server; the process starts with the first worker.

    Args:
        setup: The message that makes a worker ready.
        scratch: Folder for the temporary files of workers.
        services: What the benchmark may ask the engine for, also while it is built.
    """

    def __init__(self, setup: Message, *, scratch: Path, services: Services) -> None:
        # Forked workers unset these again, for the programs that the benchmark starts.
        unset = [name for name in _NO_THREADS if name not in os.environ]
        self._setup = {**setup, "unset": unset}
        self._scratch = scratch
        self._services = services
        self._process: WorkerHandle | None = None
        self._requests: socket.socket | None = None
        self._building: asyncio.Task[bool] | None = None

    async def start(self, descriptors: Descriptors, use: ServiceUse) -> Process:
        """Start a worker; the first one is charged for the services used while building."""
        if self._building is None or self._lost():
            self.kill()
            self._building = asyncio.ensure_future(self._build(use))
        building = self._building
        await asyncio.wait([building])  # other workers wait for it too, so never cancel it
        if building.cancelled():
            raise InfrastructureError(
                "building the benchmark was cancelled", kind="worker-start", shared=True
            )
        if building.result():
            return self._fork(descriptors)
        return start_fresh(descriptors, setup=self._setup, scratch=self._scratch)

    def kill(self) -> None:
        """End the process, and with it every worker forked from it."""
        building, self._building = self._building, None
        if building is not None and not building.cancel() and not building.cancelled():
            building.exception()  # marks it as retrieved, so asyncio does not warn
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        if self._process is not None:
            self._process.kill()
            self._process = None

    @property
    def ready(self) -> bool:
        """Whether the benchmark is built."""
        return self._building is not None and self._building.done()

    def _lost(self) -> bool:
        """Whether building failed, or the process has ended since."""
        building = self._building
        if building is None or not building.done():
            return False
        if building.cancelled() or building.exception() is not None:
            return True
        return building.result() and not (self._process and self._process.alive)

    async def _build(self, use: ServiceUse) -> bool:
        """Start the process and build the benchmark; whether the process may be forked."""
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            start = partial(self._start, theirs.fileno())
            process = WorkerHandle(self._setup, slot=0, services=self._services, start=start)
            self._process, process.use = process, use
            await process.make_ready()
        if not process.forks:
            self._requests.close()
            await process.close()
        return process.forks

    async def _start(self, requests: int, descriptors: Descriptors, use: ServiceUse) -> Process:
        return start_fresh(
            descriptors,
            setup=self._setup,
            scratch=self._scratch,
            fork_requests=(requests,),
            variables={name: _NO_THREADS[name] for name in self._setup["unset"]},
        )

    def _fork(self, descriptors: Descriptors) -> "ForkedProcess":
        assert self._requests is not None
        reader, writer = os.pipe()
        try:
            socket.send_fds(self._requests, [b"+"], [*descriptors, writer])
        except OSError:
            os.close(reader)
            raise _fork_failed() from None
        finally:
            os.close(writer)
        return ForkedProcess(reader)


class ForkedProcess:
    """A worker that is a child of the fork server, which reports its exit status.

    Args:
        status: The status pipe; it is closed after the exit status is read.
    """

    def __init__(self, status: int) -> None:
        self._status = status
        self._code: int | None = None
        pid = self._read(_FORK_SECONDS)
        if pid is None:
            os.close(status)
            raise _fork_failed()
        self.pid = pid

    def poll(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        if self._code is None and self._readable(0):
            # The kernel kills workers when the fork server ends, which then reports nothing.
            code = self._read(0)
            self._code = -signal.SIGKILL if code is None else code
            os.close(self._status)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit status."""
        if self._code is None and not self._readable(timeout):
            raise subprocess.TimeoutExpired(["worker"], timeout or 0)
        code = self.poll()
        assert code is not None
        return code

    def _read(self, seconds: float) -> int | None:
        data = os.read(self._status, _NUMBER.size) if self._readable(seconds) else b""
        return int(_NUMBER.unpack(data)[0]) if data else None

    def _readable(self, seconds: float | None) -> bool:
        poll = select.poll()
        poll.register(self._status, select.POLLIN)
        return bool(poll.poll(None if seconds is None else 1000 * seconds))


def _fork_failed() -> InfrastructureError:
    return InfrastructureError(
        "a worker could not be forked",
        kind="worker-start",
        advice="Lower the number of workers if this continues.",
        shared=True,
    )


class ForkCheck:
    """Records the state of a process before building, to decide afterwards whether it may fork.

    >>> check = ForkCheck()
    >>> file = open(os.devnull)
    >>> check.obstacle()
    'it has opened files or connections'
    >>> file.close()
    """

    def __init__(self) -> None:
        self._open = _names("/proc/self/fd")
        self._files = _names(gettempdir())
        self._random = random.getstate()
        self._numpy = _numpy_state()

    def obstacle(self) -> str:
        """What building has left that forked processes must not share; empty if nothing.

        A lock held by another thread is never released in a forked process, a shared connection
        mixes the replies for several processes, a shared file has one position, the first
        process to end removes the temporary files, and a seeded generator must stay seeded.
        """
        if _names("/proc/self/fd") != self._open:
            return "it has opened files or connections"
        if len(_names("/proc/self/task")) != 1:
            return "it has started threads"
        if children(os.getpid()):
            return "it has started processes"
        if _names(gettempdir()) != self._files:
            return "it has made temporary files"
        if _numpy_state() != self._numpy or not _only_drew(self._random):
            return "it has seeded a random generator"
        return ""


def _names(folder: str) -> set[str]:
    return set(os.listdir(folder))  # noqa: PTH208


def _numpy_state() -> bytes:
    return pickle.dumps(np.random.get_state())


def _only_drew(before: tuple[Any, ...]) -> bool:
    """Whether the generator of `random` only drew a few numbers, as rich does on import."""
    generator, now = random.Random(), random.getstate()
    generator.setstate(before)
    for _ in range(_MOST_DRAWS):
        if generator.getstate() == now:
            return True
        generator.getrandbits(32)
    return False


class Child(NamedTuple):
    """The socket and the shared flag of a worker that was just forked."""

    socket: socket.socket
    flag: int


class ForkLoop:
    """Forks a worker for each request, and reports the exit status of each.

    Args:
        requests: A socket that receives the descriptors of each new worker.
    """

    def __init__(self, requests: int) -> None:
        self._requests = socket.socket(fileno=requests)
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._woken, False)
        self._statuses: dict[int, int] = {}

    def run(self) -> Child | None:
        """Serve requests until the engine closes its end; return early in each forked worker."""
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        poll = select.poll()
        for fd in (self._wake, self._requests.fileno()):
            poll.register(fd, select.POLLIN)
        gc.freeze()  # keeps the collector of a worker from copying shared pages
        count = len(Descriptors._fields) + 1
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if self._wake in ready:
                os.read(self._wake, 1 << 12)
                self._reap()
            if self._requests.fileno() in ready:
                _, fds, _, _ = socket.recv_fds(self._requests, 1, count, socket.MSG_CMSG_CLOEXEC)
                if len(fds) != count:
                    return None
                child = self._fork(Descriptors(*fds[:-1]), fds[-1])
                if child is not None:
                    return child

    def _fork(self, descriptors: Descriptors, status: int) -> Child | None:
        """Fork; None in this process. If forking fails, the status pipe ends without a number."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        parent, pid = os.getpid(), -1
        with contextlib.suppress(OSError):
            pid = os.fork()
        if pid == 0:
            os.close(status)
            return self._become_worker(parent, descriptors)
        for fd in descriptors:
            os.close(fd)
        if pid < 0:
            os.close(status)
        else:
            self._statuses[pid] = status
            _report(status, pid)
        return None

    def _become_worker(self, parent: int, descriptors: Descriptors) -> Child:
        die_with(parent)
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._requests.close()
        for fd in (self._wake, self._woken, *self._statuses.values()):
            os.close(fd)
        for fd in (1, 2):
            os.dup2(descriptors.log, fd)
        os.close(descriptors.log)
        np.random.seed()  # the standard library reseeds its own generator
        return Child(socket.socket(fileno=descriptors.socket), descriptors.flag)

    def _reap(self) -> None:
        """Report workers that have ended, before the kernel can reuse their process ids."""
        for pid, status in list(self._statuses.items()):
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                exited = ended.si_code == os.CLD_EXITED
                _report(status, ended.si_status if exited else -ended.si_status)
                os.close(self._statuses.pop(pid))
                os.waitpid(pid, 0)


def _report(status: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # the engine no longer waits for it
        os.write(status, _NUMBER.pack(number))
