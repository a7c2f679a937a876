"""A journal in memory, for notebooks and tests: nothing of it survives the process."""

import json
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from coevolve.core.events import Event, Log, sealed
from coevolve.errors import DamageError
from coevolve.search.candidate import Candidate, address_of


class MemoryJournal:
    """A journal in memory.

    >>> journal = MemoryJournal()
    >>> journal.append([("opened", {"name": "mine"})])[0]["seq"]
    0
    >>> journal.get(journal.put(b"text"))
    b'text'
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = Log()
        self._contents: dict[str, bytes] = {}
        self._clock, self._since = clock, clock()
        self._folder: Path | None = None

    def append(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Event]:
        """Record events."""
        made = []
        for kind, body in events:
            stamped = {**body, "at": 0.0, "clock": self.clock()}
            line = sealed(len(self._log), kind, stamped, self._log.seal)
            self._log.append(line)
            made.append(json.loads(line.text))
        return made

    def events(self, since: int = 0, until: int | None = None) -> Iterator[Event]:
        """Events in order."""
        found = self._log.since(since)
        return iter(found if until is None else found[: max(0, until - since)])

    def skim(self, until: int | None = None) -> Iterator[Event]:
        """Events in order, all of them."""
        return self.events(until=until)

    def put(self, data: bytes, *, durable: bool = False) -> str:
        """Keep some bytes and return their address."""
        address = address_of(data)
        self._contents[address] = data
        return address

    def get(self, address: str) -> bytes:
        """The bytes kept at an address."""
        if address not in self._contents:
            raise DamageError(f"nothing is kept at {address!r}.")
        return self._contents[address]

    def checkout(self, candidate: Candidate) -> Path:
        """A folder with the files of a candidate, gone with the journal."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="coevolve-memory-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        folder = self._folder / candidate.address
        for path, address in candidate.files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self.get(address))
        return folder

    def clock(self) -> float:
        """Seconds since the journal was made."""
        return self._clock() - self._since
