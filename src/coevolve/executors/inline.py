"""Trials in the process of the engine, one after another."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

from coevolve.errors import InputError, StateError
from coevolve.executors.failures import classify
from coevolve.executors.isolation import Isolation, Limits, find_isolation
from coevolve.executors.local import Contents
from coevolve.executors.worker_process import Held
from coevolve.executors.workload import (
    WatchedHarness,
    Workload,
    check_candidate,
    frame_of,
    prepare_candidate,
    run_trial,
)
from coevolve.search.candidate import Candidate
from coevolve.search.trials import Prepared, Result, Trial

NOWHERE = Path("/nonexistent")
"""The folder of candidates for an executor without contents."""


class InlineExecutor:
    """Runs trials in this process: for synthetic worlds, notebooks and tests.

    A trial that has begun can be neither cancelled nor ended by a time limit, and it blocks the
    event loop. Candidate code, if the benchmark calls any, still has its own process.

    Args:
        workload: The benchmark.
        contents: Where the files and the states of candidates are stored; not needed by a
            benchmark that never reads a candidate's files.
        capacity: How many attempts it accepts at once; they run one after another.
        isolation: "auto", "bwrap" or "process", or an isolation.
        limits: What a candidate may use.
    """

    def __init__(
        self,
        workload: Workload,
        *,
        contents: Contents | None = None,
        capacity: int = 1,
        isolation: str | Isolation = "process",
        limits: Limits | None = None,
    ) -> None:
        if capacity < 1:
            raise InputError(f"capacity must be at least 1, got {capacity!r}.")
        self.capacity = capacity
        self._workload = workload
        self._contents = contents
        self._isolation = find_isolation(isolation) if isinstance(isolation, str) else isolation
        self._limits = limits or Limits()
        self._holds: Held | None = None
        self._harness: WatchedHarness | None = None
        self._closed = False

    async def check(self, candidate: Candidate) -> Prepared:
        """Check whether a candidate can be evaluated at all; `fault` says why not."""
        return await self._prepared(check_candidate, candidate)

    async def prepare(self, candidate: Candidate) -> Prepared:
        """Make a candidate ready for trials, once; its state is passed to every trial."""
        return await self._prepared(prepare_candidate, candidate)

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        """Run one attempt."""
        await self._yield()
        try:
            harness = self._harness_of(candidate, trial.state)
        except Exception as error:
            return Result(fault=classify(error))
        return run_trial(self._workload, harness, trial.task, trial.trial, trial.split)

    async def close(self) -> None:
        """End the candidate's process, if any."""
        self._closed = True
        self._drop()

    async def _prepared(
        self, step: Callable[[Workload, WatchedHarness], Prepared], candidate: Candidate
    ) -> Prepared:
        await self._yield()
        try:
            harness = self._harness_of(candidate, None)
        except Exception as error:
            return Prepared(fault=classify(error))
        return step(self._workload, harness)

    async def _yield(self) -> None:
        """Let other coroutines run before this attempt blocks the event loop."""
        await asyncio.sleep(0)
        if self._closed:
            raise StateError("the executor is closed; make another one.")

    def _harness_of(self, candidate: Candidate, state: str | None) -> WatchedHarness:
        """The harness of a candidate, kept until another candidate is evaluated."""
        held = Held(candidate.name, candidate.address, state)
        if self._harness is None or self._holds != held:
            self._drop()
            self._harness = WatchedHarness(
                self._folder(candidate),
                isolation=self._isolation,
                limits=self._limits,
                name=candidate.name,
                state=self._state(state),
                frame=frame_of(self._workload),
                flag=bytearray(2),
            )
            self._holds = held
        return self._harness

    def _folder(self, candidate: Candidate) -> Path:
        if self._contents is None:
            return NOWHERE / candidate.name
        return self._contents.checkout(candidate)

    def _state(self, address: str | None) -> object:
        if address is None:
            return None
        if self._contents is None:
            raise InputError(
                "an executor without contents cannot read a candidate's state; pass contents."
            )
        return json.loads(self._contents.get(address))

    def _drop(self) -> None:
        if self._harness is not None:
            self._harness.close()
            self._harness = None
