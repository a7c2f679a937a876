"""Weights follow equation (1) of the paper."""

import numpy as np
import pytest

from coevolve import History
from coevolve.core.search_view import TaskView
from coevolve.core.weights import UniformWeights, VarianceWeights
from coevolve.errors import InputError


def test_variance_floor_and_bonus() -> None:
    history = History(
        mean=np.array([0.0, 0.1, 0.5, 0.9, 1.0]), count=np.array([4, 10, 16, 100, 1])
    )
    expected = [
        0.125 + 0.025 / 2,
        0.09 + 0.025 / np.sqrt(10),
        0.25 + 0.025 / 4,
        0.09 + 0.025 / 10,
        0.025,
    ]
    np.testing.assert_allclose(VarianceWeights()(TaskView(history=history)), expected, rtol=1e-12)


def test_the_floor_is_for_tasks_never_solved_only() -> None:
    history = History(mean=np.array([0.01, 1.0]), count=np.array([100, 100]))
    assert (VarianceWeights(floor=0.9)(TaskView(history=history)) < 0.02).all()


def test_an_unseen_task_is_worth_most() -> None:
    history = History(mean=np.array([np.nan, 0.5]), count=np.array([0, 1]))
    weights = VarianceWeights()(TaskView(history=history))
    assert weights[0] == weights[1] == 0.275


def test_uniform_weights_ignore_the_past() -> None:
    view = TaskView(history=History(mean=np.zeros(3), count=np.ones(3, int)))
    assert UniformWeights()(view).tolist() == [1] * 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"floor": -0.1}, "floor must be at least 0, got -0.1"),
        ({"bonus": 0.0}, "bonus must be positive, got 0.0"),
        ({"window": 0}, "window must be at least 1 round, got 0"),
    ],
)
def test_parameters_without_sense_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        VarianceWeights(**arguments)  # type: ignore[arg-type]
