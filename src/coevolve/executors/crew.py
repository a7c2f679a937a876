"""The workers of an executor: who is idle, who takes the next attempt, who is replaced."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from coevolve.errors import StateError
from coevolve.executors.failures import (
    CandidateFault,
    DoubtfulError,
    InfrastructureError,
    OperatorError,
    TrialError,
)
from coevolve.executors.handle import Held, Services, WorkerHandle
from coevolve.executors.pipes import Message
from coevolve.executors.scratch import Scratch


class Crew:
    """Up to `size` workers, started when they are needed.

    Args:
        setup: The message that makes a worker ready.
        size: How many.
        start_seconds: How long a worker may take to be ready.
        services: What workers may ask of the engine.
    """

    def __init__(
        self, setup: Message, *, size: int, start_seconds: float, services: Services
    ) -> None:
        self.size = size
        self._setup = setup
        self._services = services
        self._start_seconds = start_seconds
        self._turns = asyncio.Semaphore(size)
        self._slots = list(range(size))
        self._idle: list[WorkerHandle] = []
        self._busy: dict[WorkerHandle, asyncio.Timeout] = {}
        self._scratch: Scratch | None = None
        self._quiet = asyncio.Event()
        self._closed = False
        self._ending: asyncio.Future[None] | None = None

    def check_open(self) -> None:
        """Refuse to work after the end."""
        if self._closed:
            raise StateError("the executor is closed; make another one.")

    @asynccontextmanager
    async def borrowed(self, held: Held, seconds: float) -> AsyncIterator[WorkerHandle]:
        """A worker that is ready, for so many seconds; replaced if anything goes wrong."""
        async with self._turns:
            if self._closed:
                raise _closed()
            worker = self._chosen(held)
            deadline = asyncio.timeout(self._start_seconds)
            self._busy[worker] = deadline
            ready = healthy = False
            try:
                async with deadline:
                    await worker.make_ready()
                    if self._closed:
                        raise _closed()
                    ready = True
                    deadline.reschedule(asyncio.get_running_loop().time() + seconds)
                    yield worker
                healthy = True
            except TimeoutError:
                if not deadline.expired():
                    raise
                raise self._late(worker, ready, seconds) from None
            finally:
                del self._busy[worker]
                self._back(worker, healthy)
                if not self._busy:
                    self._quiet.set()

    async def close(self) -> None:
        """End every worker; attempts under way end with a fault."""
        self._closed = True
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        now = asyncio.get_running_loop().time()
        for deadline in self._busy.values():
            if not deadline.expired():
                deadline.reschedule(now)
        idle, self._idle = self._idle, []
        try:
            await asyncio.gather(*(worker.close() for worker in idle))
            while self._busy:
                self._quiet.clear()
                await self._quiet.wait()
        finally:
            for worker in [*idle, *self._busy]:
                worker.kill()
            if self._scratch is not None:
                self._scratch.remove()

    def _chosen(self, held: Held) -> WorkerHandle:
        """The best worker: one that holds the candidate, a fresh one, or the longest idle."""
        for worker in [worker for worker in self._idle if not worker.alive]:
            self._idle.remove(worker)
            self._back(worker, healthy=False)
        for wanted in (held, None):
            for worker in self._idle:
                if worker.holds == wanted:
                    self._idle.remove(worker)
                    return worker
        if not self._slots:
            return self._idle.pop(0)
        return self._hired()

    def _hired(self) -> WorkerHandle:
        if self._scratch is None:
            self._scratch = Scratch.make()
        slot = self._slots[0]
        worker = WorkerHandle(
            self._setup, slot=slot, scratch=self._scratch.folder, services=self._services
        )
        self._slots.remove(slot)
        return worker

    def _back(self, worker: WorkerHandle, healthy: bool) -> None:
        if healthy and not self._closed:
            self._idle.append(worker)
        else:
            worker.kill()
            self._slots.append(worker.slot)

    def _late(self, worker: WorkerHandle, ready: bool, seconds: float) -> TrialError:
        if self._closed:
            return _closed()
        if not ready:
            return OperatorError(
                f"the benchmark was not built within {self._start_seconds:g} s",
                kind="start-limit",
                advice="Make it load less, or allow more time for preparation.",
            )
        if worker.candidate_at_work:
            reason = f"the trial ran past {seconds:g} s, the candidate being at work"
            return CandidateFault(reason, kind="time-limit")
        reason = f"the trial ran past {seconds:g} s, the benchmark being at work"
        return DoubtfulError(reason, kind="time-limit")


def _closed() -> InfrastructureError:
    return InfrastructureError("the executor was closed", kind="closed")
