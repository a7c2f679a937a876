"""Draws that look at what came out before still give unbiased estimates."""

from itertools import permutations

import numpy as np
import pytest

from coevolve.core.arrays import Floats
from coevolve.core.assignment import sequential_probabilities

OUTCOMES = np.array([1.0, 0.0, 1.0, 0.0, 0.5])
TASKS = len(OUTCOMES)


def weights_after(drawn: tuple[int, ...]) -> Floats:
    """Weights of all tasks, which depend on every outcome seen."""
    seen = OUTCOMES[list(drawn)]
    return np.asarray(np.arange(1.0, TASKS + 1) ** (1 + seen.sum()) + len(drawn))


def step(drawn: tuple[int, ...], task: int) -> float:
    """Probability of drawing a task after these."""
    weights = weights_after(drawn)
    weights[list(drawn)] = 0
    return float(weights[task] / weights.sum())


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_one_task_at_a_time_is_unbiased_by_enumeration(size: int) -> None:
    expected = total = 0.0
    for order in permutations(range(TASKS), size):
        q = [step(order[:k], order[k]) for k in range(size)]
        chance = float(np.prod(q))
        pi = sequential_probabilities([np.array([x]) for x in q], [1] * size, TASKS)
        estimate = sum(OUTCOMES[t] / p[0] for t, p in zip(order, pi, strict=True)) / TASKS
        expected += chance * estimate
        total += chance
    assert total == pytest.approx(1)
    assert expected == pytest.approx(OUTCOMES.mean())


def test_single_tasks_get_the_published_lure_weights() -> None:
    q = [0.5, 0.1, 0.3]
    pi = sequential_probabilities([np.array([x]) for x in q], [1, 1, 1], 10)
    lure = [
        1 + (10 - 3) / (10 - m) * (1 / ((10 - m + 1) * x) - 1) for m, x in enumerate(q, start=1)
    ]
    np.testing.assert_allclose([10 / 3 * w for w in lure], [1 / p[0] for p in pi])


def test_uniform_batches_count_as_one_uniform_draw() -> None:
    sizes, size, left = [3, 2, 4], 20, 20
    probabilities = []
    for batch in sizes:
        probabilities.append(np.full(batch, batch / left))
        left -= batch
    for pi in sequential_probabilities(probabilities, sizes, size):
        np.testing.assert_allclose(pi, 9 / 20)


def test_when_every_task_was_drawn_nothing_is_estimated() -> None:
    pi = sequential_probabilities([np.array([0.2, 0.9]), np.array([1.0])], [2, 1], 3)
    assert [p.tolist() for p in pi] == [[1.0, 1.0], [1.0]]
