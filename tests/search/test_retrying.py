"""Waits between attempts."""

import numpy as np

from coevolve.search.evaluation import backoff


def test_waiting_grows_with_attempts_and_ends_at_a_minute() -> None:
    rng = np.random.default_rng(7)
    longest = [max(backoff(attempt, rng) for _ in range(500)) for attempt in (0, 1, 2, 20)]
    for wait, bound in zip(longest, (1, 2, 4, 60), strict=True):
        assert 0.9 * bound < wait <= bound
    assert backoff(1, np.random.default_rng(3)) == backoff(1, np.random.default_rng(3))
