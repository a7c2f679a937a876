"""Two clocks: when something happened, and how long the run has been worked on."""

import time
from collections.abc import Callable

Clock = Callable[[], float]


class Clocks:
    """The wall clock, which may jump, and the working clock, which never runs backwards.

    >>> seconds = iter([100.0, 101.5, 90.0, 103.0])
    >>> clocks = Clocks(monotonic=lambda: next(seconds))
    >>> clocks.start(40.0)
    >>> clocks.worked(), clocks.worked(), clocks.worked()
    (41.5, 41.5, 43.0)
    """

    def __init__(self, wall: Clock = time.time, monotonic: Clock = time.monotonic) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._start = 0.0
        self._reached = 0.0

    def start(self, worked: float) -> None:
        """Go on from the seconds worked in earlier sessions."""
        self._reached = worked
        self._start = self._monotonic() - worked

    def now(self) -> float:
        """Seconds since 1970, to the millisecond."""
        return round(self._wall(), 3)

    def worked(self) -> float:
        """Seconds worked over all sessions, to the millisecond."""
        self._reached = max(self._reached, round(self._monotonic() - self._start, 3))
        return self._reached
