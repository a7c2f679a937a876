"""Estimates, their standard errors, and when there is none."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from coevolve import History
from coevolve.core.assignment import Sample
from coevolve.core.designs import SuccessiveDesign
from coevolve.core.estimators import (
    Difference,
    Estimator,
    Hajek,
    HorvitzThompson,
    RawMean,
    hajek,
    horvitz_thompson,
)
from coevolve.core.variance import Anticipation, Past, expected_squares, sample_variance

from .draws import successive_draws

ONE = np.ones(1)
ESTIMATORS: list[Estimator] = [
    RawMean(),
    RawMean(together=True),
    HorvitzThompson(),
    Hajek(),
    Difference(),
]


def sample(scores: list[float], pi: list[float], size: int = 10, pool: str = "all") -> Sample:
    return Sample.without_history(np.array(scores), np.array(pi), pool_size=size, pool=pool)


def test_hajek_fails_as_in_appendix_a2() -> None:
    """One solved of three, raw 33.3%, estimate 85.9%: the solved task has a tiny π."""
    drawn = sample([1, 0, 0], [0.033, 0.402, 0.402], size=89)
    assert RawMean().estimate([drawn], ONE, 0.95).value == pytest.approx(0.333, abs=5e-4)
    assert Hajek().estimate([drawn], ONE, 0.95).value == pytest.approx(0.859, abs=5e-4)


def test_the_difference_estimator_survives_the_same_draw() -> None:
    """A task always solved before, and solved again, does not move the estimate."""
    drawn = sample([1, 0, 0], [0.033, 0.402, 0.402], size=89)
    drawn = replace(drawn, anchors=np.array([1.0, 0.5, 0.5]), anchor_mean=0.51)
    expected = 0.51 - 2 * 0.5 / 0.402 / 89
    assert Difference().estimate([drawn], ONE, 0.95).value == pytest.approx(expected, abs=1e-12)


def test_the_difference_estimate_may_leave_the_unit_interval_and_is_clipped_for_show() -> None:
    drawn = replace(sample([1, 1], [0.1, 0.1]), anchors=np.array([0.2, 0.2]), anchor_mean=0.5)
    estimate = Difference().estimate([drawn], ONE, 0.95)
    assert estimate.value == pytest.approx(2.1)
    assert str(estimate).startswith("≥1.000 ± ")
    assert "clipped from 2.100" in str(estimate)


@pytest.mark.parametrize("estimator", [RawMean(), HorvitzThompson(), Hajek()])
def test_uniform_draws_have_the_textbook_standard_error(estimator: Estimator) -> None:
    """sqrt((1 - n/N) s² / n), and Student's interval with n - 1 degrees of freedom."""
    scores = [1.0, 0.0, 0.5, 1.0]
    estimate = estimator.estimate([sample(scores, [0.4] * 4)], ONE, 0.95)
    se = np.sqrt((1 - 0.4) * np.var(scores, ddof=1) / 4)
    assert estimate.value == pytest.approx(0.625)
    assert estimate.se == pytest.approx(se)
    assert estimate.high == pytest.approx(0.625 + 3.1824463 * se)
    assert estimate.low == pytest.approx(0.625 - 3.1824463 * se)


def test_pools_are_estimated_apart_and_averaged() -> None:
    parts = [sample([1, 0], [0.2, 0.2], pool="a"), sample([1, 1, 0], [0.3] * 3, pool="b")]
    weights = np.array([0.75, 0.25])
    estimate = Hajek().estimate(parts, weights, 0.95)
    apart = [hajek(part) for part in parts]
    assert estimate.value == pytest.approx(0.75 * 0.5 + 0.25 * 2 / 3)
    variances = [part.variance or 0 for part in apart]
    assert estimate.se == pytest.approx(np.sqrt(0.75**2 * variances[0] + 0.25**2 * variances[1]))
    assert (estimate.tasks, estimate.drawn, estimate.pool_size) == (5, 5, 20)


def test_raw_means_are_averaged_over_pools_of_unequal_size() -> None:
    """Pools of 10 and 30: 1/2 of the first and 2/3 of the second; together 3/5."""
    parts = [
        sample([1, 0], [0.2, 0.2], pool="a"),
        sample([1, 1, 0], [0.1] * 3, size=30, pool="b"),
    ]
    weights = np.array([0.75, 0.25])
    raw = RawMean().estimate(parts, weights, 0.95)
    assert raw.value == pytest.approx(0.75 / 2 + 0.25 * 2 / 3)
    variances = [(1 - 0.2) * 0.5 / 2, (1 - 0.1) * (1 / 3) / 3]
    assert raw.se == pytest.approx(np.sqrt(0.75**2 * variances[0] + 0.25**2 * variances[1]))
    assert (raw.method, raw.tasks, raw.pool_size) == ("raw mean", 5, 40)
    pooled = RawMean(together=True).estimate(parts, weights, 0.95)
    assert pooled.value == pytest.approx(3 / 5)
    assert pooled.se is None
    assert "ignores the weights of the pools" in pooled.note
    by_size = RawMean(together=True).estimate(parts, np.array([0.4, 0.6]), 0.95)
    assert by_size.value == pytest.approx(3 / 5)
    assert by_size.se == pytest.approx(np.sqrt((1 - 5 / 40) * 0.3 / 5))


