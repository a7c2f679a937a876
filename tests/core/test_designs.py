"""Designs draw what they say, with the probabilities they say."""

import numpy as np
import pytest

from coevolve.core.arrays import Floats
from coevolve.core.assignment import Sample
from coevolve.core.designs import (
    DesignMethod,
    PivotalDesign,
    SuccessiveDesign,
    UniformDesign,
    proportional,
)
from coevolve.core.estimators import difference, horvitz_thompson
from coevolve.errors import InputError
from tests.effort import effort

from .draws import every_draw

DESIGNS: list[DesignMethod] = [
    UniformDesign(),
    UniformDesign(redraws=False),
    SuccessiveDesign(),
    PivotalDesign(),
]
SMALL = [(n, m) for n in range(1, 9) for m in range(1, n + 1)]
by_design = pytest.mark.parametrize("design", DESIGNS, ids=lambda d: d.name)


def some_weights(n: int, m: int) -> list[Floats]:
    rng = np.random.default_rng([n, m])
    paper = rng.choice([0.1427, 0.2677, 0.0177], size=n)
    return [np.ones(n), paper, np.exp(2 * rng.normal(size=n))]


@by_design
@pytest.mark.parametrize(("n", "m"), SMALL)
def test_inclusion_probabilities_are_those_of_all_possible_draws(
    design: DesignMethod, n: int, m: int
) -> None:
    for weights in some_weights(n, m):
        draws = every_draw(design, weights, m)
        assert sum(draws.values()) == pytest.approx(1, abs=1e-12)
        assert all(len(chosen) == m for chosen in draws)
        included = np.zeros(n)
        for chosen, probability in draws.items():
            included[list(chosen)] += probability
        claimed = design.draw(weights, m, np.random.default_rng(0)).probabilities
        np.testing.assert_allclose(claimed, included, atol=1e-9, rtol=0)


@by_design
@pytest.mark.parametrize(("n", "m"), SMALL)
def test_horvitz_thompson_and_difference_are_unbiased(
    design: DesignMethod, n: int, m: int
) -> None:
    rng = np.random.default_rng([n, m, 1])
    scores, anchors = rng.random(n), rng.random(n)
    for weights in some_weights(n, m):
        pi = design.draw(weights, m, np.random.default_rng(0)).probabilities
        expected = np.zeros(2)
        for chosen, probability in every_draw(design, weights, m).items():
            drawn = list(chosen)
            sample = Sample(
                pool="all",
                pool_size=n,
                drawn=m,
                scores=scores[drawn],
                probabilities=pi[drawn],
                anchors=anchors[drawn],
                expected=np.ones(m),
                anchor_mean=float(anchors.mean()),
                anticipation=None,
            )
            values = horvitz_thompson(sample).value, difference(sample).value
            expected += probability * np.array(values)
        np.testing.assert_allclose(expected, scores.mean(), atol=1e-9, rtol=0)


@by_design
def test_draws_come_as_often_as_their_probabilities_say(design: DesignMethod) -> None:
    """Many draws of 12 of 60: every frequency within 4.5 standard errors."""
    weights = np.repeat([0.02, 0.1, 0.15, 0.3], 15)
    rng, repetitions = np.random.default_rng(6), effort(1_200, 4_000)
    hits = np.zeros(60)
    for _ in range(repetitions):
        hits[design.draw(weights, 12, rng).chosen] += 1
    pi = design.draw(weights, 12, rng).probabilities
    error = np.sqrt(pi * (1 - pi) / repetitions)
    assert (np.abs(hits / repetitions - pi) < 4.5 * error).all()


@by_design
def test_draws_are_distinct_sorted_and_of_the_size_asked_for(design: DesignMethod) -> None:
    rng = np.random.default_rng(0)
    for n, m in [(1, 1), (7, 7), (50, 3), (1_000, 200)]:
        chosen = design.draw(rng.uniform(0.01, 1, size=n), m, rng).chosen
        assert len(chosen) == m
        assert (np.diff(chosen) > 0).all()


@by_design
def test_the_same_generator_gives_the_same_draw(design: DesignMethod) -> None:
    weights = np.linspace(0.1, 1, 40)
    first, second = (design.draw(weights, 8, np.random.default_rng(3)) for _ in range(2))
    assert first.chosen.tolist() == second.chosen.tolist()


def test_prescribed_probabilities_are_capped_and_the_rest_raised() -> None:
    pi = proportional(np.array([100.0, 50.0, 1.0, 1.0, 2.0]), 3)
    assert pi.tolist() == [1.0, 1.0, 0.25, 0.25, 0.5]


def test_monte_carlo_mode_is_the_papers() -> None:
    weights = np.repeat([0.1427, 0.2677, 0.0177], [32, 23, 34])
    rng = np.random.default_rng(0)
    simulated = SuccessiveDesign(inclusion="monte-carlo").draw(weights, 18, rng).probabilities
    exact = SuccessiveDesign().draw(weights, 18, rng).probabilities
    error = np.sqrt(exact * (1 - exact) / 4_000)
    assert (np.abs(simulated - exact) < 4.5 * error).all()
    assert np.abs(simulated - exact).max() > 1e-4


def test_monte_carlo_mode_never_gives_a_drawn_task_probability_zero() -> None:
    weights = np.array([1e-9] * 5 + [1.0] * 5)
    design = SuccessiveDesign(inclusion="monte-carlo", repetitions=50)
    assert design.draw(weights, 5, np.random.default_rng(0)).probabilities.min() == 1 / 50


@pytest.mark.parametrize("weights", [[0.0, 1.0], [-1.0, 1.0], [np.nan, 1.0], [np.inf, 1.0]])
@by_design
def test_weights_must_be_positive(design: DesignMethod, weights: list[float]) -> None:
    with pytest.raises(InputError, match="weights must be positive and finite"):
        design.draw(np.array(weights), 1, np.random.default_rng(0))


def test_unknown_inclusion_mode_is_named() -> None:
    with pytest.raises(InputError, match="'exact' or 'monte-carlo', got 'magic'"):
        SuccessiveDesign(inclusion="magic")  # type: ignore[arg-type]
