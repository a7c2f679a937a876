"""When an attempt that nobody is to blame for is made again."""

import numpy as np

from coevolve.search.trials import Blame

RETRIES = 2
"""How often a trial is tried again after a fault of the infrastructure."""

AGAIN = (Blame.INFRASTRUCTURE, Blame.DOUBTFUL)
"""The faults after which it is tried again."""

LONGEST = 60.0


def backoff(attempt: int, rng: np.random.Generator, pause: float = 1.0) -> float:
    """Seconds to wait after failed attempt 0, 1, ...: doubling, with full jitter.

    [Brooker 2015] M. Brooker, Exponential Backoff And Jitter, AWS Architecture Blog.

    >>> rng = np.random.default_rng(0)
    >>> [round(backoff(attempt, rng), 2) for attempt in range(3)]
    [0.64, 0.54, 0.16]
    """
    return float(rng.uniform(0, min(LONGEST, pause * 2**attempt)))
