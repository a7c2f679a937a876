"""Groups of solvability, anchors and never-solved tasks."""

import numpy as np
import pytest

from coevolve import History, OutcomeTable


def history(means: list[float], counts: list[int]) -> History:
    return History(mean=np.array(means), count=np.array(counts))


def test_groups_have_the_borders_of_the_paper() -> None:
    """p = 0; 0 < p < 1/3; 1/3 <= p <= 2/3; p > 2/3."""
    means = [0.0, 0.01, 0.33, 1 / 3, 0.5, 2 / 3, 0.67, 1.0, np.nan]
    groups = history(means, [3] * 8 + [0]).groups()
    assert groups == {"never": 1, "sometimes": 2, "mixed": 3, "mostly": 2, "unseen": 1}


def test_phase_zero_of_the_papers_terminal_bench_run() -> None:
    groups = history([0.0] * 32 + [0.5] * 23 + [1.0] * 34, [2] * 89).groups()
    assert list(groups.values()) == [32, 0, 23, 34, 0]


def test_unseen_tasks_are_neither_solved_nor_failed() -> None:
    seen = history([np.nan, 0.0, 0.8], [0, 2, 5])
    assert seen.never_solved.tolist() == [False, True, False]
    assert seen.anchors.tolist() == [pytest.approx(0.4), 0.0, 0.8]
    assert history([np.nan], [0]).anchors.tolist() == [0.5]


def test_a_tiny_score_is_still_a_solve() -> None:
    table = OutcomeTable(1)
    table.open("c", round=0)
    table.add("c", np.array([0]), np.array([0]), np.array([1e-18]))
    assert not table.history().never_solved[0]
    assert not history([1e-4], [9]).never_solved[0]
