"""Single flight: what several want at once is asked once."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from coevolve.models.errors import ModelUnavailable


class Flight[Answer]:
    """A call under way, and who waits for it."""

    def __init__(self, task: asyncio.Task[Answer]) -> None:
        self.task = task
        self.waiting = 0
        self.claimed = False


class Flights[Answer]:
    """Calls under way by key.

    A call goes on until it is answered or nobody waits for it any more.
    """

    def __init__(self) -> None:
        self._flights: dict[str, Flight[Answer]] = {}
        self._tasks: set[asyncio.Task[Answer]] = set()

    async def join(
        self, key: str, ask: Callable[[], Coroutine[Any, Any, Answer]]
    ) -> tuple[Answer, bool]:
        """What `ask` answers, and whether this is the first to get that answer.

        Raises:
            ModelUnavailable: The flights were closed meanwhile.
        """
        flight = self._flights.get(key) or self._begun(key, ask)
        flight.waiting += 1
        try:
            answer = await asyncio.shield(flight.task)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if flight.task.cancelled() and task is not None and not task.cancelling():
                raise ModelUnavailable("the gateway was closed before the answer came") from None
            raise
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                self._forget(key, flight)
                flight.task.cancel()
        first, flight.claimed = not flight.claimed, True
        return answer, first

    async def close(self) -> None:
        """End every call under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begun(self, key: str, ask: Callable[[], Coroutine[Any, Any, Answer]]) -> Flight[Answer]:
        flight = self._flights[key] = Flight(asyncio.create_task(ask()))
        self._tasks.add(flight.task)

        def landed(task: asyncio.Task[Answer]) -> None:
            self._tasks.discard(task)
            self._forget(key, flight)
            if not task.cancelled():
                task.exception()  # or asyncio complains when nobody waits for it any more

        flight.task.add_done_callback(landed)
        return flight

    def _forget(self, key: str, flight: Flight[Answer]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
