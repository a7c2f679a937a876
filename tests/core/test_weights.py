"""Weights follow equation (1) of the paper."""

import numpy as np
import pytest

from coevolve import History
from coevolve.core.weights import InformationWeights, TaskView, UniformWeights, VarianceWeights
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


def test_costs_are_a_choice() -> None:
    history = History(mean=np.full(3, 0.5), count=np.full(3, 4))
    costs = np.array([1.0, 4.0, 16.0])
    blind = VarianceWeights()(TaskView(history=history, costs=costs))
    assert len(set(blind)) == 1
    neyman = VarianceWeights(cost=0.5)(TaskView(history=history, costs=costs))
    np.testing.assert_allclose(neyman / neyman[0], [1, 1 / 2, 1 / 4])
    chances = np.full(3, 0.5)
    per_cost = InformationWeights(cost=1.0)(
        TaskView(history=history, costs=costs, chances=chances)
    )
    np.testing.assert_allclose(per_cost / per_cost[0], [1, 1 / 4, 1 / 16])


def test_information_weights_need_a_model() -> None:
    history = History(mean=np.full(3, 0.5), count=np.full(3, 4))
    with pytest.raises(InputError, match="needs a protocol whose estimator is a joint model"):
        InformationWeights()(TaskView(history=history))


def test_weights_without_sense_are_refused() -> None:
    with pytest.raises(InputError, match="cost must be an exponent from 0 to 100, got -1"):
        VarianceWeights(cost=-1)
    with pytest.raises(InputError, match="floor must be positive, got 0"):
        InformationWeights(floor=0)
