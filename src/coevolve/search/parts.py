"""What the loop plugs together: a journal and an executor, each replaceable."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from coevolve.core.events import Event
from coevolve.search.candidate import Candidate
from coevolve.search.trials import Prepared, Result, Trial


class Journal(Protocol):
    """The record of one run: events in order, and contents by address."""

    def append(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Event]:
        """Record (type, body) pairs in one transaction; on return they are kept."""
        ...

    def events(self, since: int = 0, until: int | None = None) -> Iterator[Event]:
        """Events number `since` up to, not including, `until`, checked for damage."""
        ...

    def skim(self, until: int | None = None) -> Iterator[Event]:
        """Events as `events` gives them, for a fold; may leave out what a later one sums up.

        What may be left out are the events of a wave, "outcome", "failed" and "reopened", before
        the event "told" that closes it. Those of a wave that is still open may come after others.
        """
        ...

    def put(self, data: bytes, *, durable: bool = False) -> str:
        """Keep some bytes and return their address; durable ones outlive a power cut."""
        ...

    def get(self, address: str) -> bytes:
        """The bytes kept at an address."""
        ...

    def checkout(self, candidate: Candidate) -> Path:
        """A folder with the files of a candidate, which nobody should change."""
        ...

    def clock(self) -> float:
        """Seconds the run has been worked on, over all sessions; never runs backwards."""
        ...


class Executor(Protocol):
    """Where trials run. Every method makes one attempt and never raises for a trial's sake.

    It may have an attribute `isolation_name` that says how candidate code is kept apart, which
    every session records.
    """

    @property
    def capacity(self) -> int:
        """How many attempts may be under way at once."""
        ...

    async def check(self, candidate: Candidate) -> Prepared:
        """Whether a candidate can be evaluated at all; what is wrong is its `fault`."""
        ...

    async def prepare(self, candidate: Candidate) -> Prepared:
        """Make a candidate ready for trials, once; its state, if any, goes with every trial."""
        ...

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        """Run one attempt; cancelling the call ends it and all its processes."""
        ...

    async def close(self) -> None:
        """End every process."""
        ...
