"""Ranks and rank correlations, against scipy."""

import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from coevolve.core.arrays import kendall, ranks, spearman

SMALL = st.integers(0, 6).map(lambda n: n / 7)
PAIRS = st.lists(st.tuples(SMALL, SMALL), min_size=2, max_size=12)


@given(PAIRS)
def test_they_agree_with_scipy_ties_included(pairs: list[tuple[float, float]]) -> None:
    a, b = np.array(pairs).T
    assert ranks(a).tolist() == scipy.stats.rankdata(a).tolist()
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        assert math.isnan(spearman(a, b))
        assert math.isnan(kendall(a, b))
    else:
        assert spearman(a, b) == pytest.approx(scipy.stats.spearmanr(a, b).statistic, abs=1e-12)
        assert kendall(a, b) == pytest.approx(scipy.stats.kendalltau(a, b).statistic, abs=1e-12)


def test_what_differs_by_rounding_only_is_tied() -> None:
    assert ranks(np.array([0.1 + 0.2, 0.3, 0.2])).tolist() == [2.5, 2.5, 1.0]


def test_one_candidate_has_no_correlation() -> None:
    assert math.isnan(spearman(np.ones(1), np.ones(1)))
    assert math.isnan(kendall(np.ones(1), np.ones(1)))
