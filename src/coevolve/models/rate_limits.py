"""Limits on calls at once and on calls and tokens per minute, and retries of failed calls."""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count

import numpy as np

from coevolve.errors import ConfigError
from coevolve.models.model_errors import ModelReplyError, ModelUnavailable
from coevolve.search.retries import Retries

MINUTE = 60.0
LONGEST_NAP = 1.0
"""Seconds between two checks of the limits; a call that used fewer tokens frees the rest."""

Sleep = Callable[[float], Awaitable[object]]


class Entry:
    """The amount that a call uses of a minute; it may be corrected after the call."""

    def __init__(self, at: float, amount: float) -> None:
        self.at = at
        self.amount = amount


class Minute:
    """At most `most` of something in any sixty seconds.

    >>> minute = Minute(100)
    >>> _ = minute.enter(0.0, 80)
    >>> minute.wait(30.0, 20), minute.wait(30.0, 50)
    (0.0, 30.0)
    """

    def __init__(self, most: float) -> None:
        self.most = most
        self._entries: deque[Entry] = deque()

    def wait(self, now: float, amount: float) -> float:
        """Seconds until an amount fits; one above the limit counts as the limit."""
        while self._entries and self._entries[0].at + MINUTE <= now:
            self._entries.popleft()
        over = sum(entry.amount for entry in self._entries) + min(amount, self.most) - self.most
        for entry in self._entries:
            if over <= 0:
                break
            over -= entry.amount
            if over <= 0:
                return entry.at + MINUTE - now
        return 0.0

    def enter(self, now: float, amount: float) -> Entry:
        """Record an amount."""
        entry = Entry(now, min(amount, self.most))
        self._entries.append(entry)
        return entry


class Pace:
    """Starts calls in order, within the limits of a service.

    Args:
        concurrency: Calls at once.
        requests_per_minute: Calls that start in any sixty seconds; None for no limit.
        tokens_per_minute: Tokens of calls that start in any sixty seconds; None for no limit. An
            estimate counts until the call has ended.
        clock: The time in seconds.
        sleep: Waits for a number of seconds.
    """

    def __init__(
        self,
        *,
        concurrency: int = 8,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        limits = {
            "concurrency": concurrency,
            "requests_per_minute": requests_per_minute,
            "tokens_per_minute": tokens_per_minute,
        }
        for name, value in limits.items():
            if value is not None and value < 1:
                raise ConfigError(f"{name} must be 1 or more, got {value!r}.")
        self._slots = asyncio.Semaphore(concurrency)
        self._requests = Minute(requests_per_minute) if requests_per_minute else None
        self._tokens = Minute(tokens_per_minute) if tokens_per_minute else None
        self._head = asyncio.Lock()
        self._clock, self._sleep = clock, sleep

    @asynccontextmanager
    async def slot(self, tokens: int) -> AsyncIterator[Entry]:
        """Wait until a call of an estimated number of tokens may start."""
        async with self._slots:
            async with self._head:
                while (wait := self._wait(tokens)) > 0:
                    await self._sleep(min(wait, LONGEST_NAP))
                now = self._clock()
                if self._requests is not None:
                    self._requests.enter(now, 1)
                entry = (self._tokens or Minute(math.inf)).enter(now, tokens)
            yield entry

    def _wait(self, tokens: int) -> float:
        now = self._clock()
        return max(
            0.0 if self._requests is None else self._requests.wait(now, 1),
            0.0 if self._tokens is None else self._tokens.wait(now, tokens),
        )


AGAIN = (ModelUnavailable, ModelReplyError)
"""The errors that are retried."""


class Retrying:
    """Retries failed calls by the rule of `coevolve.search.retries`.

    Args:
        attempts: Attempts at one call, with the first.
        seconds: Time-out of one attempt.
        longest_wait: The longest wait, in seconds, that a service may request.
        seed: The seed of the run, for the jitter.
        sleep: Waits for a number of seconds.
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
        self._retries = Retries(attempts=attempts, longest_asked=longest_wait)
        self._seconds, self._seed, self._sleep = seconds, seed, sleep

    async def __call__[Answer](self, key: str, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """The result of `ask`, or the error of its last attempt.

        The jitter depends on the seed and the key alone, not on other calls.
        """
        rng = np.random.default_rng([self._seed, int(key[:16], 16)])
        for attempt in count():
            try:
                return await ask()
            except AGAIN as error:
                wait = self._retries.wait(attempt, rng, getattr(error, "retry_after", None))
                if wait is None:
                    error.args = (f"{error} (after {self._retries.attempts} attempts)",)
                    raise
            await self._sleep(wait)
        raise AssertionError("there is a last attempt")

    async def in_time[Answer](self, answer: Awaitable[Answer]) -> Answer:
        """An answer within the time-out.

        Raises:
            ModelUnavailable: The time-out was reached first.
        """
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                return await answer
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ModelUnavailable(
                f"the model did not answer within {self._seconds:g} s. Raise `seconds` in [model] "
                "to wait longer."
            ) from error
