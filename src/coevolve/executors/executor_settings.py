"""`[executor]`: the base of all settings, and those of local workers and factories."""

import os
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import Field

from coevolve import registry
from coevolve.executors.benchmark_needs import GRACE_SECONDS, Needs
from coevolve.executors.isolation import Limits
from coevolve.executors.local import Contents, LocalExecutor
from coevolve.executors.worker_process import Services
from coevolve.executors.workload import Spec
from coevolve.findings import Finding
from coevolve.search.trials import Executor
from coevolve.settings import Amount, Context, Count, Table, Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a run passes to its executor.

    Args:
        benchmark: How a worker builds the benchmark.
        contents: Where the files and states of candidates are.
        workers: How many attempts may run at once.
        isolation: The isolation of candidate code: a name for `find_isolation`.
        limits: What a candidate may use.
        needs: What the benchmark needs, unless the user's settings say otherwise.
        services: What benchmarks may ask the engine for, by name.
    """

    benchmark: Spec
    contents: Contents
    workers: int = 1
    isolation: str = "auto"
    limits: Limits = field(default_factory=Limits)
    needs: Needs = field(default_factory=Needs)
    services: Services = field(default_factory=dict)


class ExecutorSettings(Table):
    """The settings of an executor; the base class for those of your own executor.

    `seconds` are for one attempt at a trial, `prepare_seconds` for a check or a preparation. If
    `seconds` are left out, the benchmark's `trial_seconds` apply, which are 600 by default.
    """

    elsewhere: ClassVar[bool] = False
    """Whether trials run on other machines, so that this one need not have room for them."""
    kind: Text = "local"
    workers: Count | None = None
    seconds: Amount | None = None
    prepare_seconds: Amount = 3600.0

    @abstractmethod
    def build(self, context: Context, work: Work) -> Executor:
        """The executor."""

    def examine(self, context: Context) -> Iterator[Finding]:
        """What `coevolve doctor` says about where trials run, besides this machine."""
        yield from ()

    def processes(self) -> int:
        """The number of workers: as many as there are cores, unless given."""
        cores: int | None = getattr(os, "process_cpu_count", os.cpu_count)()
        return self.workers or cores or 1


class LocalSettings(ExecutorSettings):
    """Worker processes on this machine."""

    def build(self, context: Context, work: Work) -> Executor:
        return LocalExecutor(work.benchmark, **arguments_of(self, work))


class FactoryExecutor(ExecutorSettings):
    """A function or class that returns an executor.

    It is called as `LocalExecutor` is, with `arguments` in addition.
    """

    arguments: dict[str, Any] = Field(default_factory=dict)

    def build(self, context: Context, work: Work) -> Executor:
        made: Executor = registry.make(
            "executors",
            self.kind,
            work.benchmark,
            arguments=arguments_of(self, work) | self.arguments,
            members=("capacity", "check", "prepare", "run", "close"),
            folder=context.base.resolve(),
        )
        return made


def arguments_of(settings: ExecutorSettings, work: Work) -> dict[str, Any]:
    """What executors are built with besides the benchmark, as keyword arguments."""
    grace = work.needs.grace_seconds
    return {
        "contents": work.contents,
        "workers": work.workers,
        "isolation": work.isolation,
        "limits": work.limits,
        "trial_seconds": settings.seconds or work.needs.trial_seconds,
        "prepare_seconds": settings.prepare_seconds,
        "services": work.services,
        # Executors of others need not know it unless a benchmark does.
        **({} if grace == GRACE_SECONDS else {"grace_seconds": grace}),
    }
