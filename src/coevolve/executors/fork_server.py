"""Workers forked from one process that has built the benchmark once.

A fresh Python takes some tenths of a second of a processor, and the benchmark what it takes; a
fork takes a few milliseconds. Where building leaves something that no child may share, every
worker is fresh all the same.
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
from typing import NamedTuple

import numpy as np

from coevolve.executors.channel import Message
from coevolve.executors.failures import InfrastructureError
from coevolve.executors.isolation.process_table import children
from coevolve.executors.worker_process import (
    Asked,
    Ends,
    Process,
    Services,
    WorkerHandle,
    die_with,
    fresh,
)


class Surroundings:
    """What a process has before a benchmark is built that its children would share.

    >>> before = Surroundings()
    >>> file = open(os.devnull)
    >>> before.left_by_building()
    'it has opened files or connections'
    >>> file.close()
    """

    def __init__(self) -> None:
        self._open = _names("/proc/self/fd")
        self._files = _names(gettempdir())
        self._random = _random_states()

    def left_by_building(self) -> str:
        """What building has left that no child may share; empty if nothing.

        A lock that a thread holds is never released in a child, a connection would carry the
        answers of several, a file has one position, whoever ends first removes the temporary
        files, and all would draw the same random numbers.
        """
        if _names("/proc/self/fd") != self._open:
            return "it has opened files or connections"
        if len(_names("/proc/self/task")) != 1:
            return "it has started threads"
        if children(os.getpid()):
            return "it has started processes"
        if _names(gettempdir()) != self._files:
            return "it has made temporary files"
        return "" if _random_states() == self._random else "it has drawn random numbers"


def _names(folder: str) -> set[str]:
    return set(os.listdir(folder))  # noqa: PTH208


def _random_states() -> bytes:
    """The generators that a process has in common."""
    return pickle.dumps((random.getstate(), np.random.get_state()))


NUMBER = struct.Struct("=i")
"""What is told of a worker on its status pipe: its process, and later its exit code."""
_PASSED = 4


class Newborn(NamedTuple):
    """What a forked worker has of its own."""

    socket: socket.socket
    flag: int


class Births:
    """Forks a worker at each request, and tells how each of them ends.

    Args:
        requests: A socket on which the descriptors of new workers come in.
    """

    def __init__(self, requests: int) -> None:
        self._requests = socket.socket(fileno=requests)
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._woken, False)
        self._statuses: dict[int, int] = {}

    def bear(self) -> Newborn | None:
        """Fork until nobody asks any more; in each worker, return what it has of its own."""
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        poll = select.poll()
        for fd in (self._wake, self._requests.fileno()):
            poll.register(fd, select.POLLIN)
        gc.freeze()  # so that a worker's collections do not copy what it shares
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if self._wake in ready:
                os.read(self._wake, 1 << 12)
                self._reap()
            if self._requests.fileno() in ready:
                _, passed, _, _ = socket.recv_fds(
                    self._requests, 1, _PASSED, socket.MSG_CMSG_CLOEXEC
                )
                if len(passed) != _PASSED:
                    return None
                newborn = self._fork(*passed)
                if newborn is not None:
                    return newborn

    def _fork(self, end: int, log: int, flag: int, status: int) -> Newborn | None:
        """None in this process; a process that cannot be made shows by the end of its status."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        parent, pid = os.getpid(), -1
        with contextlib.suppress(OSError):
            pid = os.fork()
        if pid == 0:
            os.close(status)
            return self._become_worker(parent, end, log, flag)
        for fd in (end, log, flag):
            os.close(fd)
        if pid < 0:
            os.close(status)
        else:
            self._statuses[pid] = status
            _tell(status, pid)
        return None

    def _become_worker(self, parent: int, end: int, log: int, flag: int) -> Newborn:
        die_with(parent)
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._requests.close()
        for fd in (self._wake, self._woken, *self._statuses.values()):
            os.close(fd)
        for fd in (1, 2):
            os.dup2(log, fd)
        os.close(log)
        np.random.seed()  # the standard library does the same for its own
        return Newborn(socket.socket(fileno=end), flag)

    def _reap(self) -> None:
        """Tell the exit codes of workers that have ended, before their numbers are free again."""
        for pid, status in list(self._statuses.items()):
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                by_itself = ended.si_code == os.CLD_EXITED
                _tell(status, ended.si_status if by_itself else -ended.si_status)
                os.close(self._statuses.pop(pid))
                os.waitpid(pid, 0)


