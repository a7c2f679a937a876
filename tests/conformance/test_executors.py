"""What every executor promises, whatever runs its trials."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coevolve.errors import StateError
from coevolve.executors.in_process import InProcessExecutor
from coevolve.search.trials import Blame, Executor, Result
from tests.executors.projects import Project, needs_bwrap, trial, with_executor

Make = Callable[[Project], Executor]


def in_process(project: Project) -> Executor:
    return InProcessExecutor(project.spec().build(), contents=project.contents, workers=2)


def in_threads(project: Project) -> Executor:
    workload, contents = project.spec().build(), project.contents
    return InProcessExecutor(workload, contents=contents, workers=2, threads=True)


def process(project: Project) -> Executor:
    return project.executor(workers=2, isolation="process")


def bwrap(project: Project) -> Executor:
    return project.executor(workers=2, isolation="bwrap")


every_executor = pytest.mark.parametrize(
    "make", [in_process, in_threads, process, pytest.param(bwrap, marks=needs_bwrap())]
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    # The benchmark of another test must not be found in its place.
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.modules, "tasks_of_mine", raising=False)
    return Project(tmp_path)


def facts(result: Result) -> Any:
    """What two executors must agree on."""
    fault = None if result.fault is None else (result.fault.blame, result.fault.reason)
    trace = json.loads(result.trace or "{}")
    return result.score, fault, result.usage.tokens_in, trace.get("trace"), trace.get("output")


@every_executor
def test_the_same_trials_give_the_same_results(project: Project, make: Make) -> None:
    candidate = project.contents.candidate()
    wanted = {
        "score:0.25": (0.25, None, 0, None, None),
        "trial": (0.3, None, 0, None, None),
        "answer:0.5": (0.5, None, 0, None, None),
        "whole:hi": (0.5, None, 3, {"answer": "HI", "note": ""}, "the candidate says hi\n"),
        "limited": (None, (Blame.INFRASTRUCTURE, "RateLimitError: slow down"), 0, None, None),
        "bug": (None, (Blame.BENCHMARK, "KeyError: 'label'"), 0, None, None),
        "disk": (
            None,
            (Blame.OPERATOR, "OSError: [Errno 28] No space left on device"),
            0,
            None,
            None,
        ),
    }

    async def use(executor: Executor) -> list[Result]:
        runs = [executor.run(candidate, trial(task, 3)) for task in wanted]
        return list(await asyncio.gather(*runs))

    results = with_executor(make(project), use)
    assert dict(zip(wanted, map(facts, results), strict=True)) == wanted
    assert all(result.usage.seconds > 0 for result in results)


@every_executor
def test_every_fault_of_a_candidate_is_its_own_and_later_trials_run(
    project: Project, make: Make
) -> None:
    faulty = project.contents.candidate(b"raise RuntimeError('at import')", name="c2")
    good = project.contents.candidate()

    async def use(executor: Executor) -> list[Any]:
        checked = await executor.check(faulty)
        first = await executor.run(faulty, trial("answer:1", candidate="c2"))
        failed = await executor.run(good, trial("call:fail"))
        return [checked, first, failed, await executor.run(good, trial("answer:1"))]

    *failures, last = with_executor(make(project), use)
    for failure in failures:
        assert failure.fault.blame is Blame.CANDIDATE
        assert failure.fault.reason
    assert last.score == 1.0


@every_executor
def test_what_preparing_gave_goes_with_the_trials(project: Project, make: Make) -> None:
    candidate = project.contents.candidate()

    async def use(executor: Executor) -> Result:
        assert (await executor.check(candidate)).fault is None
        prepared = await executor.prepare(candidate)
        project.contents.put("s", (prepared.state or "").encode())
        return await executor.run(candidate, trial("state", state="s"))

    assert with_executor(make(project), use).score == 0.75


@every_executor
def test_a_cancelled_attempt_gives_way_to_the_next(project: Project, make: Make) -> None:
    candidate = project.contents.candidate()

    async def use(executor: Executor) -> Result:
        attempt = asyncio.ensure_future(executor.run(candidate, trial("sleep:0.2")))
        await asyncio.sleep(0)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        return await executor.run(candidate, trial("answer:1"))

    assert with_executor(make(project), use).score == 1.0


@every_executor
def test_closing_twice_is_closing_once(project: Project, make: Make) -> None:
    candidate = project.contents.candidate()

    async def use(executor: Executor) -> None:
        assert (await executor.run(candidate, trial("answer:1"))).score == 1.0
        await executor.close()
        await executor.close()
        with pytest.raises(StateError, match="closed"):
            await executor.run(candidate, trial("answer:1"))

    with_executor(make(project), use)


@every_executor
def test_closing_without_any_trial_is_fine(project: Project, make: Make) -> None:
    async def use(executor: Executor) -> int:
        return executor.capacity

    assert with_executor(make(project), use) == 2
