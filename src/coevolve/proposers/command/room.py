"""How much an agent may write: so many bytes and files, and never the last of a disk."""

import contextlib
import math
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from coevolve.proposers.view import Workspace

GIGABYTE = 10**9
MOST_BYTES = 2 * GIGABYTE
MOST_FILES = 500_000
"""Both for one proposal; files and folders count alike."""
LEAST_BYTES = GIGABYTE
LEAST_FILES = 20_000
"""What stays free on the disk, or half of what was free if that is less."""
_STEP = 0.25
_BLOCK = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Bytes and files; infinitely many files where a file system does not count them."""

    bytes: float
    files: float


class Room:
    """Watches what an agent takes of the disks of its workspace and of its private home.

    A disk says at once how much is free. Only when that has fallen by more than an agent may
    take are its own files counted, for others write to the same disk.

    What lies in the workspace at first, but for proposals, does not count.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._folder, self._proposals = workspace.folder, workspace.proposals.name
        self._laid_out = {path.name for path in workspace.folder.iterdir()}
        self._added: list[Path] = []
        self._disks: dict[int, tuple[Path, Amount]] = {}
        self._looks = Amount(bytes=MOST_BYTES, files=MOST_FILES)
        self._watch(workspace.folder)

    def add(self, place: Path) -> None:
        """Watch another folder, too, of which all counts."""
        self._added.append(place)
        self._watch(place)

    def _watch(self, place: Path) -> None:
        self._disks.setdefault(place.stat().st_dev, (place, free(place)))

    def exceeded(self) -> str:
        """Why an agent has no more room; empty while it has."""
        try:
            pairs = [(began, free(place)) for place, began in self._disks.values()]
        except FileNotFoundError:  # an agent that is trusted may have removed its folder
            return ""
        if any(_scarce(began, left) for began, left in pairs):
            return "the disk is nearly full"
        gone = Amount(
            bytes=sum(max(0.0, began.bytes - left.bytes) for began, left in pairs),
            files=sum(_fallen(began.files, left.files) for began, left in pairs),
        )
        if gone.bytes <= self._looks.bytes and gone.files <= self._looks.files:
            return ""
        self._looks = Amount(
            bytes=max(self._looks.bytes, gone.bytes + _STEP * MOST_BYTES),
            files=max(self._looks.files, gone.files + _STEP * MOST_FILES),
        )
        return _too_much(taken(self._own()))

    def _own(self) -> Iterator[str]:
        """Where the agent can have written."""
        yield from map(str, self._added)
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name == self._proposals or entry.name not in self._laid_out:
                    yield entry.path


def free(place: Path) -> Amount:
    """What is free on the disk of a folder."""
    found = os.statvfs(place)
    files = found.f_favail if found.f_files else math.inf
    return Amount(bytes=found.f_bavail * found.f_frsize, files=files)


def taken(places: Iterable[str]) -> Amount:
    """What lies at some places, counted until it is too much.

    Links are not followed. What cannot be looked into counts as too much: somebody hides it.
    """
    size = number = 0
    try:
        waiting = list(places)
        while waiting and size <= MOST_BYTES and number + len(waiting) <= MOST_FILES:
            place = waiting.pop()
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # it is at work
                found = os.lstat(place)
                number, size = number + 1, size + _BLOCK * found.st_blocks
                if stat.S_ISDIR(found.st_mode):
                    with os.scandir(place) as entries:
                        waiting += [entry.path for entry in islice(entries, MOST_FILES)]
    except OSError:
        return Amount(bytes=math.inf, files=math.inf)
    return Amount(bytes=size, files=number + len(waiting))


def _scarce(began: Amount, left: Amount) -> bool:
    least_bytes = min(LEAST_BYTES, began.bytes / 2)
    least_files = min(LEAST_FILES, began.files / 2)
    return left.bytes < least_bytes or left.files < least_files


def _fallen(began: float, left: float) -> float:
    return max(0.0, began - left) if math.isfinite(began) else 0.0


def _too_much(found: Amount) -> str:
    if found.bytes > MOST_BYTES:
        return f"it had written more than {MOST_BYTES / GIGABYTE:g} GB"
    return f"it had made more than {MOST_FILES:,} files" if found.files > MOST_FILES else ""
