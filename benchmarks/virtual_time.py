"""An event loop whose clock jumps to the next timer, so that a search of a day takes a second."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any


class JumpingSelector(selectors.SelectSelector):
    """Waits for nothing: the time it was to wait has passed at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("every task waits and no timer is set; nothing can happen.")
            self.now += max(0.0, timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on virtual time; nothing outside the process may be waited for."""

    def __init__(self) -> None:
        self._virtual = JumpingSelector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._virtual.now


Clock = Callable[[], float]


def run[Done](act: Callable[[Clock], Coroutine[Any, Any, Done]]) -> Done:
    """Run a coroutine function, which gets the clock, to its end on virtual time.

    >>> async def wait(clock):
    ...     await asyncio.sleep(3600)
    ...     return clock()
    >>> run(wait)
    3600.0
    """
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        return runner.run(act(loop.time))
