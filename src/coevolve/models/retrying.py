"""Asking a model again when it did not answer, as often as is worth it."""

import asyncio
from collections.abc import Awaitable, Callable

import numpy as np

from coevolve.errors import ConfigError
from coevolve.models.errors import ModelReplyError, ModelUnavailable
from coevolve.models.pace import Sleep
from coevolve.search.retrying import backoff

AGAIN = (ModelUnavailable, ModelReplyError)
"""What is worth another attempt."""


class Retrying:
    """How often and how patiently a model is asked again.

    Between attempts it waits as `coevolve.search.retrying.backoff` says, or longer if the
    service asks for it, up to a bound.

    Args:
        attempts: Attempts at one call in all.
        seconds: Time-out of one attempt.
        longest_wait: Seconds to wait at most where the service says how long.
        seed: The seed of the run, for the jitter.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        *,
        attempts: int = 5,
        seconds: float = 600.0,
        longest_wait: float = 120.0,
        seed: int = 0,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        if attempts < 1:
            raise ConfigError(f"attempts must be 1 or more, got {attempts!r}.")
        for name, value in {"seconds": seconds, "longest_wait": longest_wait}.items():
            if not value > 0:
                raise ConfigError(f"{name} must be positive, got {value!r}.")
        self._attempts, self._seconds, self._longest = attempts, seconds, longest_wait
        self._seed, self._sleep = seed, sleep

    async def __call__[Answer](self, key: str, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """What `ask` gives; the error of the last attempt if none gives anything.

        The jitter depends on the seed and the key alone, not on what else is going on.
        """
        rng = np.random.default_rng([self._seed, int(key[:16], 16)])
        for attempt in range(self._attempts):
            try:
                return await ask()
            except AGAIN as error:
                if attempt + 1 == self._attempts:
                    error.args = (f"{error} (after {self._attempts} attempts)",)
                    raise
                wait = backoff(attempt, rng)
                asked = getattr(error, "retry_after", None)
            await self._sleep(wait if asked is None else max(wait, min(asked, self._longest)))
        raise AssertionError("there is at least one attempt")

    async def in_time[Answer](self, answer: Awaitable[Answer]) -> Answer:
        """An answer, if it comes within the time-out.

        Raises:
            ModelUnavailable: It did not.
        """
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                return await answer
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ModelUnavailable(
                f"the model did not answer within {self._seconds:g} s; `seconds` in [model] "
                "allows more."
            ) from error
