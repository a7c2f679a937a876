"""Checking a journal for damage, and replacing a damaged one by its intact events.

A journal and its log are two files. SQLite would mix the new journal with the old log, so the new
journal is first named run.db.repaired-1. While a file of that name exists, the repair is finished
before anything else; its steps can be repeated.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import batched, count
from pathlib import Path

from coevolve.errors import DamageError, StoreError
from coevolve.store import database
from coevolve.store.event_file import EventFile, are_sealed, seal_of
from coevolve.store.layout import Layout, damaged, explained, sync
from coevolve.store.lock import Lock, owner
from coevolve.store.raw_pages import RawPages, hides_commits

_WINDOW = 100_000
"""Lines are searched in order; those this far ahead of the last good one are dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The result of checking every event of a journal.

    `events` is the number recorded, None if unknown; the first `intact` of them are good;
    `damage` says what is wrong, None if nothing is.
    """

    events: int | None
    intact: int
    damage: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """The number of events a repair kept and lost (None: unknown), and the damaged journal.

    `backup` is None if nothing was damaged; then nothing was changed.
    """

    kept: int
    lost: int | None
    backup: Path | None


def verify(folder: Path) -> Health:
    """Check a whole journal, even while another process writes it.

    >>> from tempfile import TemporaryDirectory
    >>> from coevolve.store.run_store import RunStore
    >>> with TemporaryDirectory() as folder:
    ...     RunStore.create(Path(folder)).close()
    ...     verify(Path(folder))
    Health(events=0, intact=0, damage=None)
    """
    layout = Layout(folder)
    database.require(layout)
    refuse_unfinished(layout)
    recorded, error = _checked(layout, log=owner(folder) is None)
    if error is None:
        return Health(events=recorded, intact=recorded or 0, damage=None)
    found = recounted(layout, error)
    return Health(events=recorded, intact=found.intact, damage=str(found))


def repair(folder: Path) -> Repaired:
    """Create a journal of the intact events before the first damage; a healthy one is unchanged.

    The damaged files are kept beside it under another name, and never deleted. An interrupted
    repair is finished.
    """
    layout = Layout(folder)
    database.require(layout)
    lock = Lock(layout.lock)
    try:
        finished = finish(layout)
        recorded, error = _checked(layout, log=True)
        if error is None:
            lost = 0 if finished is None else None
            return Repaired(kept=recorded or 0, lost=lost, backup=finished)
        with explained(layout.journal):
            kept = _write_intact(layout)
            backup = replace(layout, _fresh(layout).journal)
    finally:
        lock.release()
    lost = None if recorded is None else max(0, recorded - kept)
    return Repaired(kept=kept, lost=lost, backup=backup)


def check_log(layout: Layout) -> None:
    """Refuse a log with hidden transactions; not for a log that is being written."""
    with explained(layout.log):
        if hides_commits(layout.log):
            raise damaged(layout.folder, 0, f"{layout.log.name} is damaged in its middle")


def _checked(layout: Layout, *, log: bool) -> tuple[int | None, DamageError | None]:
    """The number of events recorded, if known, and the first damage, if any."""
    recorded: int | None = None
    try:
        if log:
            check_log(layout)
        with closing(EventFile(layout, database.open_reader(layout))) as file:
            recorded = file.recorded()
            for _ in file.read(0, None):
                pass
            file.check_structure()
    except DamageError as error:
        return recorded, error
    return recorded, None


def recounted(layout: Layout, error: DamageError) -> DamageError:
    """An error from opening, with the number of events that a repair keeps."""
    return damaged(
        layout.folder, sum(1 for _ in _intact(layout)), getattr(error, "what", str(error))
    )


def _intact(layout: Layout) -> Iterator[bytes]:
    """The lines before the first damage, from anywhere in the files."""
    found: dict[int, set[bytes]] = {}
    seq, before = 0, b""
    with explained(layout.journal), RawPages(layout) as pages:
        for number, text in pages.lines():
            if seq <= number < seq + _WINDOW:
                found.setdefault(number, set()).add(text)
            while line := _fitting(found.get(seq, ()), before):
                yield line
                found.pop(seq)
                seq, before = seq + 1, seal_of(line)


def _fitting(lines: set[bytes] | tuple[()], before: bytes) -> bytes | None:
    return next((line for line in lines if are_sealed([line], before)), None)


def _write_intact(layout: Layout) -> int:
    """Write the intact lines to a new file in the folder for unfinished files."""
    fresh = _fresh(layout)
    for path in (fresh.journal, fresh.log, fresh.index):
        path.unlink(missing_ok=True)
    fresh.folder.mkdir(exist_ok=True)
    database.make(fresh.journal)
    kept = 0
    with closing(EventFile(fresh, database.open_writer(fresh))) as file:
        for lines in batched(_intact(layout), 2_000, strict=False):
            file.write(kept, [line.decode() for line in lines])
            kept += len(lines)
    if fresh.log.exists():
        # SQLite closes without an error if it cannot move the log into the file.
        raise StoreError(
            f"{fresh.log} could not be merged into run.db. Free some disk space and repair again."
        )
    return kept


def _fresh(layout: Layout) -> Layout:
    return Layout(layout.unfinished)


def replace(layout: Layout, fresh: Path) -> Path:
    """Replace the damaged journal by a file; it stays under the name returned."""
    number = next(n for n in count(1) if not _backup(layout, n).exists())
    sync(fresh)
    repaired = fresh.rename(layout.folder / f"run.db.repaired-{number}")
    return _replace(layout, repaired)


def finish(layout: Layout) -> Path | None:
    """Finish an interrupted repair, if there is one; returns where the damaged file is."""
    with explained(layout.journal):
        repaired = layout.repaired
        return None if repaired is None else _replace(layout, repaired)


def refuse_unfinished(layout: Layout) -> None:
    """Refuse to read a run during a repair."""
    if layout.repaired is not None:
        raise StoreError(
            f"a repair of {layout.folder} is not finished. If it is not running now, finish it "
            f"with `coevolve doctor --repair {layout.folder}`."
        )


def _replace(layout: Layout, repaired: Path) -> Path:
    """Do the steps of a repair; each can be repeated, and none overwrites a file."""
    sync(layout.folder)
    backup = _backup(layout, int(repaired.name.rpartition("-")[2]))
    # The old log first: SQLite would write its contents into the new file.
    for path, end in ((layout.log, "-wal"), (layout.index, "-shm")):
        if path.exists():
            path.rename(_free(backup.with_name(backup.name + end)))
    if not backup.exists():
        _keep(layout, backup)
    repaired.replace(layout.journal)
    sync(layout.folder)
    return backup


def _backup(layout: Layout, number: int) -> Path:
    return layout.folder / f"run.db.damaged-{number}"


def _free(path: Path) -> Path:
    """A path, or a similar one if a new log has this name in the meantime."""
    others = (path.with_name(f"{path.name}-{n}") for n in count(2))
    return next(name for name in others if not name.exists()) if path.exists() else path


def _keep(layout: Layout, backup: Path) -> None:
    try:
        os.link(layout.journal, backup)
    except OSError:
        # The file system has no links.
        layout.unfinished.mkdir(exist_ok=True)
        copy = layout.unfinished / backup.name
        shutil.copy2(layout.journal, copy)
        copy.rename(backup)
