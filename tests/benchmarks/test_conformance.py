"""The conformance suite: what it passes, what it notes, and what it finds wrong."""

import itertools
from typing import Any

import pytest

from coevolve.benchmarks import CommandBenchmark, FunctionBenchmark
from coevolve.benchmarks.synthetic import SyntheticWorld
from coevolve.benchmarks.synthetic.synthetic_benchmark import SyntheticBenchmark
from coevolve.core.outcomes import Missing
from coevolve.executors.failures import CandidateFault
from coevolve.testing import Finding, assert_benchmark, check_benchmark
from tests.benchmarks.harnesses import LIMITS

HARNESS = {"harness.py": "def answer(task): return task"}
STARTS = {"a": HARNESS, "b": {"harness.py": "def answer(task): return ''"}}


def evaluate(harness: Any, task: str) -> float:
    return float(harness.call("answer", task, returns=str) == task)


def made(**changes: Any) -> FunctionBenchmark:
    given = {"tasks": ["t1", "t2"], "starts": STARTS, "test_tasks": ["sealed-1"]} | changes
    return FunctionBenchmark(given.pop("evaluate", evaluate), **given)


def found(benchmark: Any, kind: str) -> list[Finding]:
    return [one for one in check_benchmark(benchmark, limits=LIMITS) if one.kind == kind]


def about(benchmark: Any, kind: str) -> dict[str, str]:
    return {one.about: one.detail for one in found(benchmark, kind)}


def test_a_good_benchmark_passes_everything() -> None:
    findings = check_benchmark(made(), limits=LIMITS)
    assert {one.kind for one in findings} == {"passed"}
    assert {one.about for one in findings} == {
        "pool",
        "test",
        "starts",
        "check",
        "prepare",
        "run",
        "faults",
    }
    assert_benchmark(made(), limits=LIMITS)


def test_a_synthetic_world_conforms() -> None:
    world = SyntheticWorld(pools={"all": 5})
    assert not found(SyntheticBenchmark(world, test_tasks=3), "failed")


def test_a_command_conforms() -> None:
    command = ["sh", "-c", 'test -s answer.txt && echo "{\\"score\\": $(cat answer.txt)}"']
    starts = {"low": {"answer.txt": "0.1"}, "high": {"answer.txt": "0.9"}}
    benchmark = CommandBenchmark(command, tasks=["t"], starts=starts)
    assert not found(benchmark, "failed")
    assert "start 'low' scores 0.1, both times" in [
        one.detail for one in found(benchmark, "passed")
    ]


def test_random_scores_and_a_lacking_test_are_noted() -> None:
    values = itertools.cycle([0.25, 0.75])
    benchmark = made(evaluate=lambda harness, task: next(values), test_tasks=[])
    noted = about(benchmark, "noted")
    assert "the same trial gave 0.25, then 0.75" in noted["run"]
    assert "no sealed test" in noted["test"]
    assert not found(benchmark, "failed")


def test_a_missing_trial_is_noted() -> None:
    benchmark = made(evaluate=lambda harness, task: Missing("model is down"))
    assert "model is down" in about(benchmark, "noted")["run"]


@pytest.mark.parametrize(
    ("changes", "where", "message"),
    [
        ({"evaluate": lambda harness, task: 7}, "run", r"must be a number in [0, 1], got 7"),
        ({"evaluate": lambda harness, task: dict[str, float]()["x"]}, "run", "KeyError"),
        ({"prepare": lambda harness: {1, 2}}, "prepare", "not plain JSON"),
        ({"prepare": lambda harness: {"a": (1, 2)}}, "prepare", "changes in JSON"),
        ({"prepare": lambda harness: {"x": ["sealed-1"]}}, "sealed", "test task 'sealed-1'"),
        ({"functions": ["other"]}, "check", "has no function 'other'"),
        (
            {"evaluate": lambda harness, task: harness.call("answer", {"all": ["sealed-1"]}) == 0},
            "sealed",
            "saw the test task 'sealed-1'",
        ),
        (
            {"starts": {**STARTS, "c": {"harness.py": "known = ['sealed-1']"}}},
            "sealed",
            "start 'c' has the test task 'sealed-1' in its files",
        ),
    ],
)
def test_what_the_engine_cannot_rely_on_fails(
    changes: dict[str, Any], where: str, message: str
) -> None:
    assert message in about(made(**changes), "failed")[where]
    with pytest.raises(AssertionError, match=where):
        assert_benchmark(made(**changes), limits=LIMITS)


def test_an_evaluator_that_breaks_on_a_broken_candidate_fails() -> None:
    class Careless:
        pool = made().pool
        starts = made().starts

        def check(self, harness: Any) -> None: ...

        def prepare(self, harness: Any) -> object:
            return None

        def run(self, harness: Any, task: str, trial: int) -> float:
            source = (harness.folder / "harness.py").read_text()
            return 1.0 / len(source.split("def answer")[1:])

    assert "an empty candidate counts as a fault of the benchmark in run: ZeroDivisionError" in (
        found(Careless(), "failed")[0].detail
    )


def test_a_benchmark_may_blame_the_candidate_itself() -> None:
    def check(harness: Any) -> None:
        if b"def answer" not in (harness.folder / "harness.py").read_bytes():
            raise CandidateFault("no answer in sight")

    assert not found(made(check=check), "failed")


def test_what_is_no_benchmark_is_named_without_running_anything() -> None:
    assert about(object(), "failed") == {
        "shape": "object has no pool, starts, check, prepare, run"
    }
