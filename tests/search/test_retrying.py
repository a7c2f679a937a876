"""Waits between attempts."""

import numpy as np
import pytest

from coevolve.errors import InputError
from coevolve.search.retries import Retries


def test_waiting_grows_with_attempts_and_ends_at_a_minute() -> None:
    retries, rng = Retries(attempts=30), np.random.default_rng(7)
    for attempt, bound in {0: 1, 1: 2, 2: 4, 20: 60}.items():
        longest = max(retries.wait(attempt, rng) or 0.0 for _ in range(500))
        assert 0.9 * bound < longest <= bound
    assert retries.wait(1, np.random.default_rng(3)) == retries.wait(1, np.random.default_rng(3))


def test_there_is_no_wait_after_the_last_attempt() -> None:
    rng = np.random.default_rng(7)
    assert Retries(attempts=1).wait(0, rng) is None
    assert Retries(attempts=2).wait(1, rng, 5.0) is None
    with pytest.raises(InputError, match="attempts must be 1 or more, got 0"):
        Retries(attempts=0)


def test_a_service_gets_the_time_it_asks_for_within_limits() -> None:
    rng = np.random.default_rng(7)
    assert [Retries().wait(0, rng, asked) for asked in (33.0, 9_999.0)] == [33.0, 120.0]
    assert 0 < (Retries().wait(0, rng, 0.0) or 0.0) < 1
