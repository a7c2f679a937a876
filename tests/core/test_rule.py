"""Which estimator Phase 0 leads to."""

import pytest

from coevolve.core.estimators import Difference, Hajek, PhaseZeroRule
from coevolve.errors import InputError


def test_the_papers_own_pools() -> None:
    """Table `tc_phase0` (0.08, 0.71, 0.14) takes Hájek, Terminal-Bench (0.51) difference."""
    rule = PhaseZeroRule()
    assert rule.decide({"uspto": 0.08, "s2d": 0.71, "law": 0.14}) == Hajek()
    assert rule.decide({"all": 0.51}) == Difference()


def test_one_pool_is_never_hajek() -> None:
    assert PhaseZeroRule().decide({"all": 0.02}) == Difference()


def test_every_pool_must_be_far_from_the_middle() -> None:
    assert PhaseZeroRule().decide({"a": 0.05, "b": 0.45}) == Difference()
    assert PhaseZeroRule().decide({"a": 0.3, "b": 0.7}) == Hajek()
    assert PhaseZeroRule(threshold=0.25).decide({"a": 0.3, "b": 0.7}) == Difference()


def test_the_threshold_is_half_at_most() -> None:
    with pytest.raises(InputError, match=r"got 0\.6"):
        PhaseZeroRule(threshold=0.6)