def _tell(status: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
        os.write(status, NUMBER.pack(number))


_LONGEST_BIRTH = 30.0
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""What numeric libraries read when they are loaded; their threads would forbid to fork."""


class Nursery:
    """The process that workers are forked from, started when the first is wanted.

    Args:
        setup: The message that makes a worker ready.
        scratch: Where workers keep temporary files.
        services: What the benchmark may ask of the engine, also while it is built.
    """

    def __init__(self, setup: Message, *, scratch: Path, services: Services) -> None:
        lent = [name for name in _THREADS if name not in os.environ]
        self._setup = {**setup, "lent": lent}
        self._scratch = scratch
        self._services = services
        self._process: WorkerHandle | None = None
        self._requests: socket.socket | None = None
        self._building: asyncio.Task[bool] | None = None

    async def start(self, ends: Ends, asked: Asked) -> Process:
        """A new worker; what building has cost is put down to the first who asks."""
        if self._building is None or self._lost():
            self.kill()
            self._building = asyncio.ensure_future(self._build(asked))
        building = self._building
        await asyncio.wait([building])  # which others wait for too: it is not cancelled with us
        if building.cancelled():
            raise InfrastructureError("building the benchmark was given up", kind="worker-start")
        if building.result():
            return self._fork(ends)
        return fresh(ends, setup=self._setup, scratch=self._scratch)

    def kill(self) -> None:
        """End the process, and with it every worker it has forked."""
        building, self._building = self._building, None
        if building is not None and not building.cancel() and not building.cancelled():
            building.exception()  # so that nobody is told that nobody looked at it
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

    async def _build(self, asked: Asked) -> bool:
        self._requests, births = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with births:
            start = partial(self._start, births.fileno())
            process = WorkerHandle(self._setup, slot=0, services=self._services, start=start)
            self._process, process.asked = process, asked
            await process.make_ready()
        if not process.forks:
            self._requests.close()
            await process.close()
        return process.forks

    async def _start(self, births: int, ends: Ends, asked: Asked) -> Process:
        return fresh(
            ends,
            setup=self._setup,
            scratch=self._scratch,
            births=(births,),
            variables=dict.fromkeys(self._setup["lent"], "1"),
        )

    def _fork(self, ends: Ends) -> Process:
        assert self._requests is not None
        reader, status = os.pipe()
        try:
            socket.send_fds(self._requests, [b"+"], [*ends, status])
        except OSError:
            os.close(reader)
            raise _unborn() from None
        finally:
            os.close(status)
        return Forked(reader)


class Forked:
    """A worker that is no child of this process; the nursery tells how it ended.

    Args:
        status: Where that is told, its process first; it is closed here after the last word.
    """

    def __init__(self, status: int) -> None:
        self._status = status
        self._code: int | None = None
        pid = self._told(_LONGEST_BIRTH)
        if pid is None:
            os.close(status)
            raise _unborn()
        self.pid = pid

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        if self._code is None and self._readable(0):
            # The kernel ends a worker whose nursery has ended.
            told = self._told(0)
            self._code = -signal.SIGKILL if told is None else told
            os.close(self._status)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """The same after its end."""
        if self._code is None and not self._readable(timeout):
            raise subprocess.TimeoutExpired(["worker"], timeout or 0)
        code = self.poll()
        assert code is not None
        return code

    def _told(self, seconds: float) -> int | None:
        data = os.read(self._status, NUMBER.size) if self._readable(seconds) else b""
        return int(NUMBER.unpack(data)[0]) if data else None

    def _readable(self, seconds: float | None) -> bool:
        poll = select.poll()
        poll.register(self._status, select.POLLIN)
        return bool(poll.poll(None if seconds is None else 1000 * seconds))


def _unborn() -> InfrastructureError:
    return InfrastructureError(
        "a worker could not be forked",
        kind="worker-start",
        advice="Lower the number of workers if it goes on.",
    )
