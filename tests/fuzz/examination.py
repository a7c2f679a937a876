"""One target under many examples: each must end soon and use little memory."""

import contextlib
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, given, settings

from coevolve.errors import CoevolveError
from tests.fuzz.target import Target

SECONDS = 20.0
"""CPU time, far more than any example needs."""
WAIT = 600.0
"""Seconds on the clock, for one that waits; a busy machine may stop for long."""
MEGABYTES = 600
"""Address space that an example may add to that of its process."""


class Endless(BaseException):
    """The example did not end; not an `Exception`, so that no parser catches it."""


def examine(target: Target, examples: int) -> int:
    """Try a target with this many examples, and return how many were tried.

    An error that is not ours, an example without end, or one that allocates without bound is
    raised, with the smallest example that was found.
    """
    tried = 0

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(target.inputs)
    def read(value: Any) -> None:
        nonlocal tried
        tried += 1
        with bounded(), contextlib.suppress(CoevolveError):
            target.read(value)

    read()
    return tried


@contextmanager
def bounded() -> Iterator[None]:
    """Raise `Endless` after `SECONDS` or `WAIT`; make allocations beyond `MEGABYTES` fail."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + (MEGABYTES << 20)
        resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    handlers = {number: signal.signal(number, _end) for number in (signal.SIGALRM, signal.SIGPROF)}
    signal.setitimer(signal.ITIMER_REAL, WAIT)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def _end(number: int, frame: FrameType | None) -> None:
    raise Endless(f"an example worked longer than {SECONDS:g} s, or waited longer than {WAIT:g} s")
