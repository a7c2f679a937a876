"""Putting a repaired journal in the place of the damaged one, in steps that may be cut short.

A journal and its log are two files, and either beside the other's successor would be a journal
that never was. So the repaired journal first gets a name of its own, run.db.repaired-1; while
there is a file of that name the steps that follow are taken, or taken again, before anything else.
"""

import os
import shutil
from itertools import count
from pathlib import Path

from coevolve.errors import StoreError
from coevolve.store.layout import Layout, sync
from coevolve.store.trouble import explained


def replace(layout: Layout, fresh: Path) -> Path:
    """Put a file in the place of the damaged one, which stays under the name returned."""
    number = next(n for n in count(1) if not _backup(layout, n).exists())
    sync(fresh)
    repaired = fresh.rename(layout.folder / f"run.db.repaired-{number}")
    return _replace(layout, repaired)


def finish(layout: Layout) -> Path | None:
    """Finish a repair that was cut short, if there is one; where the damaged file is then."""
    with explained(layout.journal):
        repaired = layout.repaired
        return None if repaired is None else _replace(layout, repaired)


def refuse_unfinished(layout: Layout) -> None:
    """Refuse to read a run in the middle of a repair."""
    if layout.repaired is not None:
        raise StoreError(
            f"a repair of {layout.folder} is not finished. Unless it is at work now, `coevolve "
            f"doctor --repair {layout.folder}` finishes it."
        )


def _replace(layout: Layout, repaired: Path) -> Path:
    """Every step can be taken again, and none writes over anything."""
    sync(layout.folder)
    backup = _backup(layout, int(repaired.name.rpartition("-")[2]))
    # The old log first: SQLite would write what is in it over the new file.
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
    """A name, or one like it where somebody has made a new log in the meantime."""
    others = (path.with_name(f"{path.name}-{n}") for n in count(2))
    return next(name for name in others if not name.exists()) if path.exists() else path


def _keep(layout: Layout, backup: Path) -> None:
    try:
        os.link(layout.journal, backup)
    except OSError:
        # A file system without links.
        layout.unfinished.mkdir(exist_ok=True)
        copy = layout.unfinished / backup.name
        shutil.copy2(layout.journal, copy)
        copy.rename(backup)
