"""Outcome matrices: what is accepted, what is refused, and what becomes of costs and trials."""

from typing import Any

import numpy as np
import pytest

from coevolve.analysis import Matrix, synthetic_matrix
from coevolve.errors import InputError, MatrixError

NAN = float("nan")
CELLS = np.random.default_rng(1).integers(0, 2, (7, 5)).astype(float)


def test_each_run_is_a_series_in_the_order_of_its_name() -> None:
    matrix = Matrix.from_arrays("m", CELLS, run=["b", "a", "b", "a", "b", "a", "b"])
    first, second = matrix.series
    assert (first.name, second.name) == ("a", "b")
    assert first.candidates == ("candidate-1", "candidate-3", "candidate-5")
    assert second.outcomes.tolist() == CELLS[[0, 2, 4, 6]].tolist()
    assert first.starts == ("candidate-1", "candidate-3")


def test_series_too_short_to_replay_are_left_out_with_a_note() -> None:
    matrix = Matrix.from_arrays("m", CELLS, run=[0, 0, 0, 0, 0, 1, 1])
    assert [series.name for series in matrix.series] == ["0"]
    assert "series '1' has 2 candidates" in matrix.notes[0]
    with pytest.raises(MatrixError, match="no series can be replayed: series 'all' has 2"):
        Matrix.from_arrays("m", CELLS[:2])


def test_candidates_without_a_true_score_are_left_out_with_a_note() -> None:
    cells = CELLS.copy()
    cells[3, 2:] = NAN
    assert not Matrix.from_arrays("m", cells).notes
    pooled = Matrix.from_arrays("m", cells, pools=["x", "x", "y", "y", "y"])
    assert "candidate-3" not in pooled.series[0].candidates
    assert "1 of 7 candidates have no outcome in some pool" in pooled.notes[0]


def test_true_scores_leave_out_what_is_missing_and_weigh_pools_alike() -> None:
    cells = np.array([[1, 0, 0, 1, NAN], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0.5]])
    plain, pooled = (
        Matrix.from_arrays("m", cells, pools=pools).series[0].true_scores().tolist()
        for pools in (None, ["x", "y", "y", "y", "y"])
    )
    assert plain == pytest.approx([0.5, 1, 0.1])
    assert pooled == pytest.approx([(1 + 1 / 3) / 2, 1, 0.5 / 4 / 2])


def test_expected_costs_are_those_of_the_starting_harnesses() -> None:
    cost = np.full((7, 5), 9.0)
    cost[:2] = [[1, 2, NAN, 0, 4], [3, 2, NAN, 0, NAN]]
    (series,) = Matrix.from_arrays("m", CELLS, cost=cost).series
    stand_in = (2 + 2 + 4) / 3
    assert series.priced_pool().costs == pytest.approx(np.array([2, 2, stand_in, stand_in, 4]))


def test_a_cell_of_unknown_cost_counts_with_the_mean_of_its_task() -> None:
    cost = np.tile([1.0, 2.0, 3.0, 4.0, NAN], (7, 1))
    cost[0, 0], cost[1, 0] = NAN, 7.0
    spent = Matrix.from_arrays("m", CELLS, cost=cost).series[0].spent()
    assert spent is not None
    assert spent[0, 0] == pytest.approx((7 + 5) / 6)
    assert spent[:, 4] == pytest.approx(np.nanmean(cost))


def test_costs_may_be_per_task_or_unknown() -> None:
    per_task = Matrix.from_arrays("m", CELLS, cost=np.arange(1.0, 6)).series[0]
    assert per_task.priced_pool().costs == pytest.approx(np.arange(1.0, 6))
    unknown = Matrix.from_arrays("m", CELLS, cost=np.full(5, NAN)).series[0]
    assert unknown.spent() is None
    assert unknown.priced_pool().costs is None


