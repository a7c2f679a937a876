"""The workers of an executor: who is idle, who takes the next attempt, who is replaced."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from coevolve.errors import StateError
from coevolve.executors.asked import Asked
from coevolve.executors.failures import (
    CandidateFault,
    DoubtfulError,
    InfrastructureError,
    OperatorError,
    TrialError,
)
from coevolve.executors.handle import Held, Services, WorkerHandle
from coevolve.executors.nursery import Nursery
from coevolve.executors.pipes import Message
from coevolve.executors.scratch import Scratch
from coevolve.executors.starts import Ends, Process, fresh


class Crew:
    """Up to `size` workers, started when they are needed.

    Args:
        setup: The message that makes a worker ready.
        size: How many.
        start_seconds: How long a worker may take to be ready.
        services: What workers may ask of the engine.
        forked: Whether they are forked from one process where they can be.
    """

    def __init__(
        self,
        setup: Message,
        *,
        size: int,
        start_seconds: float,
        services: Services,
        forked: bool = False,
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
        self._forked = forked
        self._nursery: Nursery | None = None
        self._quiet = asyncio.Event()
        self._closed = False
        self._ending: asyncio.Future[None] | None = None

    def check_open(self) -> None:
        """Refuse to work after the end."""
        if self._closed:
            raise StateError("the executor is closed; make another one.")

    @asynccontextmanager
    async def borrowed(
        self, held: Held, seconds: float, asked: Asked
    ) -> AsyncIterator[WorkerHandle]:
        """A worker that is ready, for so many seconds; replaced if anything goes wrong."""
        async with self._turns:
            if self._closed:
                raise _closed()
            worker = self._chosen(held)
            worker.asked = asked
            deadline = asyncio.timeout(self._start_seconds)
            self._busy[worker] = deadline
            ready = healthy = False
            try:
                async with deadline:
                    await worker.make_ready()
                    if self._closed:
                        raise _closed()
                    ready = True
                    asked.forget_waiting()
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
            if self._nursery is not None:
                self._nursery.kill()
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
        slot = self._slots[0]
        worker = WorkerHandle(self._setup, slot=slot, services=self._services, start=self._started)
        self._slots.remove(slot)
        return worker

    async def _started(self, ends: Ends, asked: Asked) -> Process:
        if self._scratch is None:
            self._scratch = Scratch.make()
        folder = self._scratch.folder
        if not self._forked:
            return fresh(ends, setup=self._setup, scratch=folder)
        if self._nursery is None:
            self._nursery = Nursery(self._setup, scratch=folder, services=self._services)
        return await self._nursery.start(ends, asked)

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
            if self._nursery is not None and not self._nursery.ready:
                self._nursery.kill()
            return OperatorError(
                f"the benchmark was not built within {self._start_seconds:g} s",
                kind="start-limit",
                advice="Make it load less, or allow more time for preparation.",
            )
        return late_trial(worker, seconds)


def late_trial(worker: WorkerHandle, seconds: float) -> TrialError:
    """Who is to blame for a trial past its time.

    One answer that takes most of it is no doing of the candidate. Many that do may be: if such
    trials were missing, a candidate could ask on until it is rid of a task it cannot solve.
    """
    past, asked = f"the trial ran past {seconds:g} s", worker.asked
    if asked.waiting_seconds > seconds / 2:
        waited = f"{asked.waits_for!r} did not answer within {asked.waiting_seconds:.1f} s"
        return InfrastructureError(
            f"{past}: the service {waited}",
            kind="service-limit",
            advice="Lower the number of workers, or allow more time for a trial, if it goes on.",
        )
    if asked.waited_seconds > seconds / 2:
        reason = f"{past}, {asked.waited_seconds:.1f} s of them waiting for services"
        return DoubtfulError(reason, kind="time-limit")
    if worker.candidate_at_work:
        return CandidateFault(f"{past}, the candidate being at work", kind="time-limit")
    return DoubtfulError(f"{past}, the benchmark being at work", kind="time-limit")


def _closed() -> InfrastructureError:
    return InfrastructureError("the executor was closed", kind="closed")
