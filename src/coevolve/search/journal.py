"""The journal of a run and its recorder: every event is recorded before it is applied."""

import ctypes
import json
import math
import shutil
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from coevolve.core.events import Event, Line, Log, sealed
from coevolve.errors import DamageError
from coevolve.search.candidate import Candidate, address_of
from coevolve.search.effects import apply, fold
from coevolve.search.run_state import RunState
from coevolve.search.trials import Result, Trial

_RELEASE_SECONDS = 1.0
"""How often freed memory is returned at most: small waves follow each other in milliseconds."""


class Journal(Protocol):
    """The record of one run: events in order, and contents by address."""

    def append(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Event]:
        """Record (type, body) pairs in one transaction; they are stored when it returns."""
        ...

    def events(self, since: int = 0, until: int | None = None) -> Iterator[Event]:
        """Events number `since` up to, not including, `until`, checked for damage."""
        ...

    def skim(self, until: int | None = None) -> Iterator[Event]:
        """The events that a fold needs.

        The events of a wave ("outcome", "failed" and "reopened") may be left out if the event
        "told" that closes the wave follows. Those of an open wave may come after other events.
        """
        ...

    def put(self, data: bytes, *, durable: bool = False) -> str:
        """Store some bytes and return their address; durable ones survive a power cut."""
        ...

    def get(self, address: str) -> bytes:
        """The bytes stored at an address."""
        ...

    def checkout(self, candidate: Candidate) -> Path:
        """A folder with the files of a candidate, to read only."""
        ...

    def clock(self) -> float:
        """Seconds of work on the run over all sessions; never runs backwards."""
        ...


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
        self._writing_files = threading.Lock()

    def append(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Event]:
        """Record events."""
        lines: list[Line] = []
        before, times = self._log.seal, {"at": 0.0, "clock": self.clock()}
        for seq, (kind, body) in enumerate(events, len(self._log)):
            lines.append(sealed(seq, kind, {**body, **times}, before))
            before = lines[-1].event["seal"]
        for line in lines:
            self._log.append(line)
        return [json.loads(line.text) for line in lines]

    def events(self, since: int = 0, until: int | None = None) -> Iterator[Event]:
        """Events in order."""
        found = self._log.since(since)
        return iter(found if until is None else found[: max(0, until - since)])

    def skim(self, until: int | None = None) -> Iterator[Event]:
        """Events in order, all of them."""
        return self.events(until=until)

    def put(self, data: bytes, *, durable: bool = False) -> str:
        """Store some bytes and return their address."""
        address = address_of(data)
        self._contents[address] = data
        return address

    def get(self, address: str) -> bytes:
        """The bytes stored at an address."""
        if address not in self._contents:
            raise DamageError(f"nothing is stored at {address!r}.")
        return self._contents[address]

    def checkout(self, candidate: Candidate) -> Path:
        """A folder with the files of a candidate, removed with the journal."""
        with self._writing_files:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="coevolve-memory-"))
                weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
            folder = self._folder / candidate.address
            if not folder.exists():  # a sandbox may be importing files that exist
                new = self._folder / f"{candidate.address}.new"
                for path, address in candidate.files.items():
                    target = new / path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(self.get(address))
                new.rename(folder)
        return folder

    def clock(self) -> float:
        """Seconds since the journal was made."""
        return self._clock() - self._since


class Recorder:
    """A journal and the state of its run: an event is recorded, then applied to the state.

    `listen` is called with every event after that. `state` is the state so far, if it is known.
    """

    def __init__(
        self,
        journal: Journal,
        listen: Callable[[Event], None] = lambda event: None,
        *,
        state: RunState | None = None,
    ) -> None:
        self.journal = journal
        self.state: RunState = fold(journal.skim()) if state is None else state
        self._listen = listen
        self._released = -math.inf

    def record(self, kind: str, body: Mapping[str, Any]) -> None:
        """Record an event, then apply it."""
        self._record([(kind, body)])

    def catch_up(self) -> None:
        """Apply the events that the journal has and the state does not.

        There are some if an append was interrupted after it had reached the disk.
        """
        self._apply(list(self.journal.events(self.state.events)))

    def _record(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        recorded = self.journal.append(events)
        if recorded[0]["seq"] == self.state.events:
            self._apply(recorded)
        else:
            self.catch_up()

    def _apply(self, events: Sequence[Event]) -> None:
        for event in events:
            apply(self.state, event)
        for event in events:
            self._listen(event)

    def outcome(self, trial: Trial, result: Result) -> None:
        """Record the outcome of a trial."""
        self.record("outcome", self._row(trial, result))

    def failed(self, trial: Trial, result: Result) -> None:
        """Record an attempt that will be repeated."""
        body = self._row(trial, result)
        del body["score"]
        self.record("failed", body | {"attempt": trial.attempt})

    def exhausted(self, cap: str) -> None:
        """Record that a cap of the budget is reached."""
        spent = asdict(self.state.spending(self.journal.clock()))
        ended: list[tuple[str, Mapping[str, Any]]] = [("exhausted", {"cap": cap, "spent": spent})]
        if self.state.wave is not None:
            rest = f"the budget of {cap} was spent"
            ended.insert(0, ("told", {**self.state.wave.to_json(), "rest": rest}))
        self._record(ended)

    def told(self) -> None:
        """Record the outcomes of the wave, which closes it unless it is rolling."""
        if self.state.wave is not None:
            self.record("told", {**self.state.wave.to_json(), "rest": ""})
            now = time.monotonic()
            if now >= self._released + _RELEASE_SECONDS:
                self._released = now
                release_memory()

    def _row(self, trial: Trial, result: Result) -> dict[str, Any]:
        row: dict[str, Any] = {
            "candidate": trial.candidate,
            "task": trial.task,
            "trial": trial.trial,
            "score": result.score,
            "usage": result.usage.row,
        }
        if trial.split != "validation":
            row["split"] = trial.split
        if result.fault is not None:
            row["fault"], row["score"] = result.fault.to_json(), result.fault.score
        if result.trace is not None:
            row["trace"] = self.journal.put(result.trace.encode())
        return row


def release_memory() -> None:
    """Return freed memory to the system, which the allocator of Linux keeps for itself.

    A wave needs memory for its trials, so a run of many waves would seem to grow with each.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
