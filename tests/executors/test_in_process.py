"""Trials in the engine's own process: coroutines, threads, and candidates that are trusted."""

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coevolve.core.outcomes import Missing, Usage
from coevolve.errors import ConfigError, InputError
from coevolve.executors.in_process import InProcessExecutor, TrustedHarness
from coevolve.executors.isolation import HarnessFault
from coevolve.executors.workload import Score
from coevolve.search.candidate import Candidate
from coevolve.search.journal import MemoryJournal
from coevolve.search.trials import Blame, Result, Trial


class Calling:
    """A workload of one function."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self.run = run

    def check(self, harness: Any) -> None: ...

    def prepare(self, harness: Any) -> object: ...


def ran(run: Callable[..., Any], tasks: list[str], files: Any = None, **options: Any) -> Any:
    """The results of some trials that are started together."""
    journal = MemoryJournal()
    files = files or {"harness.py": b"def double(n): return 2 * n"}
    for content in files.values():
        journal.put(content)
    candidate = Candidate.of(files, name="c1")

    async def all_of_them() -> list[Result]:
        executor = InProcessExecutor(Calling(run), contents=journal, **options)
        trials = [Trial(candidate="c1", task=task) for task in tasks]
        try:
            return await asyncio.gather(*(executor.run(candidate, trial) for trial in trials))
        finally:
            await executor.close()

    return asyncio.run(all_of_them())


class TestCoroutines:
    def test_as_many_as_there_are_workers_run_at_once(self) -> None:
        now, most = 0, 0

        async def evaluate(harness: Any, task: str, trial: int) -> float:
            nonlocal now, most
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.01)
            now -= 1
            return 0.25

        results = ran(evaluate, [f"t{i}" for i in range(12)], workers=4)
        assert most == 4
        assert [result.score for result in results] == [0.25] * 12
        assert all(result.usage.seconds >= 0.009 for result in results)

    def test_what_it_returns_or_raises_is_taken_as_from_a_plain_function(self) -> None:
        async def evaluate(harness: Any, task: str, trial: int) -> Any:
            if task == "score":
                return Score(value=1.0, usage=Usage(tokens_in=7, seconds=90), trace="hi")
            if task == "missing":
                return Missing("the grader was away")
            if task == "reset":
                raise ConnectionResetError("peer went away")
            if task == "exit":
                sys.exit(3)
            if task == "call":
                return harness.call("double", 0.25)
            raise KeyError(task)

        def plain(harness: Any, task: str, trial: int) -> Any:
            coroutine = evaluate(harness, task, trial)
            try:
                coroutine.send(None)
            except StopIteration as done:
                return done.value

        tasks = ["score", "missing", "reset", "bug", "call"]
        results = ran(evaluate, tasks, isolation=None)
        for found, wanted in zip(results, ran(plain, tasks, isolation=None), strict=True):
            assert (found.score, found.fault) == (wanted.score, wanted.fault)
            assert (found.trace is None) == (wanted.trace is None)
        assert results[0].usage == Usage(tokens_in=7, seconds=90)
        assert [result.fault and result.fault.blame for result in results] == [
            None,
            Blame.INFRASTRUCTURE,
            Blame.INFRASTRUCTURE,
            Blame.BENCHMARK,
            None,
        ]

    def test_a_cancelled_trial_ends_at_once(self) -> None:
        ended = []

        async def evaluate(harness: Any, task: str, trial: int) -> float:
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(task)
            return 1.0

        async def cancel() -> None:
            executor = InProcessExecutor(Calling(evaluate))
            candidate = Candidate.of({"a": b""}, name="c1")
            attempt = asyncio.ensure_future(
                executor.run(candidate, Trial(candidate="c1", task="t"))
            )
            await asyncio.sleep(0.02)
            attempt.cancel()
            with pytest.raises(asyncio.CancelledError):
                await attempt
            await executor.close()

        asyncio.run(cancel())
        assert ended == ["t"]


class TestThreads:
    def test_plain_functions_run_at_once_in_threads_that_are_used_again(self) -> None:
        threads, meeting = set(), threading.Barrier(3, timeout=10)

        def evaluate(harness: Any, task: str, trial: int) -> float:
            threads.add(threading.current_thread().name)
            meeting.wait()
            return 1.0

        results = ran(evaluate, [f"t{i}" for i in range(9)], workers=3, threads=True)
        assert [result.score for result in results] == [1.0] * 9
        assert len(threads) == 3

    def test_without_threads_they_run_where_the_engine_does(self) -> None:
        def evaluate(harness: Any, task: str, trial: int) -> float:
            return float(threading.current_thread() is threading.main_thread())

        assert [result.score for result in ran(evaluate, ["a", "b"], workers=2)] == [1.0, 1.0]

    def test_a_cancelled_trial_is_abandoned(self) -> None:
        over = threading.Event()

        def evaluate(harness: Any, task: str, trial: int) -> float:
            if task == "long":
                over.wait(10)
            return 1.0

        async def cancel() -> float | None:
            executor = InProcessExecutor(Calling(evaluate), threads=True)
            candidate = Candidate.of({"a": b""}, name="c1")
            started = time.monotonic()
            attempt = asyncio.ensure_future(
                executor.run(candidate, Trial(candidate="c1", task="long"))
            )
            await asyncio.sleep(0.02)
            attempt.cancel()
            with pytest.raises(asyncio.CancelledError):
                await attempt
            result = await executor.run(candidate, Trial(candidate="c1", task="short"))
            await executor.close()
            assert time.monotonic() - started < 5
            return result.score

        assert asyncio.run(cancel()) == 1.0
        over.set()


@pytest.fixture
def trusted(tmp_path: Path) -> Iterator[Callable[..., TrustedHarness]]:
    made: list[TrustedHarness] = []

    def make(source: str, **others: str) -> TrustedHarness:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        for name, text in {"harness": source, **others}.items():
            (folder / f"{name}.py").write_text(text)
        made.append(TrustedHarness(folder, name="mine"))
        return made[-1]

    yield make
    for harness in made:
        harness.close()


Make = Callable[..., TrustedHarness]


class TestTrustedCandidates:
    def test_functions_and_attributes_are_called_with_any_objects(self, trusted: Make) -> None:
        harness = trusted("class agent:\n  def look(x): return x\ncalls = []")
        thing = object()
        assert harness.call("agent.look", thing) is thing
        harness.call("calls.append", 1)
        assert harness.call("calls.__len__") == 1, "the module is loaded once"

    @pytest.mark.parametrize(
        ("source", "kind", "reason"),
        [
            (
                "def f(): return 1 / 0",
                "ZeroDivisionError",
                "division by zero (harness.py, line 1)",
            ),
            ("def f(", "SyntaxError", "SyntaxError"),
            ("import no_such_module", "ModuleNotFoundError", "no_such_module"),
            ("def f(): import no_such_module", "ModuleNotFoundError", "no_such_module"),
            ("def f(): return f()", "RecursionError", "recursion"),
            ("def f(): raise PermissionError(13, 'no')", "PermissionError", "no"),
            ("import sys\ndef f(): sys.exit(1)", "SystemExit", "SystemExit"),
            ("def g(): ...", "missing-function", "harness has no function 'f'"),
        ],
    )
    def test_what_its_code_raises_is_its_own_fault(
        self, trusted: Make, source: str, kind: str, reason: str
    ) -> None:
        with pytest.raises(HarnessFault) as caught:
            trusted(source).call("f")
        assert caught.value.fault.blame is Blame.CANDIDATE
        assert caught.value.kind == kind
        assert reason in caught.value.reason

    def test_what_a_service_does_to_it_is_not(self, trusted: Make) -> None:
        source = "class RateLimitError(Exception): ...\ndef f(): raise RateLimitError('slow')"
        with pytest.raises(Exception, match="slow") as caught:
            trusted(source).call("f")
        assert not isinstance(caught.value, HarnessFault)

    def test_an_answer_of_another_type_is_its_own_fault(self, trusted: Make) -> None:
        with pytest.raises(HarnessFault, match="returned str 'x', not float"):
            trusted("def f(): return 'x'").call("f", returns=float)

    def test_an_async_function_is_awaited_by_who_calls(self, trusted: Make) -> None:
        harness = trusted("async def good(): return 3\nasync def bad(): return 1 / 0")
        assert asyncio.run(harness.call("good", returns=int)) == 3
        with pytest.raises(HarnessFault, match="division by zero"):
            asyncio.run(harness.call("bad"))

    def test_candidates_import_their_own_files(self, trusted: Make) -> None:
        source = "import helper, json\ndef f(): return helper.NAME, json.dumps(1)"
        sys.modules["helper"] = mine = type(sys)("helper")
        try:
            one, two = (trusted(source, helper=f"NAME = {name!r}") for name in ("one", "two"))
            assert one.call("f") == ("one", "1")
            assert two.call("f") == ("two", "1")
            assert sys.modules["helper"] is mine
        finally:
            del sys.modules["helper"]
        assert not any(str(one.folder) in path for path in sys.path)

    def test_code_that_looks_itself_up_finds_itself(self, trusted: Make) -> None:
        source = (
            "from __future__ import annotations\nfrom dataclasses import dataclass\n"
            "from typing import ClassVar\n@dataclass\nclass P:\n  x: int\n  y: ClassVar[int] = 1\n"
            "def f(): return P(3).x"
        )
        harness, before = trusted(source), set(sys.modules)
        assert harness.call("f") == 3
        harness.close()
        assert {n for n in set(sys.modules) - before if "candidate" in n} == set()

    def test_files_and_text(self, trusted: Make) -> None:
        harness = trusted("x = 1")
        assert harness.files == {"harness.py": b"x = 1"}
        assert harness.text == "x = 1"
        with pytest.raises(InputError, match=r"'mine' has 2 files \(harness.py, other.py\)"):
            _ = trusted("x = 1", other="y = 2").text


def test_a_session_records_that_nothing_is_isolated() -> None:
    assert InProcessExecutor(Calling(lambda *_: 1.0), isolation=None).isolation_name == "none"
    assert InProcessExecutor(Calling(lambda *_: 1.0)).isolation_name == "process"


def test_a_benchmark_with_a_frame_needs_a_sandbox() -> None:
    workload = Calling(lambda *_: 1.0)
    workload.frame = "x = 1"  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="choose an isolation"):
        InProcessExecutor(workload, isolation=None)


def test_workers_must_be_positive() -> None:
    with pytest.raises(InputError, match="workers must be at least 1, got 0"):
        InProcessExecutor(Calling(lambda *_: 1.0), workers=0)
