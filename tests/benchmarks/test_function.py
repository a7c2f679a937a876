"""A Python function as a benchmark, in the program and in a file."""

from pathlib import Path
from typing import Any

import pytest

from coevolve.benchmarks import Benchmark, FunctionBenchmark, SealedBenchmark, load_file
from coevolve.benchmarks.base import sealed_tasks, services_of
from coevolve.core.outcomes import Missing
from coevolve.errors import ConfigError, InputError
from coevolve.executors.isolation import HarnessFault
from coevolve.executors.workload import Score
from coevolve.models.model_client import StubModel
from coevolve.models.model_errors import TrialCapError
from tests.benchmarks.harnesses import at_work

SAME = {"harness.py": "def double(n): return n"}
RIGHT = {"harness.py": "def double(n): return 2 * n"}
STARTS = {"same": SAME, "right": RIGHT}
FILE = """
TASKS = {"small": ["1", "2"], "large": ["100"]}
WEIGHTS = {"small": 3, "large": 1}
COSTS = {"1": 1.0, "2": 2.0, "100": 9.0}
TEST_TASKS = ["7"]
FUNCTIONS = ["double"]

def evaluate(harness, task, trial):
    return float(harness.call("double", int(task)) == 2 * int(task))
"""


def evaluate(harness: Any, task: str) -> float:
    return float(harness.call("double", int(task)) == 2 * int(task))


def made(**changes: Any) -> FunctionBenchmark:
    return FunctionBenchmark(
        changes.pop("evaluate", evaluate), **{"tasks": ["1", "2"], "starts": STARTS} | changes
    )


def written(folder: Path, text: str) -> Path:
    path = folder / "benchmark.py"
    path.write_text(text)
    return path


def test_trials_call_the_candidate_in_its_sandbox() -> None:
    benchmark = made()
    for files, score in ((SAME, 0.0), (RIGHT, 1.0)):
        with at_work(files) as harness:
            benchmark.check(harness)
            assert benchmark.prepare(harness) is None
            assert benchmark.run(harness, "2", 0) == score
            assert benchmark.run_test(harness, "3", 0) == score


def test_it_is_a_benchmark() -> None:
    assert isinstance(made(), Benchmark)
    assert isinstance(made(test_tasks=["3"]), SealedBenchmark)
    assert sealed_tasks(made(test_tasks=["3"])) == ("3",)
    assert sealed_tasks(made()) == ()
    assert services_of(made()) == {}


def test_a_function_may_take_the_trial_and_return_more_than_a_number() -> None:
    def with_trial(harness: Any, task: str, trial: int) -> Score | Missing:
        return Missing("no luck") if trial else Score(value=0.5, trace={"task": task})

    benchmark = made(evaluate=with_trial)
    with at_work(SAME) as harness:
        assert benchmark.run(harness, "1", 0) == Score(value=0.5, trace={"task": "1"})
        assert benchmark.run(harness, "1", 1) == Missing("no luck")


def test_the_test_may_have_a_function_of_its_own() -> None:
    benchmark = made(test_tasks=["9"], evaluate_test=lambda harness, task: 0.25)
    with at_work(RIGHT) as harness:
        assert (benchmark.run(harness, "1", 0), benchmark.run_test(harness, "9", 0)) == (1.0, 0.25)
    with pytest.raises(ConfigError, match="evaluate_test has no effect without test tasks"):
        made(evaluate_test=evaluate)


def test_another_trial_gets_another_sample_of_the_model() -> None:
    class Noting(StubModel):
        def ask(self, service: str, /, **payload: Any) -> Any:
            asked.append(payload.get("sample", 0))
            return super().ask(service, **payload)

    asked: list[int] = []
    asks = "import coevolve_host\ndef double(n): return coevolve_host.ask('model', prompt='2')"
    benchmark = made(
        host=Noting(), evaluate=lambda harness, task: harness.call("double", 1)["text"] == "stub"
    )
    with at_work({"harness.py": asks}) as harness:
        assert [benchmark.run(harness, "1", trial) for trial in range(3)] == [1.0, 1.0, 1.0]
    assert [sample for sample in asked if sample] == [1000, 2000]


def test_check_and_prepare_have_the_caps_of_a_trial() -> None:
    asks = "import coevolve_host\ndef double(n): return coevolve_host.ask('model', prompt='2')"
    twice = lambda harness: [harness.call("double", 1), harness.call("double", 1)]  # noqa: E731
    benchmark = made(host=StubModel(trial_calls=1), check=twice, prepare=twice)
    for step in (benchmark.check, benchmark.prepare):
        with at_work({"harness.py": asks}) as harness, pytest.raises(TrialCapError):
            step(harness)


