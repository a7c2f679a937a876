"""What a benchmark states about its limits, its sandboxes and its end holds in every executor."""

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import pytest

from coevolve.errors import ConfigError
from coevolve.executors.benchmark_needs import Needs, needs_of
from coevolve.executors.in_process import InProcessExecutor
from coevolve.executors.isolation import Limits
from coevolve.executors.local import LocalExecutor
from coevolve.search.trials import Result
from tests.executors.projects import Project, trial, until, with_executor

BENCHMARK = """
import os, signal, threading, time
from pathlib import Path

from coevolve.executors.isolation import current_ask
from coevolve.executors.workload import Score


class Benchmark:
    fresh_sandbox = True

    def __init__(self, folder=".", host=None):
        self.folder, self.host = Path(folder), host

    def note(self, text):
        with (self.folder / "notes").open("a") as file:
            file.write(text + "\\n")

    def check(self, harness): pass

    def prepare(self, harness): pass

    def run(self, harness, task, trial):
        return getattr(self, task)(harness)

    def parent(self, harness):
        return Score(value=1.0, trace=harness.call("born"))

    def slow(self, harness):
        try:
            self.note("begun")
            time.sleep(600)
        finally:
            time.sleep(1.5)
            self.note("cleaned up")

    def thread(self, harness):
        def work():
            try:
                harness.call("sleep")
            except BaseException as error:
                self.note(type(error).__name__)
        thread = threading.Thread(target=work)
        thread.start()
        self.note("begun")
        thread.join()

    def together(self, harness):
        services = {"meet": lambda: self.host.ask("meet")}
        return float(harness.call("meet", 3, services=services, concurrent=True))

    def gives_up(self, harness):
        services = {"stuck": lambda: self.host.ask("stuck")}
        return float(harness.call("gives_up", services=services, concurrent=True))

    def leaves(self, harness):
        services = {"stuck": lambda: self.host.ask("stuck"), "meet": lambda: 1}
        return float(harness.call("leaves", services=services, concurrent=True))

    def close(self):
        self.note("closed")
"""

CANDIDATE = b"""
import asyncio, os, time
import coevolve_host

BORN = time.monotonic()

def born():
    return [BORN, os.getppid()]

def sleep():
    time.sleep(600)

def meet(count):
    async def main():
        asks = [coevolve_host.ask_async("meet") for _ in range(count)]
        return sum(await asyncio.gather(*asks))
    return asyncio.run(main()) / count

def gives_up():
    async def main():
        try:
            await asyncio.wait_for(coevolve_host.ask_async("stuck"), 0.3)
        except TimeoutError:
            return 1
    return asyncio.run(main())

def leaves():
    coevolve_host.submit("stuck")
    time.sleep(0.3)
    return coevolve_host.ask("meet")
"""


def ran(tmp_path: Path, tasks: list[str], **settings: Any) -> list[Result]:
    project = Project(tmp_path, BENCHMARK)
    candidate = project.contents.candidate(CANDIDATE)

    async def use(executor: LocalExecutor) -> list[Result]:
        return [await executor.run(candidate, trial(task)) for task in tasks]

    arguments = {"folder": str(tmp_path)}
    return with_executor(project.executor(arguments=arguments, **settings), use)


def notes(tmp_path: Path) -> list[str]:
    return (tmp_path / "notes").read_text().split("\n")[:-1]


def test_every_trial_gets_a_new_sandbox_on_request(tmp_path: Path) -> None:
    first, second = ran(tmp_path, ["parent", "parent"])
    assert first.trace != second.trace
    assert notes(tmp_path) == ["closed"]


def test_a_worker_over_its_time_may_clean_up(tmp_path: Path) -> None:
    [result] = ran(tmp_path, ["slow"], trial_seconds=2, grace_seconds=30)
    assert result.fault is not None
    assert result.fault.kind == "time-limit"
    assert notes(tmp_path) == ["begun", "cleaned up", "closed"]


