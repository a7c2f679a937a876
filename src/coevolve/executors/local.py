"""Trials in a pool of worker processes on this machine."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

from coevolve.core.outcomes import Usage
from coevolve.errors import ConfigError, InputError, StateError
from coevolve.executors.channel import Message, prepared_from_json, result_from_json
from coevolve.executors.failures import (
    CandidateFault,
    DoubtfulError,
    InfrastructureError,
    OperatorError,
    TrialError,
    classify,
)
from coevolve.executors.forking import Nursery
from coevolve.executors.isolation import Isolation, Limits, find_isolation
from coevolve.executors.worker_process import (
    Asked,
    Ends,
    Held,
    Process,
    Scratch,
    Services,
    WorkerHandle,
    fresh,
)
from coevolve.executors.workload import Spec
from coevolve.search.candidate import Candidate
from coevolve.search.trials import Cell, Prepared, Result, Trial


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


class Contents(Protocol):
    """Where the files and the states of candidates are; a journal is one."""

    def get(self, address: str) -> bytes:
        """The bytes kept at an address."""
        ...

    def checkout(self, candidate: Candidate) -> Path:
        """A folder with the files of a candidate, which nobody should change."""
        ...


class LocalExecutor:
    """Runs trials in worker processes, each with the candidate in a sandbox below it.

    Args:
        benchmark: How a worker builds the benchmark.
        contents: Where candidates' files and states are.
        workers: How many attempts run at once.
        isolation: "auto", "bwrap" or "process", or one that was found already.
        limits: What a candidate may use.
        trial_seconds: Wall clock of one attempt at a trial, waiting for services included; past
            it, its worker is ended, and who is to blame depends on what it was waiting for.
        prepare_seconds: The same for building the benchmark, for a check and a preparation.
        services: What benchmarks may ask of the engine, by name. A function that waits for
            something should be async, since the engine waits with it otherwise. What answers
            state under `usage` (tokens_in, tokens_out, dollars) is counted for the attempt,
            however it ends, unless its result states tokens or dollars itself.
    """

    def __init__(
        self,
        benchmark: Spec,
        *,
        contents: Contents,
        workers: int = 1,
        isolation: str | Isolation = "auto",
        limits: Limits | None = None,
        trial_seconds: float = 600,
        prepare_seconds: float = 3600,
        services: Services | None = None,
    ) -> None:
        numbers = {"trial_seconds": trial_seconds, "prepare_seconds": prepare_seconds}
        for name, value in {"workers": workers, **numbers}.items():
            if not value > 0:
                raise InputError(f"{name} must be positive, got {value!r}.")
        if benchmark.folder is not None and not benchmark.folder.is_dir():
            raise ConfigError(f"the benchmark's folder {benchmark.folder} does not exist.")
        self.isolation = find_isolation(isolation) if isinstance(isolation, str) else isolation
        self._contents = contents
        self._trial_seconds = trial_seconds
        self._prepare_seconds = prepare_seconds
        self._running: dict[Cell, WorkerHandle] = {}
        setup = {
            "spec": benchmark.to_json(),
            "isolation": self.isolation.name,
            "limits": asdict(limits or Limits()),
        }
        self._crew = Crew(
            setup,
            size=workers,
            start_seconds=prepare_seconds,
            services=services or {},
            forked=sys.platform == "linux" and workers > processors(),
        )

    @property
    def capacity(self) -> int:
        """How many attempts may be under way at once."""
        return self._crew.size

    async def check(self, candidate: Candidate) -> Prepared:
        """Whether a candidate can be evaluated at all; what is wrong is its `fault`."""
        return await self._prepared("check", candidate)

    async def prepare(self, candidate: Candidate) -> Prepared:
        """Make a candidate ready for trials, once; its state, if any, goes with every trial."""
        return await self._prepared("prepare", candidate)

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        """Run one attempt; cancelling the call ends its worker and all that it started."""
        self._crew.check_open()
        started = time.perf_counter()
        request = {"op": "run", "task": trial.task, "trial": trial.trial, "split": trial.split}
        held, asked = Held(candidate.name, candidate.address, trial.state), Asked()
        try:
            async with self._crew.borrowed(held, self._trial_seconds, asked) as worker:
                self._running[trial.cell] = worker
                reply = await self._ask(worker, candidate, held, request)
                result = _read(result_from_json, reply)
        except Exception as error:
            result = Result(fault=classify(error), usage=_since(started))
        finally:
            self._running.pop(trial.cell, None)
        return replace(result, usage=asked.counted(result.usage))

    @property
    def isolation_name(self) -> str:
        """How candidate code is kept apart."""
        return self.isolation.name

    async def close(self) -> None:
        """End every process; attempts under way end with a fault."""
        await self._crew.close()

    def worker_of(self, trial: Trial) -> int | None:
        """The process that works on a trial now, if one does."""
        worker = self._running.get(trial.cell)
        return None if worker is None else worker.pid

    async def _prepared(self, op: str, candidate: Candidate) -> Prepared:
        self._crew.check_open()
        started = time.perf_counter()
        held, asked = Held(candidate.name, candidate.address, None), Asked()
        try:
            async with self._crew.borrowed(held, self._prepare_seconds, asked) as worker:
                reply = await self._ask(worker, candidate, held, {"op": op})
                prepared = _read(prepared_from_json, reply)
        except Exception as error:
            prepared = Prepared(fault=classify(error), usage=_since(started))
        return replace(prepared, usage=asked.counted(prepared.usage))

    async def _ask(
        self, worker: WorkerHandle, candidate: Candidate, held: Held, request: Message
    ) -> Message:
        if worker.holds != held:
            state = None if held.state is None else self._contents.get(held.state).decode()
            folder = str(self._contents.checkout(candidate))
            request["candidate"] = {"name": candidate.name, "folder": folder, "state": state}
            worker.holds = held
        return await worker.ask(request)


def _read[Done](read: Callable[[Mapping[str, Any]], Done], reply: Message) -> Done:
    try:
        return read(reply)
    except (KeyError, TypeError, ValueError) as error:
        raise DoubtfulError(f"the worker wrote {error!r}", kind="worker-garbage") from error


def processors() -> int:
    """How many this process may use: so many fresh workers start at once without a queue."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _since(started: float) -> Usage:
    return Usage(seconds=time.perf_counter() - started)
