"""Trials in worker processes of this machine."""

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

from coevolve.core.outcomes import Usage
from coevolve.errors import ConfigError, InputError
from coevolve.executors.asked import Asked
from coevolve.executors.crew import Crew
from coevolve.executors.failures import DoubtfulError, classify
from coevolve.executors.handle import Held, Services, WorkerHandle
from coevolve.executors.isolation import Isolation, Limits, find_isolation
from coevolve.executors.messages import prepared_from_json, result_from_json
from coevolve.executors.pipes import Message
from coevolve.executors.workload import Spec
from coevolve.search.candidate import Candidate
from coevolve.search.trials import Cell, Prepared, Result, Trial


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
