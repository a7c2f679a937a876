"""Exact inclusion probabilities of successive sampling, near and far."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coevolve.core.inclusion import (
    Classes,
    monte_carlo_inclusion,
    race_inclusion,
    successive_inclusion,
)
from coevolve.errors import InputError

from .draws import successive_draws


def test_the_terminal_bench_pool_of_the_paper() -> None:
    """32 never, 23 mixed and 34 always solved of 89, m = 18 (rulings, golden)."""
    bonus = 0.025 / np.sqrt(2)
    weights = np.repeat([0.125 + bonus, 0.25 + bonus, bonus], [32, 23, 34])
    pi = successive_inclusion(weights, 18)
    assert pi[[0, 40, 80]].round(3).tolist() == [0.239, 0.402, 0.033]
    assert pi.sum() == pytest.approx(18, abs=1e-10)


def test_equal_weights_are_simple_random_sampling() -> None:
    np.testing.assert_allclose(successive_inclusion(np.full(97, 0.3), 13), 13 / 97, rtol=1e-12)


@example([-8.0, -8.0, 8.0, 8.0, 8.0], 4)
@example([8.0, 8.0, -8.0, -8.0, -8.0, 0.0], 4)
@given(
    st.lists(st.floats(min_value=-8, max_value=8), min_size=2, max_size=6),
    st.integers(min_value=1, max_value=5),
)
def test_weights_of_any_scale(logs: list[float], size: int) -> None:
    """Weights up to e^16 apart: relative error below 1e-10 against all possible draws."""
    weights, size = np.exp(logs), min(size, len(logs))
    expected = np.zeros(len(weights))
    for chosen, probability in successive_draws(weights, size).items():
        expected[list(chosen)] += probability
    np.testing.assert_allclose(successive_inclusion(weights, size), expected, rtol=1e-10)


@pytest.mark.parametrize("size", [1, 5, 60, 300, 2_000, 2_999])
@pytest.mark.parametrize("spread", ["uniform", "lognormal"])
def test_interpolation_in_the_weight_loses_nothing(size: int, spread: str) -> None:
    """3,000 distinct weights, through Chebyshev points and directly: equal to 1e-10."""
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.003, 0.28, 3_000) if spread == "uniform" else rng.lognormal(size=3_000)
    classes = Classes(np.sort(weights) / weights.mean(), np.ones(3_000))
    direct = race_inclusion(classes, size)
    np.testing.assert_allclose(np.sort(successive_inclusion(weights, size)), direct, rtol=1e-10)


def test_a_larger_pool_agrees_with_simulated_draws() -> None:
    weights = np.random.default_rng(2).uniform(0.01, 0.28, 400)
    exact = successive_inclusion(weights, 80)
    simulated = monte_carlo_inclusion(weights, 80, 40_000, np.random.default_rng(3))
    error = np.sqrt(exact * (1 - exact) / 40_000)
    assert (np.abs(simulated - exact) < 4.5 * error).all()


def test_a_million_tasks_sum_to_the_number_drawn() -> None:
    """The stated error at this size: Σ π_t is off by less than one part in 10^10."""
    weights = np.random.default_rng(4).uniform(0.003, 0.28, 1_000_000)
    pi = successive_inclusion(weights, 200_000)
    assert pi.sum() == pytest.approx(200_000, rel=1e-10)
    order = np.argsort(weights)
    assert (np.diff(pi[order]) >= 0).all()


def test_a_hundred_thousand_tasks_one_by_one() -> None:
    """Every π_t through Chebyshev points is that of the direct sums, to 1e-11."""
    weights = np.sort(np.random.default_rng(5).uniform(0.003, 0.28, 100_000))
    direct = race_inclusion(Classes(weights / weights.mean(), np.ones(100_000)), 20_000)
    np.testing.assert_allclose(successive_inclusion(weights, 20_000), direct, rtol=1e-11)


@pytest.mark.parametrize(
    ("heavy", "light", "ratio", "size"),
    [
        (95, 5, 15, 98),
        (123, 7, 30, 125),
        (950, 50, 300, 952),
        (997, 3, 5e4, 998),
        (5, 1, 1e11, 5),
    ],
)
def test_nearly_everything_is_drawn_and_a_few_tasks_hardly_count(
    heavy: int, light: int, ratio: float, size: int
) -> None:
    rng = np.random.default_rng(0)
    weights = np.concatenate([ratio * rng.uniform(0.9, 1.1, heavy), np.ones(light)])
    assert successive_inclusion(weights, size).sum() == pytest.approx(size, rel=1e-10)


def test_weights_beyond_reason_are_refused() -> None:
    with pytest.raises(InputError, match=r"within a factor 1e\+12 of each other, got 1e-13 and 1"):
        successive_inclusion(np.array([1e-13, 1.0]), 1)


def test_drawing_everything_is_certain() -> None:
    assert successive_inclusion(np.array([0.1, 5.0]), 2).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("size", [0, -1, 4])
def test_size_must_fit_the_tasks(size: int) -> None:
    with pytest.raises(InputError, match=f"between 1 and 3 .*got {size}"):
        successive_inclusion(np.ones(3), size)
