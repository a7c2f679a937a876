"""Forked workers behave like fresh ones, and workers are fresh where forking is not safe."""

import asyncio
import json
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from coevolve.executors.isolation.process_table import children
from coevolve.executors.local import LocalExecutor
from coevolve.search.trials import Blame, Result
from tests.effort import first
from tests.executors.projects import Project, runs, trial, until, with_executor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are fresh elsewhere")

BENCHMARK = """
import os, random, signal, socket, subprocess, sys, tempfile, threading, time
from pathlib import Path

import numpy as np

from coevolve.executors.workload import Score


class Benchmark:
    def __init__(self, host, act="", note=""):
        self.host, self.note = host, note
        with Path("built").open("a") as file:
            file.write("x")
        self.kept = getattr(self, "build_" + act)() if act else None

    def build_thread(self):
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()

    def build_file(self):
        return open("built")

    def build_socket(self):
        return socket.socketpair()

    def build_temporary(self):
        return tempfile.mkdtemp()

    def build_child(self):
        return subprocess.Popen(["sleep", "10"], start_new_session=True)

    def build_random(self):
        random.seed(1)

    def build_draws(self):
        return [random.random() for _ in range(100)]

    def build_sklearn(self):
        from sklearn.feature_extraction.text import TfidfVectorizer
        return TfidfVectorizer().fit(["one text", "another text"])

    def build_numpy(self):
        np.random.seed(1)

    def build_ask(self):
        return self.host.ask("model")

    def build_slow(self):
        time.sleep(600)

    def build_fail(self):
        raise ValueError("no settings")

    def build_once(self):
        if os.path.getsize("built") == 1:
            raise ConnectionError("the network is away")

    def check(self, harness): ...

    def prepare(self, harness): ...

    def run(self, harness, task, trial):
        what, _, said = task.partition(":")
        return Score(value=1.0, trace=getattr(self, what)(harness, said))

    def facts(self, harness, said):
        time.sleep(0.2)
        return {
            "pid": os.getpid(),
            "parent": os.getppid(),
            "session": os.getsid(0),
            "random": [random.random(), np.random.random()],
            "threads": os.environ.get("OPENBLAS_NUM_THREADS"),
            "temporary": tempfile.gettempdir(),
            "open": len(os.listdir("/proc/self/fd")),
            "answer": harness.call("answer", 3),
            "asked": self.host.ask("model")["text"],
        }

    def leave(self, harness, said):
        print("leaving", flush=True)
        os._exit(int(said))

    def kill(self, harness, said):
        os.kill(os.getpid(), signal.SIGKILL)

    def end_fork_server(self, harness, said):
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)

    def sleep(self, harness, said):
        time.sleep(600)
"""

CANDIDATE = b"def answer(number): return number"
COST = {"tokens_in": 5, "tokens_out": 1, "dollars": 0.5}


async def model() -> dict[str, Any]:
    await asyncio.sleep(0.01)
    return {"text": "yes", "usage": COST}


@pytest.fixture(autouse=True)
def one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coevolve.executors.local.processors", lambda: 1)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, BENCHMARK)


def executor(project: Project, act: str = "", **settings: Any) -> LocalExecutor:
    given = {"workers": 3, "services": {"model": model}, **settings}
    return project.executor(arguments={"act": act}, **given)


def ran(project: Project, *tasks: str, act: str = "", **settings: Any) -> list[Result]:
    """Results of tasks, all at once."""
    candidate = project.contents.candidate(CANDIDATE)

    async def use(executor: LocalExecutor) -> list[Result]:
        runs = (executor.run(candidate, trial(task, number)) for number, task in enumerate(tasks))
        return list(await asyncio.gather(*runs))

    return with_executor(executor(project, act, **settings), use)


def facts(results: list[Result]) -> list[dict[str, Any]]:
    assert [result.fault for result in results] == [None] * len(results)
    return [json.loads(result.trace or "")["trace"] for result in results]


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def built(project: Project) -> int:
    return len((project.folder / "built").read_text())


def test_the_benchmark_is_built_once_and_each_worker_is_its_own(project: Project) -> None:
    found = facts(ran(project, *["facts"] * 3))
    assert built(project) == 1
    assert len({fact["pid"] for fact in found}) == 3
    (parent,) = {fact["parent"] for fact in found}
    assert parent != os.getpid()
    assert [fact["session"] for fact in found] == [fact["pid"] for fact in found]
    assert [(fact["answer"], fact["asked"]) for fact in found] == [(3, "yes")] * 3
    assert {fact["threads"] for fact in found} == {None}
    assert until(lambda: not any(map(runs, (parent, *(fact["pid"] for fact in found)))))


def test_random_numbers_of_workers_differ(project: Project) -> None:
    drawn = [fact["random"] for fact in facts(ran(project, *["facts"] * 3))]
    assert len({python for python, _ in drawn}) == len({numpy for _, numpy in drawn}) == 3


def test_a_worker_has_no_descriptor_of_another(project: Project) -> None:
    counts = {fact["open"] for fact in facts(ran(project, *["facts"] * 3))}
    assert len(counts) == 1


@pytest.mark.parametrize(
    "act", first(2, ["thread", "socket", "child", "file", "temporary", "random", "numpy"])
)
def test_what_forks_must_not_share_makes_every_worker_fresh(project: Project, act: str) -> None:
    (project.folder / "built").write_text("")
    found = facts(ran(project, "facts", "facts", act=act, workers=2))
    assert {fact["parent"] for fact in found} == {os.getpid()}
    assert built(project) == 3
    if act in ("random", "numpy"):
        at = ("random", "numpy").index(act)
        assert found[0]["random"][at] == found[1]["random"][at], "as the benchmark seeded it"


