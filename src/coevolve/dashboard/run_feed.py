"""A run that a page shows: its journal is read once and then followed, event by event."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coevolve.errors import CoevolveError, StoreError
from coevolve.figures import Figure
from coevolve.runs.run_listing import row_of
from coevolve.store import JOURNAL, RunStore, owner
from coevolve.views.grid_order import GridOrders, grid_orders
from coevolve.views.outcome_grid import GridSplit, OutcomeGrid
from coevolve.views.timeline import Snapshot, Timeline

MOST_EVENTS = 5_000
"""Events that one call takes; a page need not wait for more."""
MOST_FIGURES = 30
"""Figures of one run that are kept."""
_REST = 3.0
"""A new snapshot waits this many times as long as the last one took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """How far a run is: enough to know whether a page is out of date.

    `events` is the number of events that the page can show. `held` says whether a process works
    on the run. `trouble` is why the journal cannot be read any more; empty if it can.
    """

    events: int
    held: bool
    trouble: str

    @property
    def tag(self) -> str:
        """A text that differs between two moments that a page shows differently."""
        return f"{self.events}-{int(self.held)}-{int(bool(self.trouble))}"


class RunFeed:
    """The projections of one run, kept up to date with its journal. Threads may share it.

    The journal is opened at the first use. A journal that is replaced by a repair is read anew;
    one that disappears or is damaged keeps what was known, and says so.

    Args:
        folder: The folder of the run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._using = threading.RLock()
        self._store: RunStore | None = None
        self._file: tuple[int, int] | None = None
        self._timeline: Timeline | None = None
        self._trouble = ""
        self._held = False
        self._made: dict[Any, Any] = {}
        self._made_of = -1
        self._rested = 0.0
        self._starting = threading.Lock()
        self._reader: threading.Thread | None = None

    def close(self) -> None:
        """Close the journal and forget the run."""
        with self._using:
            if self._store is not None:
                self._store.close()
            self._store = self._timeline = self._file = None
            self._made.clear()
            self._made_of = -1

    def __del__(self) -> None:
        # A page may have opened the journal again after the run was put aside for others.
        self.close()

    def read_within(self, seconds: float) -> bool:
        """Whether the journal is read, or was tried, by then; if not, a thread goes on reading."""
        with self._starting:
            if self._timeline is not None:
                return True
            if self._reader is None or not self._reader.is_alive():
                self._reader = threading.Thread(target=self.moment, daemon=True)
                self._reader.start()
            reader = self._reader
        reader.join(seconds)
        return not reader.is_alive()

    def moment(self) -> Moment:
        """Take new events, and say how far the run is."""
        with self._using:
            self._follow()
            events = 0 if self._timeline is None else self._timeline.state.events
            if self._made and events != self._made_of and time.monotonic() < self._rested:
                events = self._made_of  # the next snapshot waits, and so does its page
            return Moment(events=events, held=self._held, trouble=self._trouble)

    def timeline(self) -> Timeline:
        """The run over time, up to date.

        Raises:
            CoevolveError: The journal was never readable.
        """
        with self._using:
            self._follow()
            if self._timeline is None:
                raise StoreError(self._trouble)
            return self._timeline

    def journal(self) -> RunStore:
        """The journal, for files and traces."""
        self.timeline()
        if self._store is None:
            raise StoreError(self._trouble)
        return self._store

    def snapshot(self) -> Snapshot:
        """Everything but the matrix."""
        found: Snapshot = self._projected("snapshot", lambda now: now.snapshot())
        return found

    def grid(self, split: GridSplit = "validation") -> OutcomeGrid:
        """The matrix of outcomes."""
        found: OutcomeGrid = self._projected(("grid", split), lambda now: now.grid(split))
        return found

    def orders(self, split: GridSplit = "validation") -> GridOrders:
        """The orders of the matrix."""
        grid = self.grid(split)
        found: GridOrders = self._projected(("orders", split), lambda now: grid_orders(grid))
        return found

    def figure(self, key: tuple[Any, ...], draw: Any) -> Figure:
        """A figure that `draw` makes from the snapshot; kept until the run goes on.

        Only some are kept: readers may ask for any number of them.
        """
        with self._using:
            found: Figure = self._cached(("figure", *key), lambda now: draw())
            kept = [one for one in self._made if one[0] == "figure"]
            for old in kept[: max(0, len(kept) - MOST_FIGURES)]:
                del self._made[old]
            return found

    def row(self) -> dict[str, Any]:
        """The run in a list of runs."""
        with self._using:
            now = self.snapshot().report
            return row_of(self.folder, now, held=self._held)

    @property
    def file(self) -> str:
        """A text that differs between two journals, also where one replaced the other."""
        return "-".join(f"{number:x}" for number in self._file or ())

    @property
    def shown(self) -> int:
        """The number of events in what the projections show now."""
        return self._made_of

    def locked(self) -> threading.RLock:
        """Held while a page is made, so that all of it shows one moment of the run."""
        return self._using

    def _projected(self, key: Any, make: Any) -> Any:
        with _misread(self.folder):
            return self._cached(key, make)

    def _cached(self, key: Any, make: Any) -> Any:
        with self._using:
            now = self.timeline()
            events = now.state.events
            resting = self._made and time.monotonic() < self._rested
            if events != self._made_of and not resting:
                self._made.clear()
                self._made_of = events
            if key not in self._made:
                began = time.monotonic()
                self._made[key] = make(now)
                ended = time.monotonic()
                self._rested = max(self._rested, ended + _REST * (ended - began))
            return self._made[key]

    def _follow(self) -> None:
        try:
            file = self._current_file()
            if self._store is None or self._timeline is None or file != self._file:
                # What is known stays until another journal can be read.
                store, timeline = _opened(self.folder)
                self.close()
                self._store, self._timeline, self._file = store, timeline, file
            with _misread(self.folder):
                for event in self._store.latest(self._timeline.state.events, MOST_EVENTS):
                    self._timeline.follow(event)
            self._held = owner(self.folder) is not None
            self._trouble = ""
        except CoevolveError as error:
            self._trouble, self._held = str(error), False

    def _current_file(self) -> tuple[int, int]:
        """Which file the journal is; a repair replaces it."""
        try:
            found = (self.folder / JOURNAL).stat()
        except OSError as error:
            raise StoreError(f"{self.folder / JOURNAL}: {error.strerror}.") from error
        return found.st_dev, found.st_ino


def _opened(folder: Path) -> tuple[RunStore, Timeline]:
    """A journal and what it says; closed again if it cannot be read."""
    store = RunStore.read(folder)
    try:
        with _misread(folder):
            return store, Timeline.of(store)
    except BaseException:
        store.close()
        raise


@contextmanager
def _misread(folder: Path) -> Iterator[None]:
    """An event that another program wrote may say anything; then the run cannot be shown."""
    try:
        yield
    except CoevolveError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise StoreError(
            f"the journal of {folder} has values that cannot be shown ({error!r:.200}). "
            "It is damaged, or another program wrote it; use a copy of the run."
        ) from error
