"""Workers forked from one process that has built the benchmark once.

A fresh Python takes some tenths of a second of a processor, and the benchmark what it takes; a
fork takes a few milliseconds. Where building leaves something that no child may share, every
worker is fresh all the same.
"""

import asyncio
import os
import select
import signal
import socket
import subprocess
from functools import partial
from pathlib import Path

from coevolve.executors.asked import Asked
from coevolve.executors.births import NUMBER
from coevolve.executors.failures import InfrastructureError
from coevolve.executors.handle import Services, WorkerHandle
from coevolve.executors.pipes import Message
from coevolve.executors.starts import Ends, Process, fresh

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
