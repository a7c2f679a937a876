"""Orders of a matrix: the same every time, and neighbours are alike."""

import numpy as np
import pytest

from coevolve.views.grid_order import alike, grid_orders, imputed
from coevolve.views.timeline import Timeline
from tests.views.conftest import Ended


def test_orders_are_permutations_that_do_what_they_say(ended: Ended) -> None:
    grid = Timeline.of(ended.journal).grid()
    found = grid_orders(grid)
    for orders, size in ((found.tasks, len(grid.tasks)), (found.candidates, len(grid.candidates))):
        for order in orders.values():
            assert sorted(order.tolist()) == list(range(size))
    assert list(np.diff(grid.solvability[found.tasks["solvability"]]) <= 0) == [True] * 19
    values = [grid.candidates[at].estimate for at in found.candidates["score"].tolist()]
    scores = [value["value"] for value in values if value is not None]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("size", [60, 700])
def test_rows_of_two_kinds_are_told_apart(size: int) -> None:
    rng = np.random.default_rng(3)
    kind = rng.permutation(np.arange(size) % 2).astype(bool)
    rows = np.where(kind[:, None], np.arange(20) < 10, np.arange(20) >= 5).astype(float)
    flipped = rng.random(rows.shape) < 0.05
    rows = np.where(flipped, 1 - rows, rows)
    order = alike(rows, np.ones(size, dtype=bool))
    assert np.count_nonzero(np.diff(kind[order].astype(int))) == 1
    assert order.tolist() == alike(rows.copy(), np.ones(size, dtype=bool)).tolist()


def test_rows_without_outcomes_are_last() -> None:
    rows = np.array([[0.0, 0.0], [1.0, 1.0], [0.5, 0.5], [1.0, 1.0]])
    seen = np.array([True, True, False, True])
    assert alike(rows, seen).tolist() == [1, 3, 0, 2]


def test_a_matrix_without_outcomes_has_an_order() -> None:
    assert imputed(np.full((2, 3), np.nan)).tolist() == [[0.0] * 3] * 2
    assert alike(np.zeros((4, 2)), np.zeros(4, dtype=bool)).tolist() == [0, 1, 2, 3]
