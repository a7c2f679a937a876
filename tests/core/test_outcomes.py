"""Scores are numbers, on the scale of the pool; missing is not zero."""

import math
from typing import Any

import numpy as np
import pytest

from coevolve import Missing, Outcome, Usage
from coevolve.errors import ScoreError


@pytest.mark.parametrize("score", [0, 1, True, 0.25, np.float64(0.5), np.int64(1)])
def test_numbers_in_range_are_scores(score: Any) -> None:
    outcome = Outcome(candidate="c", task="t", score=score)
    assert type(outcome.score) is float
    assert outcome.score == float(score)


@pytest.mark.parametrize("score", [math.nan, math.inf, None, "1", b"1", [1.0], "high", 1 + 1j])
def test_anything_else_is_not(score: Any) -> None:
    with pytest.raises(ScoreError, match="task 't' must be a number in"):
        Outcome(candidate="c", task="t", score=score)


def test_negative_zero_is_zero() -> None:
    outcome = Outcome(candidate="c", task="t", score=-0.0)
    assert math.copysign(1, outcome.score) == 1  # type: ignore[arg-type]


def test_a_missing_outcome_needs_a_reason() -> None:
    assert Outcome(candidate="c", task="t", score=Missing("timeout")).score == Missing("timeout")
    with pytest.raises(ScoreError, match="needs a reason"):
        Missing("")


@pytest.mark.parametrize("trial", [-1, 0.5, True, "0"])
def test_trials_are_counted_from_zero(trial: Any) -> None:
    with pytest.raises(ScoreError, match="trial must be 0, 1, 2"):
        Outcome(candidate="c", task="t", trial=trial, score=1.0)


@pytest.mark.parametrize("usage", [{"dollars": -1}, {"seconds": math.nan}, {"tokens_in": "many"}])
def test_usage_is_never_negative(usage: dict[str, Any]) -> None:
    with pytest.raises(ScoreError, match=f"usage {next(iter(usage))}"):
        Usage(**usage)
