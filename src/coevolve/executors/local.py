"""Trials in a pool of worker processes on this machine."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

from coevolve.core.outcomes import Usage
from coevolve.errors import ConfigError, InputError, StateError
from coevolve.executors.benchmark_needs import GRACE_SECONDS, TRIAL_SECONDS
from coevolve.executors.channel import Message, prepared_from_json, result_from_json
from coevolve.executors.failures import (
    CandidateFault,
    DoubtfulError,
    InfrastructureError,
    OperatorError,
    TrialError,
    classify,
)
from coevolve.executors.fork_server import ForkServer
from coevolve.executors.isolation import Isolation, Limits, find_isolation
from coevolve.executors.isolation.folders import Scratch
from coevolve.executors.worker_process import (
    Descriptors,
    Held,
    Process,
    Services,
    ServiceUse,
    WorkerHandle,
    start_fresh,
)
from coevolve.executors.workload import Spec
from coevolve.search.candidate import Candidate
from coevolve.search.trials import Blame, Cell, Fault, Prepared, Result, Trial

_SERVICE_LIMIT = "service-limit"


class WorkerPool:
    """Up to `size` workers, started when they are needed.

    Args:
        setup: The message that makes a worker ready.
        size: The number of workers.
        start_seconds: How long a worker may take to become ready.
        grace_seconds: How long a worker that is ended may take to clean up.
        services: What workers may ask the engine for.
        forked: Whether to fork them from one process if possible.
    """

    def __init__(
        self,
        setup: Message,
        *,
        size: int,
        start_seconds: float,
        grace_seconds: float = GRACE_SECONDS,
        services: Services,
        forked: bool = False,
    ) -> None:
        self.size = size
        self._setup = setup
        self._services = services
        self._start_seconds, self._grace_seconds = start_seconds, grace_seconds
        self._forked = forked
        self._free = asyncio.Semaphore(size)
        self._slots = list(range(size))
        self._idle: list[WorkerHandle] = []
        self._busy: dict[WorkerHandle, asyncio.Timeout] = {}
        self._none_busy = asyncio.Event()
        self._scratch: Scratch | None = None
        self._fork_server: ForkServer | None = None
        self._closed = False
        self._closing: asyncio.Future[None] | None = None

    def check_open(self) -> None:
        """Raise StateError if the pool is closed."""
        if self._closed:
            raise StateError("the executor is closed; create a new one.")

    @asynccontextmanager
    async def borrowed(
        self, held: Held, seconds: float, use: ServiceUse
    ) -> AsyncIterator[WorkerHandle]:
        """A worker that is ready, for at most `seconds`; it is replaced after any error."""
        async with self._free:
            if self._closed:
                raise _closed()
            worker = self._chosen(held)
            worker.use = use
            deadline = asyncio.timeout(self._start_seconds)
            self._busy[worker] = deadline
            ready = healthy = False
            try:
                async with deadline:
                    await worker.make_ready()
                    if self._closed:
                        raise _closed()
                    ready = True
                    use.restart_clock()
                    deadline.reschedule(asyncio.get_running_loop().time() + seconds)
                    yield worker
                healthy = True
            except TimeoutError:
                if not deadline.expired():
                    raise
                raise self._timeout_error(worker, ready, seconds) from None
            finally:
                try:
                    if self._closed or not healthy:
                        await worker.end(self._grace_seconds)
                finally:
                    del self._busy[worker]
                    self._put_back(worker, healthy)
                    if not self._busy:
                        self._none_busy.set()

    async def close(self) -> None:
        """End every worker; attempts that are running end with a fault."""
        self._closed = True
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        now = asyncio.get_running_loop().time()
        for deadline in self._busy.values():
            if not deadline.expired():
                deadline.reschedule(now)
        idle, self._idle = self._idle, []
        try:
            await asyncio.gather(*(worker.close(self._grace_seconds) for worker in idle))
            while self._busy:
                self._none_busy.clear()
                await self._none_busy.wait()
        finally:
            for worker in [*idle, *self._busy]:
                worker.kill()
            if self._fork_server is not None:
                self._fork_server.kill()
            if self._scratch is not None:
                self._scratch.remove()

    def _chosen(self, held: Held) -> WorkerHandle:
        """A worker that holds the candidate, else one without any, a new one, the longest idle."""
        for worker in [worker for worker in self._idle if not worker.alive]:
            self._idle.remove(worker)
            self._put_back(worker, healthy=False)
        for wanted in (held, None):
            for worker in self._idle:
                if worker.holds == wanted:
                    self._idle.remove(worker)
                    return worker
        if not self._slots:
            return self._idle.pop(0)
        slot = self._slots[0]
        worker = WorkerHandle(self._setup, slot=slot, services=self._services, start=self._start)
        self._slots.remove(slot)
        return worker

    async def _start(self, descriptors: Descriptors, use: ServiceUse) -> Process:
        if self._scratch is None:
            self._scratch = Scratch.make()
        folder = self._scratch.folder
        if not self._forked:
            return start_fresh(descriptors, setup=self._setup, scratch=folder)
        if self._fork_server is None:
            self._fork_server = ForkServer(self._setup, scratch=folder, services=self._services)
        return await self._fork_server.start(descriptors, use)

    def _put_back(self, worker: WorkerHandle, healthy: bool) -> None:
        if healthy and not self._closed:
            self._idle.append(worker)
        else:
            worker.kill()
            self._slots.append(worker.slot)

    def _timeout_error(self, worker: WorkerHandle, ready: bool, seconds: float) -> TrialError:
        if self._closed:
            return _closed()
        if ready:
            return late_trial(worker, seconds)
        if self._fork_server is not None and not self._fork_server.ready:
            self._fork_server.kill()
        return OperatorError(
            f"the benchmark was not built within {self._start_seconds:g} s",
            kind="start-limit",
            advice="Make it load faster, or raise the time limit for preparation.",
        )


def late_trial(worker: WorkerHandle, seconds: float) -> TrialError:
    """The fault of a trial that exceeded its time limit.

    If one answer of a service took most of the time, it is not the candidate's fault. If many
    did, it may be: were such trials missing, a candidate could ask on purpose until the limit to
    avoid a task that it cannot solve.
    """
    past, use = f"the trial ran longer than {seconds:g} s", worker.use
    if use.waiting_seconds > seconds / 2:
        use.late = use.waits_for
        late = f"the service {use.waits_for!r} did not answer within {use.waiting_seconds:.1f} s"
        return InfrastructureError(
            f"{past}: {late}",
            kind=_SERVICE_LIMIT,
            advice="If this continues, lower the number of workers or raise the time limit.",
        )
    if use.waited_seconds > seconds / 2:
        reason = f"{past}, of which {use.waited_seconds:.1f} s were spent waiting for services"
        return DoubtfulError(reason, kind="time-limit")
    if worker.candidate_at_work:
        return CandidateFault(f"{past} in the candidate's code", kind="time-limit")
    return DoubtfulError(f"{past} in the benchmark's code", kind="time-limit")


async def explained(fault: Fault, services: Services, use: ServiceUse) -> Fault:
    """The fault of a trial that waited too long for the model, after asking the model again."""
    answers = services.get("model_answers")
    if fault.kind != _SERVICE_LIMIT or use.late != "model" or answers is None:
        return fault
    asked = use.begin("model_answers")
    found = await answers()
    use.end(asked, found)
    if not found["answered"]:
        return fault
    reason = f"{fault.reason}, but the model answered another request"
    return replace(fault, blame=Blame.DOUBTFUL, reason=reason)


def _closed() -> InfrastructureError:
    return InfrastructureError("the executor was closed", kind="closed", shared=True)


class Contents(Protocol):
    """Where the files and the states of candidates are stored, such as a journal."""

    def get(self, address: str) -> bytes:
        """The bytes stored at an address."""
        ...

    def checkout(self, candidate: Candidate) -> Path:
        """A folder with the files of a candidate, not to be changed."""
        ...


class LocalExecutor:
    """Runs trials in worker processes, each with the candidate in its own sandbox.

    Args:
        benchmark: How a worker builds the benchmark.
        contents: Where the files and the states of candidates are stored.
        workers: How many attempts run at once.
        isolation: A name for `find_isolation`, or an isolation.
        limits: What a candidate may use.
        trial_seconds: Time limit of one attempt, including the time spent waiting for services.
            A worker that exceeds it is ended; the blame depends on what it was waiting for.
        prepare_seconds: Time limit for building the benchmark, for a check and a preparation.
        grace_seconds: How long a worker that is ended may take to clean up; then it is killed.
        services: What benchmarks may ask the engine for, by name. A function that waits should
            be async; otherwise it blocks the engine. The `usage` in an answer (tokens_in,
            tokens_out, dollars) counts for the attempt, however it ends, unless its result
            states tokens or dollars itself.
        variables: Additions to the environment of workers, one mapping for each of them, such as
            the graphics processor that a worker may use.
    """

    def __init__(
        self,
        benchmark: Spec,
        *,
        contents: Contents,
        workers: int = 1,
        isolation: str | Isolation = "auto",
        limits: Limits | None = None,
        trial_seconds: float = TRIAL_SECONDS,
        prepare_seconds: float = 3600,
        grace_seconds: float = GRACE_SECONDS,
        services: Services | None = None,
        variables: Sequence[Mapping[str, str]] = (),
    ) -> None:
        numbers = {
            "trial_seconds": trial_seconds,
            "prepare_seconds": prepare_seconds,
            "grace_seconds": grace_seconds,
        }
        for name, value in {"workers": workers, **numbers}.items():
            if not value > 0:
                raise InputError(f"{name} must be positive, got {value!r}.")
        if benchmark.folder is not None and not benchmark.folder.is_dir():
            raise ConfigError(f"the benchmark's folder {benchmark.folder} does not exist.")
        self.isolation = find_isolation(isolation) if isinstance(isolation, str) else isolation
        self._contents = contents
        self._services: Services = services or {}
        self._trial_seconds = trial_seconds
        self._prepare_seconds = prepare_seconds
        self._running: dict[Cell, WorkerHandle] = {}
        setup = {
            "spec": benchmark.to_json(),
            "isolation": self.isolation.name,
            "limits": asdict(limits or Limits()),
            "variables": [dict(given) for given in variables],
        }
        self._pool = WorkerPool(
            setup,
            size=workers,
            start_seconds=prepare_seconds,
            grace_seconds=grace_seconds,
            services=self._services,
            forked=sys.platform == "linux" and workers > processors(),
        )

    @property
    def capacity(self) -> int:
        """How many attempts may run at once."""
        return self._pool.size

    @property
    def isolation_name(self) -> str:
        """How candidate code is isolated."""
        return self.isolation.name

    async def check(self, candidate: Candidate) -> Prepared:
        """Check whether a candidate can be evaluated at all; `fault` says why not."""
        return await self._prepared("check", candidate)

    async def prepare(self, candidate: Candidate) -> Prepared:
        """Make a candidate ready for trials, once; its state is passed to every trial."""
        return await self._prepared("prepare", candidate)

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        """Run one attempt; cancelling the call ends its worker and everything it started."""
        self._pool.check_open()
        started = time.perf_counter()
        request = {"op": "run", "task": trial.task, "trial": trial.trial, "split": trial.split}
        held, use = Held(candidate.name, candidate.address, trial.state), ServiceUse()
        try:
            async with self._pool.borrowed(held, self._trial_seconds, use) as worker:
                self._running[trial.cell] = worker
                reply = await self._ask(worker, candidate, held, request)
                result = _read(result_from_json, reply)
        except Exception as error:
            fault = await explained(classify(error), self._services, use)
            result = Result(fault=fault, usage=_since(started))
        finally:
            self._running.pop(trial.cell, None)
        return replace(result, usage=use.counted(result.usage))

    async def close(self) -> None:
        """End every process; attempts that are running end with a fault."""
        await self._pool.close()

    def worker_of(self, trial: Trial) -> int | None:
        """The process id of the worker that runs a trial now, if any."""
        worker = self._running.get(trial.cell)
        return None if worker is None else worker.pid

    async def _prepared(self, op: str, candidate: Candidate) -> Prepared:
        self._pool.check_open()
        started = time.perf_counter()
        held, use = Held(candidate.name, candidate.address, None), ServiceUse()
        try:
            async with self._pool.borrowed(held, self._prepare_seconds, use) as worker:
                reply = await self._ask(worker, candidate, held, {"op": op})
                prepared = _read(prepared_from_json, reply)
        except Exception as error:
            prepared = Prepared(fault=classify(error), usage=_since(started))
        return replace(prepared, usage=use.counted(prepared.usage))

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
        reason = f"the worker sent an invalid result: {error!r}"
        raise DoubtfulError(reason, kind="worker-garbage") from error


def processors() -> int:
    """How many processors this process may use; as many fresh workers start at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _since(started: float) -> Usage:
    return Usage(seconds=time.perf_counter() - started)