def test_a_mean_of_trials_is_told_as_one_trial() -> None:
    cells = np.random.default_rng(2).random((40, 500))
    (series,) = Matrix.from_arrays("m", cells).series
    one, again, other = (series.trial(seed) for seed in (0, 0, 1))
    assert set(np.unique(one)) == {0.0, 1.0}
    assert one.tolist() == again.tolist()
    assert one.tolist() != other.tolist()
    assert one.mean() == pytest.approx(cells.mean(), abs=4.5 * 0.5 / np.sqrt(cells.size))
    assert series.rows(range(10)).trial(0).tolist() == one[:10].tolist()


def test_single_trials_and_missing_ones_are_told_as_they_are() -> None:
    cells = np.array([[0.5, 0.25, NAN], [1, 0.75, 0], [0.5, 0.5, 1]])
    trial = Matrix.from_arrays("m", cells, trials=[1, 4, 4]).series[0].trial(3)
    assert trial[:, 0].tolist() == [0.5, 1, 0.5]
    assert set(trial[:, 1]) <= {0.0, 1.0}
    assert np.isnan(trial[0, 2])


def test_limits_keep_the_first_and_say_so() -> None:
    matrix = synthetic_matrix(tasks=10, candidates=6, worlds=3).limited(series=2, candidates=4)
    assert [len(series.candidates) for series in matrix.series] == [4, 4]
    assert matrix.notes == ("the first 2 of 3 series", "the first 4 of up to 6 candidates")
    assert synthetic_matrix(tasks=10, worlds=1).limited(series=9, candidates=99).notes == ()
    with pytest.raises(MatrixError, match="limit on candidates must be at least 3, got 2"):
        matrix.limited(candidates=2)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"outcomes": CELLS[0]}, r"'outcomes' must be candidates × tasks, got shape \(5,\)"),
        ({"outcomes": CELLS * 2}, r"'outcomes' must be in \[0, 1\], got 2 in row"),
        ({"outcomes": -CELLS}, r"'outcomes' must be in \[0, 1\], got -1 in row"),
        ({"outcomes": CELLS.astype(str)}, "'outcomes' must hold numbers"),
        ({"outcomes": np.empty((0, 4))}, "must be candidates × tasks"),
        ({"run": [0, 1]}, r"'run' has shape \(2,\), but 'outcomes' needs 7"),
        ({"run": np.linspace(0, 1, 7)}, "'run' must hold text or whole numbers"),
        ({"tasks": ["a"] * 4}, r"'tasks' has shape \(4,\), but 'outcomes' needs 5"),
        ({"tasks": ["a"] * 5}, "task 'a' appears more than once"),
        ({"tasks": ["", "b", "c", "d", "e"]}, "must be a non-empty text"),
        ({"candidates": ["a"] * 7}, "'candidates' has 'a' twice in series 'all'"),
        ({"pools": [["x"] * 5]}, "'pools' has shape"),
        ({"trials": [1, 2]}, r"'trials' must be one number, per task \(5,\) or per cell"),
        ({"trials": 2.5}, "'trials' must be 0, 1, 2, ..., got 2.5 in row 0, column 0"),
        ({"trials": 0}, "'trials' must be at least 1 for an outcome, got 0"),
        ({"cost": 3.0}, "'cost' must be per task or per cell"),
        ({"cost": np.full((7, 5), -1.0)}, "'cost' must be at least 0, got -1"),
        ({"cost": np.full(7, 1.0)}, r"'cost' must be per task \(5,\) or per cell \(7, 5\)"),
    ],
)
def test_what_is_no_matrix_is_refused(arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(MatrixError, match=message):
        Matrix.from_arrays("m", **({"outcomes": CELLS} | arrays))


def test_synthetic_matrices_follow_from_the_seed() -> None:
    one, again = (synthetic_matrix(tasks=12, candidates=5, worlds=2, seed=3) for _ in range(2))
    assert [s.name for s in one.series] == ["3", "4"]
    for a, b in zip(one.series, again.series, strict=True):
        assert a.outcomes.tolist() == b.outcomes.tolist()
    with pytest.raises(InputError, match="candidates must be at least 3, got 2"):
        synthetic_matrix(candidates=2)