def test_raw_means_of_all_tasks_are_on_the_scale_of_full_scores() -> None:
    """Averaged over every draw of 1 of 2 and 1 of 3 tasks, the raw mean is the full score."""
    truth = {"a": [1.0, 0.0], "b": [1.0, 0.0, 0.0]}
    weights = np.array([0.5, 0.5])
    draws = [
        [
            sample([truth["a"][i]], [1 / 2], size=2, pool="a"),
            sample([truth["b"][j]], [1 / 3], size=3, pool="b"),
        ]
        for i in range(2)
        for j in range(3)
    ]
    whole = [sample(scores, [1.0] * len(scores), len(scores)) for scores in truth.values()]
    full = Hajek().estimate(whole, weights, 0.95).value
    assert full == RawMean().estimate(whole, weights, 0.95).value == pytest.approx(5 / 12)
    means = [RawMean().estimate(drawn, weights, 0.95).value for drawn in draws]
    assert np.mean(means) == pytest.approx(full)


def test_a_raw_mean_of_a_weighted_draw_has_no_standard_error() -> None:
    estimate = RawMean().estimate([sample([1, 0], [0.2, 0.3])], ONE, 0.95)
    assert estimate.se is estimate.low is estimate.high is None
    assert "weighted draw" in estimate.note
    assert "± ?" in str(estimate)


@pytest.mark.parametrize("estimator", [RawMean(), HorvitzThompson(), Hajek()])
def test_one_task_or_equal_scores_tell_no_spread(estimator: Estimator) -> None:
    single = estimator.estimate([sample([1], [0.1], pool="law")], ONE, 0.95)
    assert single.se is None
    assert "one task of pool" in single.note
    if estimator != HorvitzThompson():
        agreeing = estimator.estimate([sample([1, 1], [0.2, 0.2])], ONE, 0.95)
        assert agreeing.se is None
        assert "are equal" in agreeing.note


def test_the_difference_estimator_needs_no_spread_in_the_sample() -> None:
    history = History(mean=np.repeat([0.0, 0.5, 1.0], 10), count=np.full(30, 2))
    expected, pi = expected_squares(history), np.full(30, 0.1)
    drawn = Sample(
        pool="all",
        pool_size=30,
        drawn=1,
        scores=np.ones(1),
        probabilities=pi[:1],
        anchors=np.array([1.0]),
        expected=expected[-1:],
        anchor_mean=0.5,
        anticipation=Anticipation.of(Past.of(history), pi),
    )
    estimate = Difference().estimate([drawn], ONE, 0.95)
    assert estimate.se is not None
    assert 0.1 < estimate.se < 1.0


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_knowing_every_task_leaves_no_error(estimator: Estimator) -> None:
    whole = replace(sample([1, 0, 1, 1], [1.0] * 4, size=4), anchor_mean=0.5)
    estimate = estimator.estimate([whole], ONE, 0.95)
    assert (estimate.value, estimate.se, estimate.low, estimate.high) == (0.75, 0, 0.75, 0.75)
    assert estimate.method == "full set"
    assert str(estimate) == "0.750 (4 of 4 tasks, full set)"


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_missing_outcomes_leave_the_sample_and_are_not_zero(estimator: Estimator) -> None:
    """Half of the tasks answer, all solved: the estimate is 1, not 0.5."""
    answered = replace(sample([1] * 5, [0.5] * 5), drawn=10, pool_size=20, anchor_mean=0.5)
    estimate = estimator.estimate([answered], ONE, 0.95)
    assert estimate.value == pytest.approx(1.0)
    assert estimate.coverage == 0.5
    assert (estimate.tasks, estimate.drawn) == (5, 10)


def test_a_full_evaluation_with_gaps_is_not_exact() -> None:
    gaps = replace(sample([1, 0, 1], [1.0] * 3, size=4), drawn=4)
    estimate = Hajek().estimate([gaps], ONE, 0.95)
    assert estimate.value == pytest.approx(2 / 3)
    assert estimate.se is not None
    assert estimate.se > 0
    assert not estimate.exact


def test_a_higher_confidence_gives_a_wider_interval() -> None:
    drawn = sample([1, 0, 1, 0], [0.4] * 4)
    narrow, wide = (Hajek().estimate([drawn], ONE, level) for level in (0.5, 0.99))
    assert narrow.low is not None
    assert wide.low is not None
    assert wide.low < narrow.low


def test_the_variance_of_a_uniform_draw_is_unbiased() -> None:
    """Over all draws of 3 of 7: the mean of the estimated variances is the true variance."""
    scores = np.array([0.1, 0.9, 0.4, 1.0, 0.0, 0.7, 0.3])
    draws = [list(c) for c in combinations(range(7), 3)]
    totals = [scores[d].sum() / (3 / 7) for d in draws]
    estimated = [sample_variance(scores[d], np.full(3, 3 / 7)) for d in draws]
    assert np.mean(estimated) == pytest.approx(np.var(totals), rel=1e-9)


def test_the_approximate_variance_of_a_weighted_draw() -> None:
    """Over all draws of 4 of 8 with weights 1 to 4: within 15% of the true variance."""
    rng = np.random.default_rng(1)
    ratios = []
    for _ in range(10):
        weights, scores = rng.uniform(1, 4, size=8), rng.random(8)
        pi = SuccessiveDesign().draw(weights, 4, rng).probabilities
        draws = successive_draws(weights, 4)
        values = np.array(
            [
                [
                    horvitz_thompson(sample(scores[d].tolist(), pi[d].tolist(), 8)).value * 8,
                    sample_variance(scores[d], pi[d]),
                ]
                for d in map(list, draws)
            ]
        )
        odds = np.array(list(draws.values()))
        true = odds @ (values[:, 0] - odds @ values[:, 0]) ** 2
        ratios.append((odds @ values[:, 1]) / true)
    assert np.mean(ratios) == pytest.approx(1, abs=0.15)
