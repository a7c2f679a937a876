"""Metrics of a search, against what can be counted by hand."""

from dataclasses import replace

import numpy as np
import pytest

from coevolve import Choice, Estimate, Selector, protocol
from coevolve.analysis import Matrix
from coevolve.analysis.replay_search import Played, Stage, measured, play
from coevolve.core.choice import HighestEstimate

CELLS = np.tri(6, 10, k=3)
"""Candidate i solves the first i + 4 tasks: true scores 0.4, 0.5, and 0.6 to 0.9."""


def estimate(value: float, half: float | None = None) -> Estimate:
    low, high = (None, None) if half is None else (value - half, value + half)
    return Estimate(
        value=value, se=half, low=low, high=high, tasks=2, drawn=2, pool_size=10, method="test"
    )


def ended(winner: str, estimates: list[Estimate | None], cells: np.ndarray = CELLS) -> Played:
    stage = Stage.of(Matrix.from_arrays("m", cells).series[0], seed=0)
    choice = Choice(candidate=winner, estimate=estimate(0.5), tied_with=(), why="")
    return Played(
        stage=stage,
        selector=Selector(stage.pool),
        choice=choice,
        estimates=tuple(estimates),
        evaluations=8,
        cost=None,
    )


def test_a_search_by_hand() -> None:
    found = measured(
        ended(
            "candidate-3",
            [estimate(0.6, 0.05), estimate(0.9, 0.1), estimate(0.8, 0.05), estimate(0.7, 0.25)],
        )
    )
    assert found["rank"] == 3
    assert found["regret"] == pytest.approx(0.2)
    assert found["spearman"] == pytest.approx(1 - 6 * (0 + 4 + 0 + 4) / (4 * 15))
    assert found["kendall"] == pytest.approx((3 - 3) / 6)
    assert found["rmse"] == pytest.approx(np.sqrt((0 + 0.04 + 0 + 0.04) / 4))
    assert found["coverage"] == pytest.approx(3 / 4)
    assert found["evaluations"] == 8
    assert found["share"] == pytest.approx(8 / 40)
    assert found["cost"] is None


def test_what_cannot_be_told_is_none() -> None:
    found = measured(ended("candidate-2", [estimate(0.5)] * 4))
    assert found["spearman"] is found["kendall"] is found["coverage"] is None


def test_candidates_without_an_estimate_enter_rank_and_regret_only() -> None:
    found = measured(ended("candidate-4", [estimate(0.6), estimate(0.7), estimate(0.8), None]))
    assert found["rank"] == 2
    assert found["regret"] == pytest.approx(0.1)
    assert found["spearman"] == found["kendall"] == 1
    assert found["rmse"] == pytest.approx(0)


def test_ties_share_the_best_rank() -> None:
    cells = CELLS.copy()
    cells[4] = cells[5][::-1]
    found = measured(ended("candidate-4", [estimate(0.5)] * 4, cells))
    assert found["rank"] == 1
    assert found["regret"] == 0


def test_a_starting_harness_may_win_where_the_protocol_lets_it() -> None:
    rule = replace(protocol("full"), choice=HighestEstimate(include_start=True))
    stage = Stage.of(Matrix.from_arrays("m", CELLS[::-1]).series[0], seed=0)
    found = measured(play(stage, rule, fraction=0.2))
    assert found["rank"] == 1
    assert found["regret"] == pytest.approx(-0.2)
