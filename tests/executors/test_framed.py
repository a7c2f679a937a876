"""Every executor puts the frame of a benchmark around its candidates."""

from pathlib import Path
from typing import Any

import pytest

from coevolve.executors.in_process import InProcessExecutor
from coevolve.executors.isolation import Limits, find_isolation
from coevolve.executors.local import LocalExecutor
from coevolve.search.trials import Result
from coevolve.testing.benchmark_checks import Bench
from tests.executors.projects import Project, trial, with_executor

BENCHMARK = '''
from coevolve import Pool


class Benchmark:
    pool = Pool(["t1"])
    starts = {}
    frame = """
def load(name):
    global module
    module = __import__(name)
    return module

def half(number):
    return module.answer(number) / 2
"""

    def check(self, harness): ...

    def prepare(self, harness):
        return harness.call("frame:half", 1)

    def run(self, harness, task, trial):
        return harness.call("frame:half", 1)
'''
HARNESS = b"def answer(number): return number"


def built(project: Project) -> Any:
    """The benchmark in this process."""
    namespace: dict[str, Any] = {}
    exec((project.folder / "tasks_of_mine.py").read_text(), namespace)
    return namespace["Benchmark"]()


@pytest.mark.parametrize("kind", ["workers", "inline"])
def test_trials_call_it(tmp_path: Path, kind: str) -> None:
    project = Project(tmp_path, BENCHMARK)
    candidate = project.contents.candidate(HARNESS)
    executor = (
        project.executor()
        if kind == "workers"
        else InProcessExecutor(built(project), contents=project.contents)
    )

    async def use(executor: LocalExecutor) -> tuple[str | None, Result]:
        prepared = await executor.prepare(candidate)
        return prepared.state, await executor.run(candidate, trial("t1"))

    state, result = with_executor(executor, use)
    assert (state, result.score) == ("0.5", 0.5)


def test_the_conformance_suite_calls_it_too(tmp_path: Path) -> None:
    bench = Bench(built(Project(tmp_path, BENCHMARK)), find_isolation("process"), Limits())
    tried = bench.try_out("c1", {"harness.py": HARNESS}, 2)
    assert (tried.fault, tried.state, tried.scores) == (None, 0.5, [0.5, 0.5])
