"""A harness that says when the candidate is at work, and keeps all of a trial's output."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from coevolve.executors.isolation import Executed, Harness

MOST_OUTPUT = 16_000
"""Characters of a candidate's output that are kept, the last ones."""


class Flag(Protocol):
    """Bytes others can see."""

    def __setitem__(self, index: int, value: int, /) -> None: ...


class WatchedHarness(Harness):
    """A harness whose calls can be seen from outside.

    Args:
        flag: Two bytes; the first is 1 while the candidate is at work, and the second from then
            until somebody sets it back.
        arguments: Those of `Harness`.
    """

    def __init__(self, *arguments: Any, flag: Flag, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._flag = flag
        self.said = ""

    def call(self, *arguments: Any, **named: Any) -> object:
        """What a function of the candidate answers."""
        with self._at_work():
            return super().call(*arguments, **named)

    def execute(self, *arguments: Any, **named: Any) -> Executed:
        """What an executable gave in the candidate's isolation."""
        with self._at_work():
            return super().execute(*arguments, **named)

    def forget_output(self) -> None:
        """Begin a new trial."""
        self.said = ""

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        self._flag[0] = self._flag[1] = 1
        try:
            yield
        finally:
            self._flag[0] = 0
            self.said = (self.said + self.output)[-MOST_OUTPUT:]