@pytest.mark.parametrize("act", ["draws", "sklearn"])
def test_drawn_numbers_and_numeric_libraries_do_not_prevent_forking(
    project: Project, act: str
) -> None:
    found = facts(ran(project, "facts", "facts", act=act, workers=2))
    assert built(project) == 1
    assert len({tuple(fact["random"]) for fact in found}) == 2


def test_one_worker_is_fresh(project: Project) -> None:
    (found,) = facts(ran(project, "facts", workers=1))
    assert found["parent"] == os.getpid()


def test_the_cost_of_building_is_counted_once(project: Project) -> None:
    results = ran(project, *["facts"] * 3, act="ask")
    assert sorted(result.usage.tokens_in for result in results) == [5, 5, 10]


@pytest.mark.parametrize(
    ("task", "how"),
    [
        ("leave:3", "the worker ended with exit status 3; its last output: leaving"),
        ("kill", "the worker was ended by signal 9 (Killed)"),
    ],
)
def test_the_exit_status_of_a_worker_is_reported_and_it_is_replaced(
    project: Project, task: str, how: str
) -> None:
    dead, *others = ran(project, task, *["facts"] * 5)
    assert dead.fault is not None
    assert (dead.fault.reason, dead.fault.kind) == (how, "worker-died")
    facts(others)
    assert built(project) == 1


def test_a_worker_killed_while_idle_is_replaced(project: Project) -> None:
    candidate = project.contents.candidate(CANDIDATE)

    async def use(executor: LocalExecutor) -> None:
        for _ in range(2):
            (found,) = facts([await executor.run(candidate, trial("facts"))])
            os.kill(found["pid"], signal.SIGKILL)
            assert until(partial(gone, found["pid"]))

    with_executor(executor(project), use)


def test_a_fork_server_that_ended_is_replaced(project: Project) -> None:
    candidate = project.contents.candidate(CANDIDATE)

    async def use(executor: LocalExecutor) -> None:
        (found,) = facts([await executor.run(candidate, trial("facts"))])
        lost = await executor.run(candidate, trial("end_fork_server"))
        assert lost.fault is not None
        assert lost.fault.kind == "worker-died"
        (later,) = facts([await executor.run(candidate, trial("facts"))])
        assert later["parent"] not in (found["parent"], os.getpid())
        assert built(project) == 2

    with_executor(executor(project), use)


def test_a_worker_past_its_time_is_replaced_and_the_others_continue(project: Project) -> None:
    late, *others = ran(project, "sleep", *["facts"] * 4, trial_seconds=5)
    assert late.fault is not None
    assert late.fault.kind == "time-limit"
    facts(others)


def test_a_benchmark_that_cannot_be_built_fails_every_trial_alike(project: Project) -> None:
    results = ran(project, *["facts"] * 3, act="fail")
    for result in results:
        assert result.fault is not None
        assert result.fault.blame is Blame.OPERATOR
        assert "could not be built: ValueError: no settings" in result.fault.reason


def test_a_benchmark_whose_network_failed_is_built_again(project: Project) -> None:
    candidate = project.contents.candidate(CANDIDATE)

    async def use(executor: LocalExecutor) -> None:
        first = await executor.run(candidate, trial("facts"))
        assert first.fault is not None
        assert first.fault.blame is Blame.INFRASTRUCTURE
        facts([await executor.run(candidate, trial("facts"))])

    with_executor(executor(project, "once"), use)


def test_a_benchmark_that_is_never_built_is_ended(project: Project) -> None:
    before = set(children(os.getpid()))
    results = ran(project, *["facts"] * 2, act="slow", prepare_seconds=2)
    assert {result.fault and result.fault.kind for result in results} == {"start-limit"}
    assert until(lambda: not any(map(runs, set(children(os.getpid())) - before)))


def test_later_trials_do_not_wait_for_a_build_that_was_cancelled(project: Project) -> None:
    candidate = project.contents.candidate(CANDIDATE)

    async def use(executor: LocalExecutor) -> list[Result]:
        first = asyncio.ensure_future(executor.run(candidate, trial("facts")))
        await asyncio.sleep(1)
        second = asyncio.ensure_future(executor.run(candidate, trial("facts", 1)))
        return [await first, await second]

    results = with_executor(executor(project, "slow", prepare_seconds=3), use)
    assert [result.fault and result.fault.kind for result in results] == [
        "start-limit",
        "worker-start",
    ]


def test_closing_ends_a_build(project: Project) -> None:
    candidate = project.contents.candidate(CANDIDATE)

    async def use(executor: LocalExecutor) -> Result:
        attempt = asyncio.ensure_future(executor.run(candidate, trial("facts")))
        while not (project.folder / "built").exists():
            await asyncio.sleep(0.02)
        await executor.close()
        return await attempt

    closed = with_executor(executor(project, "slow"), use)
    assert closed.fault is not None
    assert closed.fault.kind == "closed"


def test_no_descriptor_and_no_process_remains(project: Project) -> None:
    ran(project, *["facts"] * 3)
    descriptors, processes = set(Path("/proc/self/fd").iterdir()), set(children(os.getpid()))
    ran(project, *["facts"] * 3, "kill", "leave:1")
    assert set(Path("/proc/self/fd").iterdir()) == descriptors
    assert set(children(os.getpid())) == processes
