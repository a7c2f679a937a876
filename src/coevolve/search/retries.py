"""When to try again and how long to wait: one rule for trials, proposers and model calls."""

from dataclasses import dataclass

import numpy as np

from coevolve.errors import InputError

ATTEMPTS = 3
"""Attempts at a check, a preparation, a trial or a proposal, the first one included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often something is tried, and the waits in between.

    Waits double from one attempt to the next, with full jitter [Brooker 2015]. A wait that a
    service requests (HTTP's Retry-After) is used, within limits.

    [Brooker 2015] M. Brooker, Exponential Backoff And Jitter, AWS Architecture Blog.

    Args:
        attempts: Attempts in all.
        pause: Upper limit of the first wait, in seconds.
        longest: Upper limit of every wait.
        longest_asked: The same for a wait that a service requests.

    >>> rng = np.random.default_rng(0)
    >>> waits = [Retries().wait(attempt, rng) for attempt in range(3)]
    >>> [wait and round(wait, 2) for wait in waits]
    [0.64, 0.54, None]
    """

    attempts: int = ATTEMPTS
    pause: float = 1.0
    longest: float = 60.0
    longest_asked: float = 120.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise InputError(f"attempts must be 1 or more, got {self.attempts!r}.")

    def wait(
        self, attempt: int, rng: np.random.Generator, asked: float | None = None
    ) -> float | None:
        """Seconds to wait after failed attempt 0, 1, ...; None after the last one.

        Args:
            attempt: Number of the attempt that failed.
            rng: Random generator for the jitter.
            asked: Seconds that the service requests, if any.
        """
        if attempt + 1 >= self.attempts:
            return None
        wait = float(rng.uniform(0, min(self.longest, self.pause * 2**attempt)))
        return wait if asked is None else max(wait, min(asked, self.longest_asked))
