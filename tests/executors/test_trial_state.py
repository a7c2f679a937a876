"""Trials do not depend on earlier trials, so neither on the number of workers nor on luck."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from coevolve.core.pool import Pool
from coevolve.core.selector import Selector
from coevolve.executors.in_process import InProcessExecutor
from coevolve.search.budget import Settings
from coevolve.search.loop import Search, open_run
from coevolve.search.run_state import RunState, Status
from coevolve.store import RunStore
from tests.effort import first
from tests.executors.projects import Project, trial, with_executor
from tests.search.stubs import StubProposer

BENCHMARK = """
import contextlib, os, signal

from coevolve.executors.isolation.process_table import descendants


class Benchmark:
    def check(self, harness):
        harness.call("score", "check")

    def prepare(self, harness):
        harness.call("score", "prepare")

    def run(self, harness, task, trial):
        first = harness.call("score", task, returns=float)
        return (first + harness.call("score", task, returns=float)) / 2


class Killed(Benchmark):
    def __init__(self, killed=()):
        self._killed = killed

    def check(self, harness):
        super().check(harness)
        for path in self._killed:
            if harness.name.startswith("r") and not path.exists():
                path.touch()
                for pid in descendants(harness._sandbox._process.pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                break
        super().check(harness)
"""

HARNESS = b"""
import os, tempfile

asked = []

def score(task):
    # What a harness may do to be fast, or to be clever.
    place = os.path.join(tempfile.gettempdir(), "cache")
    os.makedirs(place, exist_ok=True)
    open(os.path.join(place, str(len(os.listdir(place)))), "w").write(task)
    asked.append(task)
    return 1 / (len(asked) + len(os.listdir(place)))
"""


def built(name: str, *arguments: object) -> Any:
    """A benchmark in this process."""
    namespace: dict[str, Any] = {}
    exec(BENCHMARK, namespace)
    return namespace[name](*arguments)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, BENCHMARK)


@pytest.mark.parametrize("isolation", first(1, ["auto", "process"]))
def test_scores_do_not_depend_on_the_number_of_workers(project: Project, isolation: str) -> None:
    candidate = project.contents.candidate(HARNESS)

    async def use(executor: Any) -> list[float | None]:
        await executor.check(candidate)
        await executor.prepare(candidate)
        trials = [executor.run(candidate, trial("t", number)) for number in range(12)]
        return [result.score for result in await asyncio.gather(*trials)]

    scores = [
        with_executor(project.executor(workers=workers, isolation=isolation), use)
        for workers in (1, 2)
    ]
    inline = InProcessExecutor(
        built("Benchmark"), contents=project.contents, isolation=isolation, threads=True
    )
    scores.append(with_executor(inline, use))
    assert scores == [[(1 / 2 + 1 / 4) / 2] * 12] * 3


def searched(folder: Path, *killed: Path) -> RunState:
    """A small search; a sandbox is killed during a check for every path."""
    settings = Settings(rounds=1, candidates=2, seed=7)
    selector = Selector(Pool(["t1", "t2", "t3"]), protocol="full", seed=7)
    starts = {name: {"harness.py": HARNESS + b"#" + name.encode()} for name in ("s1", "s2")}
    with RunStore.create(folder) as store:
        open_run(store, name="killed", settings=settings, selector=selector, starts=starts)
        executor = InProcessExecutor(built("Killed", killed), contents=store, isolation="auto")
        return asyncio.run(Search(store, executor, StubProposer(), pause=0.001).run())


def test_a_sandbox_that_is_killed_during_a_check_changes_nothing(tmp_path: Path) -> None:
    quiet = searched(tmp_path / "quiet")
    marks = [tmp_path / "mark-1", tmp_path / "mark-2"]
    disturbed = searched(tmp_path / "disturbed", *marks)
    assert all(mark.exists() for mark in marks)
    assert {known.status for known in disturbed.candidates.values()} == {Status.EVALUATED}
    names = list(quiet.candidates)
    assert list(disturbed.candidates) == names
    for name in names:
        assert disturbed.selector.scores(name) == quiet.selector.scores(name)
