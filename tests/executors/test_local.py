"""Trials in worker processes: their results, and which workers are reused or replaced."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from coevolve.errors import ConfigError, InputError, StateError
from coevolve.executors.isolation import Limits
from coevolve.executors.isolation.process_table import descendants
from coevolve.executors.local import LocalExecutor
from coevolve.search.trials import Blame, Fault, Prepared, Result
from tests.executors.projects import Project, needs_bwrap, runs, trial, until, with_executor


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def ran(project: Project, *tasks: str, **settings: Any) -> list[Result]:
    """Results of tasks, one after another."""
    candidate = project.contents.candidate()

    async def use(executor: LocalExecutor) -> list[Result]:
        return [await executor.run(candidate, trial(task)) for task in tasks]

    return with_executor(project.executor(**settings), use)


def fault(result: Result | Prepared) -> Fault:
    assert result.fault is not None
    return result.fault


def test_a_trial_has_score_usage_and_trace(project: Project) -> None:
    (result,) = ran(project, "whole:hello", arguments={"note": "n"})
    assert result.score == 0.5
    assert (result.usage.tokens_in, result.usage.dollars) == (3, 0.5)
    assert result.usage.seconds > 0
    assert json.loads(result.trace or "") == {
        "trace": {"answer": "HELLO", "note": "n"},
        "output": "the candidate says hello\n",
    }


def test_a_candidate_is_checked_and_prepared_and_its_state_goes_with_its_trials(
    project: Project,
) -> None:
    good = project.contents.candidate()
    bad = project.contents.candidate(b"def answer(number): return 2", name="bad")

    async def use(executor: LocalExecutor) -> None:
        assert (await executor.check(good)).fault is None
        assert fault(await executor.check(bad)).reason.startswith("ValueError: answers wrongly")
        assert fault(await executor.prepare(bad)).blame is Blame.CANDIDATE
        prepared = await executor.prepare(good)
        assert json.loads(prepared.state or "") == {"share": 0.75}
        project.contents.put("s1", (prepared.state or "").encode())
        assert (await executor.run(good, trial("state", state="s1"))).score == 0.75
        assert fault(await executor.run(good, trial("state"))).kind == "TypeError"

    with_executor(project.executor(), use)


def test_tasks_of_the_sealed_test_have_their_own_evaluator(project: Project) -> None:
    candidate = project.contents.candidate()

    async def use(executor: LocalExecutor) -> Result:
        return await executor.run(candidate, trial("score:1", split="test"))

    assert with_executor(project.executor(), use).score == 0.125


FAULTS = [
    ("call:fail", Blame.CANDIDATE, "ValueError", "no idea"),
    ("call:nothing", Blame.CANDIDATE, "", "nothing"),
    ("limited", Blame.INFRASTRUCTURE, "RateLimitError", "slow down"),
    ("missing", Blame.INFRASTRUCTURE, "missing", "the grader was away"),
    ("disk", Blame.OPERATOR, "OSError", "No space left"),
    ("bug", Blame.BENCHMARK, "KeyError", "label"),
    ("leave", Blame.BENCHMARK, "SystemExit", "bye"),
    ("wrong:nan", Blame.BENCHMARK, "ScoreError", "got nan"),
    ("wrong:none", Blame.BENCHMARK, "ScoreError", "got None"),
    ("wrong:text", Blame.BENCHMARK, "ScoreError", "got '1.0'"),
    ("wrong:two", Blame.BENCHMARK, "ScoreError", "got 2"),
    ("odd:usage", Blame.BENCHMARK, "ScoreError", "must be a Usage, got {'tokens_in': 3}"),
    ("odd:repr", Blame.BENCHMARK, "ZeroDivisionError", "division by zero"),
    ("memory", Blame.DOUBTFUL, "MemoryError", "too complex to parse"),
    ("die", Blame.DOUBTFUL, "worker-died", "about to die"),
    ("garbage", Blame.DOUBTFUL, "worker-garbage", "was announced"),
]


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Result]]:
    """The result of each of these tasks, and of the trial after it, by one executor."""
    tasks = [task for task, *_ in FAULTS]
    pairs = [word for task in tasks for word in (task, "answer:0.5")]
    results = ran(Project(tmp_path_factory.mktemp("failures")), *pairs)
    return {task: results[2 * n : 2 * n + 2] for n, task in enumerate(tasks)}


@pytest.mark.parametrize(("task", "blame", "kind", "reason"), FAULTS)
def test_every_fault_has_a_blame_and_the_next_trial_runs(
    failures: dict[str, list[Result]], task: str, blame: Blame, kind: str, reason: str
) -> None:
    failed, following = failures[task]
    assert fault(failed).blame is blame
    assert kind in fault(failed).kind
    assert reason in fault(failed).reason
    assert failed.usage.seconds > 0
    assert following.score == 0.5


@needs_bwrap()
def test_a_worker_that_dies_has_a_suspect_only_if_a_candidate_could_reach_it(
    project: Project,
) -> None:
    before, after, within = ran(project, "die", "die:answered", "die:asked", isolation="bwrap")
    assert [fault(result).kind for result in (before, after, within)] == ["worker-died"] * 3
    assert fault(before).blame is Blame.INFRASTRUCTURE
    assert fault(after).blame is Blame.DOUBTFUL  # its answer may have caused it
    assert fault(within).blame is Blame.DOUBTFUL


def test_a_worker_that_dies_before_its_first_candidate_is_infrastructure(tmp_path: Path) -> None:
    (failed,) = ran(Project(tmp_path, "import os\nos._exit(3)"), "score:1")
    assert (fault(failed).blame, fault(failed).kind) == (Blame.INFRASTRUCTURE, "worker-died")


@pytest.mark.parametrize(
    ("raised", "blame"),
    [
        ("MemoryError()", Blame.INFRASTRUCTURE),
        ("TimeoutError()", Blame.INFRASTRUCTURE),
        ("RecursionError()", Blame.OPERATOR),
    ],
)
def test_no_candidate_is_suspected_when_the_benchmark_is_built(
    tmp_path: Path, raised: str, blame: Blame
) -> None:
    (failed,) = ran(Project(tmp_path, f"raise {raised}"), "score:1")
    assert fault(failed).blame is blame


def test_a_request_that_cannot_be_begun_does_not_end_the_worker(project: Project) -> None:
    candidate = project.contents.candidate()
    project.contents.put("s", b"no JSON")

    async def use(executor: LocalExecutor) -> list[Result]:
        trials = [trial("pid"), trial("pid", state="s"), trial("pid")]
        return [await executor.run(candidate, each) for each in trials]

    first, failed, last = with_executor(project.executor(), use)
    assert fault(failed).kind == "JSONDecodeError"
    assert pids([first]) == pids([last])


def test_traces_and_scores_of_numpy_are_taken(project: Project) -> None:
    (result,) = ran(project, "numpy")
    assert result.score == 0.5
    assert json.loads(result.trace or "") == {"trace": "array([0, 1, 2])"}


def test_a_fault_of_the_benchmark_says_where(project: Project) -> None:
    (failed,) = ran(project, "bug")
    assert "tasks_of_mine.py" in json.loads(failed.trace or "")["error"]


def test_what_a_failing_candidate_printed_is_in_the_trace(project: Project) -> None:
    source = b"def boast(): print('watch this'); return 1 / 0"
    candidate = project.contents.candidate(source)
    failed = with_executor(
        project.executor(), lambda executor: executor.run(candidate, trial("call:boast"))
    )
    assert fault(failed).kind == "ZeroDivisionError"
    assert json.loads(failed.trace or "") == {"output": "watch this\n"}


def test_a_trace_is_cut_to_a_bounded_length(project: Project) -> None:
    (result,) = ran(project, "huge")
    assert result.score == 1.0
    assert 1_000 < len(result.trace or "") < 65_000


def test_a_state_too_large_to_keep_is_a_fault(project: Project) -> None:
    candidate = project.contents.candidate()
    found = with_executor(project.executor("unlearned"), lambda e: e.prepare(candidate))
    assert fault(found).blame is Blame.BENCHMARK
    assert "at most 16,000,000" in fault(found).reason


@pytest.mark.parametrize(
    ("factory", "kind", "reason"),
    [
        ("broken", "KeyError", "tasks_of_mine.py, line"),
        ("Benchmrk", "ConfigError", "has no 'Benchmrk'"),
        ("Benchmark", "TypeError", "unexpected keyword argument 'colour'"),
    ],
)
def test_a_benchmark_that_cannot_be_built_is_the_operators_fault(
    project: Project, factory: str, kind: str, reason: str
) -> None:
    arguments = {"colour": 1} if kind == "TypeError" else {}
    (failed,) = ran(project, "score:1", factory=factory, arguments=arguments)
    assert (fault(failed).blame, fault(failed).kind) == (Blame.OPERATOR, kind)
    assert reason in fault(failed).reason
    assert fault(failed).advice


@pytest.mark.parametrize(
    ("source", "kind", "reason"),
    [
        ("import numpi", "ModuleNotFoundError", "tasks_of_mine.py, line 1"),
        ("def Benchmark(:", "SyntaxError", "tasks_of_mine.py, line 1"),
        ("x = 1\nraise SystemExit(2)", "SystemExit", "tasks_of_mine.py, line 2"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_named_with_its_line(
    tmp_path: Path, source: str, kind: str, reason: str
) -> None:
    (failed,) = ran(Project(tmp_path, source), "score:1")
    assert (fault(failed).blame, fault(failed).kind) == (Blame.OPERATOR, kind)
    assert reason in fault(failed).reason
    assert fault(failed).advice


def test_services_answer_benchmarks_and_candidates(project: Project) -> None:
    async def model(number: float) -> float:
        await asyncio.sleep(0)
        return number * 2

    def refused(number: float) -> float:
        raise type("AuthenticationError", (Exception,), {})("bad key")

    services = {"model": model, "plain": lambda number: number, "refused": refused}
    unknown = {**services, "odd": lambda number: {1, 2}}
    results = ran(
        project,
        "ask:model",
        "ask:plain",
        "relay:0.3",
        "ask:refused",
        "ask:modell",
        "ask:odd",
        services=unknown,
    )
    assert [result.score for result in results[:3]] == [0.5, 0.25, 0.6]
    assert fault(results[3]).blame is Blame.OPERATOR
    assert "Did you mean 'model'?" in fault(results[4]).reason
    assert "not plain JSON" in fault(results[5]).reason


def pids(results: list[Result]) -> list[int]:
    return [json.loads(result.trace or "")["trace"] for result in results]


def test_a_worker_that_holds_the_candidate_is_preferred(project: Project) -> None:
    first, second = project.contents.candidate(), project.contents.candidate(b"x = 1", name="c2")

    async def use(executor: LocalExecutor) -> list[Result]:
        order = [first, second, first, second, second, first]
        return [await executor.run(candidate, trial("pid")) for candidate in order]

    found = pids(with_executor(project.executor(workers=2), use))
    assert found[0] != found[1]
    assert found == [found[index] for index in (0, 1, 0, 1, 1, 0)]


def test_without_a_better_one_the_longest_idle_worker_is_taken(project: Project) -> None:
    names = ["c1", "c2", "c3", "c1"]
    candidates = [project.contents.candidate(f"x = {n!r}".encode(), name=n) for n in names]

    async def use(executor: LocalExecutor) -> list[Result]:
        return [await executor.run(candidate, trial("pid")) for candidate in candidates]

    found = pids(with_executor(project.executor(workers=2), use))
    assert found[2] == found[0]
    assert found[3] == found[1]


def test_no_more_attempts_at_once_than_workers(project: Project) -> None:
    candidate = project.contents.candidate()

    async def use(executor: LocalExecutor) -> list[Result]:
        assert executor.capacity == 2
        attempts = [executor.run(candidate, trial("pid", number)) for number in range(8)]
        return list(await asyncio.gather(*attempts))

    assert len(set(pids(with_executor(project.executor(workers=2), use)))) <= 2


@pytest.mark.parametrize(
    ("task", "blame"), [("call:sleep", Blame.CANDIDATE), ("sleep:600", Blame.DOUBTFUL)]
)
def test_past_the_time_limit_the_worker_is_replaced(
    project: Project, task: str, blame: Blame
) -> None:
    late, following = ran(project, task, "score:0.5", trial_seconds=2)
    assert (fault(late).blame, fault(late).kind) == (blame, "time-limit")
    assert "2 s" in fault(late).reason
    assert late.usage.seconds >= 2
    assert following.score == 0.5


def test_the_candidates_own_limit_is_finer(project: Project) -> None:
    (late,) = ran(project, "call:sleep", limits=Limits(seconds=0.5))
    assert (fault(late).blame, fault(late).kind) == (Blame.CANDIDATE, "time-limit")


def test_a_benchmark_that_is_never_built_is_the_operators_fault(tmp_path: Path) -> None:
    slow = Project(tmp_path, "import time\ntime.sleep(600)")
    (failed,) = ran(slow, "score:1", prepare_seconds=1)
    assert (fault(failed).blame, fault(failed).kind) == (Blame.OPERATOR, "start-limit")


async def under_way(executor: LocalExecutor, tasks: list[str], count: int) -> set[int]:
    """The processes at work on some tasks, as soon as there are so many."""
    found: set[int] = set()
    while len(found) < count:
        await asyncio.sleep(0.02)
        workers = [executor.worker_of(trial(task)) for task in tasks]
        found = {pid for worker in workers if worker is not None for pid in descendants(worker)}
    return found


CHILD = "stubborn:import time; time.sleep(600)"


@pytest.mark.parametrize("task", ["call:sleep", CHILD])
def test_cancelling_ends_the_attempt_and_all_its_processes(project: Project, task: str) -> None:
    candidate = project.contents.candidate()

    async def use(executor: LocalExecutor) -> None:
        attempt = asyncio.ensure_future(executor.run(candidate, trial(task)))
        processes = await under_way(executor, [task], 2)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        assert until(lambda: not any(map(runs, processes)))
        assert (await executor.run(candidate, trial("answer:0.5"))).score == 0.5

    with_executor(project.executor(), use)


def test_closing_ends_attempts_under_way_and_leaves_nothing(project: Project) -> None:
    candidate = project.contents.candidate()
    tasks = ["call:sleep", CHILD, "score:1"]

    async def use(executor: LocalExecutor) -> None:
        attempts = [asyncio.ensure_future(executor.run(candidate, trial(t))) for t in tasks]
        processes = await under_way(executor, tasks, 4)
        await asyncio.gather(executor.close(), executor.close())
        results = await asyncio.gather(*attempts)
        assert [fault(result).kind for result in results] == ["closed"] * 3
        assert until(lambda: not any(map(runs, processes)))
        await executor.close()
        with pytest.raises(StateError, match="closed"):
            await executor.run(candidate, trial("score:1"))
        with pytest.raises(StateError, match="closed"):
            await executor.check(candidate)

    with_executor(project.executor(workers=2), use)


def test_temporary_files_of_workers_are_removed(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    ran(project, "answer:1", "call:sleep", trial_seconds=1)
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_worker_killed_while_idle_is_replaced(project: Project) -> None:
    candidate = project.contents.candidate()

    async def use(executor: LocalExecutor) -> None:
        (pid,) = pids([await executor.run(candidate, trial("pid"))])
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert (await executor.run(candidate, trial("answer:0.5"))).score == 0.5

    with_executor(project.executor(), use)


def test_contents_that_cannot_be_read_are_the_operators_fault(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(candidate: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(project.contents, "checkout", full)
    (failed,) = ran(project, "score:1")
    assert fault(failed).blame is Blame.OPERATOR


@pytest.mark.parametrize("settings", [{"workers": 0}, {"trial_seconds": 0}])
def test_limits_are_positive(project: Project, settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="must be positive, got 0"):
        project.executor(**settings)


def test_the_folder_of_the_benchmark_must_exist(project: Project) -> None:
    project.folder = project.folder / "absent"
    with pytest.raises(ConfigError, match="absent does not exist"):
        project.executor()