def test_a_worker_is_killed_after_its_grace(tmp_path: Path) -> None:
    ran(tmp_path, ["slow"], trial_seconds=2)
    assert notes(tmp_path) == ["begun"]


def test_a_call_in_a_thread_of_the_benchmark_ends_with_its_worker(tmp_path: Path) -> None:
    ran(tmp_path, ["thread"], trial_seconds=2, grace_seconds=30)
    assert sorted(notes(tmp_path)) == ["CallInterrupted", "begun", "closed"]


def test_threads_of_a_worker_wait_for_services_at_once(tmp_path: Path) -> None:
    meeting = asyncio.Event()
    present = 0

    async def meet() -> int:
        nonlocal present
        present += 1
        if present == 3:
            meeting.set()
        await asyncio.wait_for(meeting.wait(), 20)
        return 1

    [result] = ran(tmp_path, ["together"], services={"meet": meet})
    assert result.score == 1.0


@pytest.mark.parametrize("task", ["gives_up", "leaves"])
def test_a_cancelled_request_is_cancelled_in_the_engine(tmp_path: Path, task: str) -> None:
    ended: list[str] = []

    async def stuck() -> None:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    first, second = ran(tmp_path, [task, "parent"], services={"stuck": stuck})
    assert (first.score, second.score) == (1.0, 1.0)
    assert ended == ["cancelled"]


def test_costs_of_requests_at_once_are_added(tmp_path: Path) -> None:
    async def meet() -> dict[str, Any]:
        await asyncio.sleep(0.1)
        return {"usage": {"tokens_in": 7, "dollars": 0.5}}

    [result] = ran(tmp_path, ["together"], services={"meet": meet})
    assert (result.usage.tokens_in, result.usage.dollars) == (21, 1.5)


def test_needs_are_read_strictly() -> None:
    class Agents:
        limits: ClassVar[Any] = {"asks": 100_000}
        trial_seconds: Any = 7200
        grace_seconds: Any = 60

    assert needs_of(object()) == Needs()
    needs = needs_of(Agents())
    assert (needs.trial_seconds, needs.grace_seconds) == (7200, 60)
    assert needs.limited({"asks": None, "seconds": 5}) == Limits(asks=100_000, seconds=5)
    assert needs.limited({"asks": 3}).asks == 3
    Agents.limits = Limits(answer_mb=32)
    assert needs_of(Agents()).limits == {"answer_mb": 32}
    for name, value, why in (
        ("limits", {"ask": 3}, "'asks'"),
        ("limits", {"asks": -3}, "positive"),
        ("limits", 3, "map names"),
        ("trial_seconds", 0, "positive"),
        ("grace_seconds", "long", "positive"),
        ("fresh_sandbox", 1, "True or False"),
    ):
        with pytest.raises(ConfigError, match=why):
            needs_of(type("Wrong", (Agents,), {"limits": {}, name: value})())


def test_an_executor_in_the_process_uses_the_limits_of_the_benchmark() -> None:
    class Agents:
        limits: ClassVar[Any] = {"asks": 7}

        def check(self, harness: Any) -> None: ...
        def prepare(self, harness: Any) -> None: ...
        def run(self, harness: Any, task: str, trial: int) -> float:
            return float(harness.limits.asks == 7)

    assert InProcessExecutor(Agents())._limits.asks == 7
    assert InProcessExecutor(Agents(), limits=Limits())._limits.asks == 1000


def test_nothing_is_left_when_a_run_is_cancelled(tmp_path: Path) -> None:
    project = Project(tmp_path, BENCHMARK)
    candidate = project.contents.candidate(CANDIDATE)
    arguments = {"folder": str(tmp_path)}

    async def use(executor: LocalExecutor) -> None:
        attempt = asyncio.ensure_future(executor.run(candidate, trial("slow")))
        while not (tmp_path / "notes").exists():
            await asyncio.sleep(0.01)
        attempt.cancel()
        await asyncio.wait([attempt])

    with_executor(project.executor(arguments=arguments, grace_seconds=30), use)
    assert until(lambda: notes(tmp_path) == ["begun", "cleaned up", "closed"])
