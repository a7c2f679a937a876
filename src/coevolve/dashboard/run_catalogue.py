"""The runs, and the replays, that the pages show: those of some folders, found anew each time."""

import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coevolve.dashboard.run_feed import RunFeed
from coevolve.errors import CoevolveError, InputError
from coevolve.runs.run_listing import run_row, unreadable
from coevolve.store import JOURNAL, owner, run_folders
from coevolve.views.run_comparison import ReplayComparison, replay_comparison

MOST_FEEDS = 12
"""Runs that are kept in memory; the one that was not shown for longest is forgotten."""
_LARGEST_REPLAY = 50_000_000
"""Bytes of a file that is read as a replay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A run in the catalogue: its name in addresses, its folder, and its row in the list."""

    key: str
    folder: Path
    row: dict[str, Any]


class Catalogue:
    """Runs by their names in addresses. Threads may share it.

    A run is named by its folder; two folders of the same name get numbers.

    Args:
        places: Run folders, folders that have runs in them or in their `runs/`, and JSON files
            that `coevolve replay --json` wrote.
    """

    def __init__(self, places: Sequence[Path]) -> None:
        self._using = threading.Lock()
        self._places = tuple(places)
        self._keys: dict[Path, str] = {}
        self._feeds: OrderedDict[str, RunFeed] = OrderedDict()
        self._rows: dict[Path, tuple[Any, dict[str, Any]]] = {}
        self.replays = dict(self._named([p for p in places if p.is_file()]))
        for path in places:
            if not path.exists():
                raise InputError(f"{path} does not exist; name a run folder or a folder of runs.")
        for key in self.replays:
            self.replay(key)

    def close(self) -> None:
        """Close all journals."""
        with self._using:
            for feed in self._feeds.values():
                feed.close()
            self._feeds.clear()

    def folders(self) -> dict[str, Path]:
        """The runs that exist now, by their names in addresses."""
        found: list[Path] = []
        for place in self._places:
            if (place / JOURNAL).exists():
                found.append(place)
            elif place.is_dir():
                found += run_folders(place)
        with self._using:
            return dict(self._named(dict.fromkeys(path.resolve() for path in found)))

    def feed(self, key: str) -> RunFeed | None:
        """The run with a name; None if there is none."""
        folder = self.folders().get(key)
        ended: list[RunFeed] = []
        with self._using:
            found = self._feeds.get(key)
            if folder is None:
                return found  # deleted since: what was read is still shown
            if found is None:
                found = self._feeds[key] = RunFeed(folder)
                while len(self._feeds) > MOST_FEEDS:
                    ended.append(self._feeds.popitem(last=False)[1])
            self._feeds.move_to_end(key)
        for feed in ended:  # outside of the lock: one of them may be busy
            feed.close()
        return found

    def keeps(self, feed: RunFeed) -> bool:
        """Whether a run is among those in memory, so that asking for it again gives the same."""
        with self._using:
            return any(one is feed for one in self._feeds.values())

    def listed(self) -> list[Listed]:
        """All runs with their rows; one that did not change is not read again."""
        return [
            Listed(key=key, folder=folder, row=self._row(key, folder))
            for key, folder in self.folders().items()
        ]

    def changes(self) -> str:
        """A text that differs when a run began, went on or ended."""
        return ";".join(f"{key}{self._stamp(path)}" for key, path in self.folders().items())

    def replay(self, key: str) -> ReplayComparison:
        """The replay in a file.

        Raises:
            InputError: The file is not the output of `coevolve replay --json`.
        """
        path = self.replays[key]
        try:
            if path.stat().st_size > _LARGEST_REPLAY:
                raise InputError(f"{path} is larger than {_LARGEST_REPLAY:,} bytes.")
            found = json.loads(path.read_bytes())
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}.") from error
        except (ValueError, RecursionError):
            raise InputError(
                f"{path} is not JSON; write it with `coevolve replay --json`."
            ) from None
        if not isinstance(found, dict):
            raise InputError(f"{path} is not a replay; write it with `coevolve replay --json`.")
        return replay_comparison(found)

    def _row(self, key: str, folder: Path) -> dict[str, Any]:
        stamp = self._stamp(folder)
        with self._using:
            known, feed = self._rows.get(folder), self._feeds.get(key)
        if known is not None and known[0] == stamp:
            return known[1]
        if feed is None:
            row = run_row(folder)
        else:
            try:
                row = feed.row()
            except CoevolveError as error:
                row = unreadable(folder, str(error))
        with self._using:
            self._rows[folder] = stamp, row
        return row

    def _stamp(self, folder: Path) -> tuple[Any, ...]:
        """What changes when a run goes on, starts or ends."""
        found = []
        for name in (JOURNAL, f"{JOURNAL}-wal"):
            try:
                file = (folder / name).stat()
            except OSError:
                continue
            found.append((file.st_ino, file.st_size, file.st_mtime_ns))
        try:
            held = owner(folder) is not None
        except CoevolveError:
            held = False
        return (*found, held)

    def _named(self, paths: Any) -> Iterator[tuple[str, Path]]:
        """Paths with names for addresses, which stay as long as this object lives."""
        taken = set(self._keys.values())
        for path in paths:
            if path not in self._keys:
                base = _slug(path.stem if path.is_file() else path.name)
                key, number = base, 2
                while key in taken:
                    key, number = f"{base}-{number}", number + 1
                self._keys[path] = key
                taken.add(key)
            yield self._keys[path], path


def _slug(name: str) -> str:
    """A name in lower case, digits and hyphens.

    >>> _slug("My run (2)"), _slug("…")
    ('my-run-2', 'run')
    """
    kept = "".join(c if c.isascii() and c.isalnum() else "-" for c in name.lower())
    return "-".join(part for part in kept.split("-") if part)[:60] or "run"
