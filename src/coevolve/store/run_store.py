"""A run on disk: its events, contents and candidates."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from coevolve.core.events import Event, Line, sealed
from coevolve.errors import DamageError, EventError, StoreError
from coevolve.search.candidate import Candidate
from coevolve.store import database
from coevolve.store.contents import Blobs, Checkouts
from coevolve.store.event_file import EventFile
from coevolve.store.layout import Layout, explained
from coevolve.store.lock import Lock
from coevolve.store.repair import check_log, finish, recounted, refuse_unfinished

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
        """Continue from the seconds worked in earlier sessions."""
        self._reached = worked
        self._start = self._monotonic() - worked

    def now(self) -> float:
        """Seconds since 1970, to the millisecond."""
        return round(self._wall(), 3)

    def worked(self) -> float:
        """Seconds worked over all sessions, to the millisecond."""
        self._reached = max(self._reached, round(self._monotonic() - self._start, 3))
        return self._reached


_RESERVED = frozenset({"seq", "type", "seal", "at", "clock"})


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a journal: the number of the next event, the last seal and the last clock."""

    seq: int = 0
    seal: str = ""
    clock: float = 0.0


class RunStore:
    """The journal of a run and the contents its events refer to.

    `create` and `open` return a store that may write and holds the run's lock; `read` returns one
    of any number of readers. It implements `search.journal.Journal`. Threads may share it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, RunStore.create(Path(folder)) as run:
    ...     [event] = run.append([("noted", {"text": "hello"})])
    ...     run.count, event["type"], run.get(run.put(b"trace"))
    (1, 'noted', b'trace')
    """

    def __init__(self, layout: Layout, file: EventFile, lock: Lock | None, clocks: Clocks) -> None:
        self._layout = layout
        self._file = file
        self._lock = lock
        self._clocks = clocks
        self._blobs = Blobs(layout)
        self._checkouts = Checkouts(layout, self._blobs)
        self._appending = threading.Lock()
        self._writing_files = threading.Lock()
        self._end: _End | None = self._found_end()
        clocks.start(self._end.clock)

    @classmethod
    def create(
        cls, folder: Path, *, wall: Clock = time.time, monotonic: Clock = time.monotonic
    ) -> Self:
        """Create a run in a folder, for writing; the folder is created if it does not exist."""
        layout = Layout(folder)
        with explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
        lock = Lock(layout.lock)
        try:
            database.make_first(layout)
            return cls._opened(layout, lock, Clocks(wall, monotonic))
        except BaseException:
            lock.release()
            raise

    @classmethod
    def open(
        cls, folder: Path, *, wall: Clock = time.time, monotonic: Clock = time.monotonic
    ) -> Self:
        """Open the run in a folder for writing, to continue it."""
        layout = Layout(folder)
        database.require(layout)
        lock = Lock(layout.lock)
        try:
            layout.clear_unfinished()
            finish(layout)
            return cls._opened(layout, lock, Clocks(wall, monotonic))
        except BaseException:
            lock.release()
            raise

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Open the run in a folder to read it, even while another process writes it."""
        layout = Layout(folder)
        database.require(layout)
        refuse_unfinished(layout)
        return cls._opened(layout, None, Clocks())

    @classmethod
    def _opened(cls, layout: Layout, lock: Lock | None, clocks: Clocks) -> Self:
        try:
            if lock is not None:
                check_log(layout)
            connect = database.open_writer if lock is not None else database.open_reader
            file = EventFile(layout, connect(layout))
            try:
                return cls(layout, file, lock, clocks)
            except BaseException:
                file.close()
                raise
        except DamageError as error:
            raise recounted(layout, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and release the lock; may be called twice."""
        try:
            self._file.close()
        finally:
            if self._lock is not None:
                self._lock.release()

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self._layout.folder

    @property
    def count(self) -> int:
        """The number of events as of now."""
        return self._file.count()

    def append(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Event]:
        """Record (type, body) pairs in one transaction, and return them as events.

        The store adds "at", seconds since 1970, and "clock", seconds worked on the run.
        """
        self._require_writer()
        with self._appending:
            end = self._end or self._found_end()
            clock = self._clocks.worked()
            lines = _lines(events, end, {"at": self._clocks.now(), "clock": clock})
            if lines:
                # Unknown if the transaction is interrupted.
                self._end = None
                self._file.write(end.seq, [line.text for line in lines])
                self._end = _End(end.seq + len(lines), lines[-1].event["seal"], clock)
            return [json.loads(line.text) for line in lines]

    def events(self, since: int = 0, until: int | None = None) -> Iterator[Event]:
        """Events number `since` up to, not including, `until`, checked for damage."""
        return self._file.read(since, until)

    def skim(self, until: int | None = None) -> Iterator[Event]:
        """Events for a fold: without the outcomes that a later event summarizes."""
        return self._file.skim(until)

    def latest(self, since: int, most: int = 2_000) -> list[Event]:
        """At most `most` events from number `since` on; fast if there is none."""
        return list(self.events(since, since + most))

    def last_event(self) -> Event | None:
        """The last event, if there is one."""
        count = self.count
        return next(self.events(count - 1)) if count else None

    def put(self, data: bytes, *, durable: bool = False) -> str:
        """Store some bytes and return their address.

        They survive the end of the process; if `durable`, a power cut too.
        """
        self._require_writer()
        return self._blobs.put(data, durable=durable)

    def get(self, address: str) -> bytes:
        """The bytes stored at an address, checked for damage."""
        return self._blobs.get(address)

    def checkout(self, candidate: Candidate) -> Path:
        """A folder with the files of a candidate, for reading only.

        A reader gets it only if a writer created it before.
        """
        # Another lock than that of `append`, which need not wait for files.
        with self._writing_files:
            if self._lock is None and self._checkouts.intact(candidate):
                return self._checkouts.path(candidate)
            self._require_writer()
            return self._checkouts.make(candidate)

    def clock(self) -> float:
        """Seconds worked on the run over all sessions; never runs backwards.

        A reader gets the clock of the last event.
        """
        if self._lock is None:
            return self._found_end().clock
        with self._appending:
            return self._clocks.worked()

    def _require_writer(self) -> None:
        if self._lock is None:
            raise StoreError(
                f"the run {self.folder} is open for reading only. Open it with RunStore.open."
            )

    def _found_end(self) -> _End:
        last = self.last_event()
        return _End(last["seq"] + 1, last["seal"], last["clock"]) if last else _End()


def _lines(
    events: Sequence[tuple[str, Mapping[str, Any]]], end: _End, times: Mapping[str, float]
) -> list[Line]:
    lines: list[Line] = []
    before = end.seal
    for seq, (kind, body) in enumerate(events, end.seq):
        if taken := _RESERVED & body.keys():
            raise EventError(
                f"an event of type {kind!r} has the field {min(taken)!r}, which the store sets. "
                "Use another name."
            )
        lines.append(sealed(seq, kind, {**body, **times}, before))
        before = lines[-1].event["seal"]
    return lines
