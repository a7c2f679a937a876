"""Traces and usage of single attempts."""

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coevolve.core.outcomes import Usage
from coevolve.executors.in_process import InProcessExecutor
from coevolve.executors.workload import MOST_TRACE, Score, trace_text
from coevolve.search.candidate import Candidate
from coevolve.search.trials import Blame, Result, Split
from tests.executors.projects import trial


class Giving:
    """A workload that gives the same thing for every trial."""

    def __init__(self, given: Any, state: Any = None) -> None:
        self.given, self.state = given, state

    def check(self, harness: Any) -> None:
        pass

    def prepare(self, harness: Any) -> object:
        return self.state

    def run(self, harness: Any, task: str, trial: int) -> Any:
        return self.given


CANDIDATE = Candidate.of({"harness.py": b"x = 1"}, name="c1")


def gave(given: Any, split: Split = "validation") -> Result:
    executor = InProcessExecutor(Giving(given))
    return asyncio.run(executor.run(CANDIDATE, trial("t", split=split)))


def test_seconds_are_measured_unless_the_evaluator_knows_better() -> None:
    assert gave(1.0).usage.seconds > 0
    assert gave(Score(value=1.0, usage=Usage(tokens_out=5))).usage.seconds > 0
    assert gave(Score(value=1.0, usage=Usage(tokens_out=5))).usage.tokens_out == 5
    assert gave(Score(value=1.0, usage=Usage(seconds=90))).usage.seconds == 90


def test_a_trial_without_anything_to_show_has_no_trace() -> None:
    assert gave(1.0).trace is None


def test_without_an_evaluator_of_its_own_the_sealed_test_uses_the_only_one() -> None:
    assert gave(0.25, split="test").score == 0.25


@pytest.mark.parametrize(
    "trace",
    [float("nan"), {"when": Path("x")}, "\x1b" * 200_000, "\U0001f600" * 200_000, ["x"] * 99_999],
)
def test_a_trace_is_always_json_of_a_bounded_length(trace: object) -> None:
    text = trace_text({"trace": trace, "output": "x" * 16_000}) or ""
    assert len(text) <= MOST_TRACE
    assert set(json.loads(text, parse_constant=pytest.fail)) == {"trace", "output"}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (Score(value=1.0, usage={"tokens_in": 3}), "must be a Usage, got {'tokens_in': 3}"),  # type: ignore[arg-type]
        (Score(value=np.ones(3)), "must be a number in [0, 1]"),  # type: ignore[arg-type]
        (np.ones(3), "must be a number in [0, 1]"),
        ({"score": 1}, "must be a number in [0, 1]"),
    ],
)
def test_a_return_value_that_is_not_a_score_is_the_benchmarks_fault(
    given: Any, reason: str
) -> None:
    fault = gave(given).fault
    assert fault is not None
    assert fault.blame is Blame.BENCHMARK
    assert reason in fault.reason


@pytest.mark.parametrize("value", [np.float32(0.5), np.float64(0.5), np.array(0.5)])
def test_numbers_of_numpy_are_scores(value: Any) -> None:
    assert gave(value).score == gave(Score(value=value)).score == 0.5


def test_a_trace_that_is_not_json_becomes_text() -> None:
    result = gave(Score(value=1.0, trace=np.arange(3)))
    assert result.score == 1.0
    assert json.loads(result.trace or "") == {"trace": "array([0, 1, 2])"}


def test_a_state_that_is_not_json_is_a_fault() -> None:
    executor = InProcessExecutor(Giving(1.0, state={1, 2}))
    prepared = asyncio.run(executor.prepare(CANDIDATE))
    assert prepared.fault is not None
    assert "prepare() returned something that is not plain JSON" in prepared.fault.reason