def test_what_prepare_returns_is_there_in_every_trial() -> None:
    benchmark = made(
        prepare=lambda harness: {"learned": harness.call("double", 5)},
        evaluate=lambda harness, task: harness.state["learned"] / 10,
    )
    with at_work(RIGHT) as harness:
        state = benchmark.prepare(harness)
    assert state == {"learned": 10}
    with at_work(RIGHT, state=state) as harness:
        assert benchmark.run(harness, "1", 0) == 1.0


@pytest.mark.parametrize(
    ("source", "functions", "message"),
    [
        ("def double(n): return n", ["double", "triple"], "has no function 'triple'"),
        ("double = 3", ["double"], "has no function 'double'"),
        ("import no_such_module_here", [], "no_such_module_here"),
        ("def double(n: return n", [], "SyntaxError"),
        ("raise ValueError('at import')", [], "at import"),
    ],
)
def test_check_loads_the_candidate_and_looks_for_its_functions(
    source: str, functions: list[str], message: str
) -> None:
    with at_work({"harness.py": source}) as harness, pytest.raises(HarnessFault, match=message):
        made(functions=functions).check(harness)


def test_check_calls_nothing() -> None:
    with at_work({"harness.py": "def double(n): raise SystemExit(3)"}) as harness:
        made(functions=["double"]).check(harness)


def test_a_check_of_ones_own_comes_on_top() -> None:
    def check(harness: Any) -> None:
        if not (harness.folder / "notes.md").is_file():
            raise HarnessFault("no-notes", "has no notes.md")

    with at_work(SAME) as harness, pytest.raises(HarnessFault, match=r"has no notes\.md"):
        made(check=check).check(harness)
    with at_work({**SAME, "notes.md": ""}) as harness:
        made(check=check).check(harness)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"evaluate": lambda harness: 1.0}, r"takes \(harness\)"),
        ({"evaluate": lambda a, b, c, d: 1.0}, "must be a function of"),
        ({"evaluate": 3}, "must be a function of .*, got 3"),
        ({"tasks": []}, "needs at least one task"),
        ({"starts": {}}, "a search needs a starting harness, got none"),
        ({"test_tasks": ["2"]}, "test task '2' is also a validation task"),
    ],
)
def test_what_makes_no_benchmark_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        made(**changes)


def test_starts_may_be_folders_that_name_them(tmp_path: Path) -> None:
    for parent in ("x", "y"):
        (tmp_path / parent / "a").mkdir(parents=True)
        (tmp_path / parent / "a" / "harness.py").write_text(parent)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "harness.py").write_text("b")
    assert list(made(starts=[tmp_path / "x" / "a", tmp_path / "b"]).starts) == ["a", "b"]
    with pytest.raises(ConfigError, match="two starting harnesses are named 'a'"):
        made(starts=[tmp_path / "x" / "a", tmp_path / "y" / "a"])


def test_a_file_gives_all_a_benchmark_has(tmp_path: Path) -> None:
    benchmark = load_file(written(tmp_path, FILE), STARTS)
    assert benchmark.pool.names == ("small", "large")
    assert benchmark.pool.weights.tolist() == [0.75, 0.25]
    assert benchmark.pool.costs is not None
    assert benchmark.test_tasks == ("7",)
    with at_work(RIGHT) as harness:
        benchmark.check(harness)
        assert benchmark.run(harness, "100", 0) == 1.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def evaluate", "def evaluation", "not define evaluate, .* Did you mean 'evaluation'?"),
        ("TASKS = {", "TASKZ = {", "does not define TASKS"),
        ("TEST_TASKS", "TEST_TASK", "TEST_TASK, which has no effect. Did you mean 'TEST_TASKS'?"),
        ('["7"]', '"7"', "TEST_TASKS must be a list of names, got '7'"),
        ('["7"]', '["1"]', "test task '1' is also a validation task"),
        ('["1", "2"]', '["1", "1"]', "task '1' appears more than once"),
        ('{"small": 3, "large": 1}', "[3, 1]", r"WEIGHTS must map names to numbers, got \[3, 1\]"),
        ('"100": 9.0', '"100": -1', "cost of task '100' must be positive"),
        ("(harness, task, trial)", "()", "must be a function of"),
        ("FUNCTIONS", "prepare = 3\nFUNCTIONS", "prepare must be a function, got 3"),
        ("FUNCTIONS = [", "FUNCTIONS = [[", "line 6: SyntaxError"),
    ],
)
def test_mistakes_in_a_file_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = written(tmp_path, FILE.replace(old, new, 1))
    with pytest.raises(ConfigError, match=message) as error:
        load_file(path, STARTS)
    assert str(path) in str(error.value)
