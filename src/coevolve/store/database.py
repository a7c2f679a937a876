"""The SQLite file of a journal: made, opened for writing, opened for reading.

Two tables. `events(seq, text)` holds the lines. `head(schema, count)` holds one row, written in
the same transactions: how many events there must be, so that a lost end is noticed.
"""

import os
import sqlite3
from pathlib import Path

from coevolve.errors import StoreError
from coevolve.store.layout import Layout, damaged, explained

APPLICATION = 0x436F4576
"""Marks the file as ours: "CoEv"."""
SCHEMA = 1
PAGE = 4096
PATIENCE_MS = 10_000

_TABLES = """
CREATE TABLE events (seq INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE head (id INTEGER PRIMARY KEY, schema INTEGER NOT NULL, count INTEGER NOT NULL);
"""

# What never changes in the first 100 bytes of our files: (start, bytes). SQLite believes these
# bytes, and would write to the wrong places if one of them were damaged.
_FIXED = (
    (0, b"SQLite format 3\0" + PAGE.to_bytes(2) + bytes((2, 2, 0, 64, 32, 32))),
    (32, bytes(8)),
    (44, (4).to_bytes(4)),
    (52, bytes(4) + (1).to_bytes(4)),
    (64, bytes(4)),
    (72, bytes(20)),
)


def make(path: Path) -> None:
    """A new, empty journal."""
    connection = _connect(path, "mode=rwc")
    try:
        connection.execute(f"PRAGMA page_size={PAGE}")
        connection.execute(f"PRAGMA application_id={APPLICATION}")
        connection.execute(f"PRAGMA user_version={SCHEMA}")
        connection.executescript(_TABLES)
        connection.execute("INSERT INTO head VALUES (0, ?, 0)", (SCHEMA,))
        # Last, so that the tables are in the file itself: without them a lost log would be
        # the end of everything.
        connection.execute("PRAGMA journal_mode=WAL")
    finally:
        connection.close()


def make_first(layout: Layout) -> None:
    """The journal of a new run; it goes by its name once it is complete."""
    with explained(layout.journal):
        if layout.journal.exists():
            raise StoreError(
                f"{layout.folder} holds a run already. Go on with `coevolve resume "
                f"{layout.folder}`, or choose another folder."
            )
        if not _is_empty(layout.log):
            # SQLite would write what is in it over the new file.
            raise StoreError(
                f"{layout.log} is the log of a journal that is not there. Put its run.db back, "
                "or move it away."
            )
        layout.clear_unfinished()
        layout.unfinished.mkdir()
        unfinished = Layout(layout.unfinished).journal
        make(unfinished)
        unfinished.rename(layout.journal)


def open_writer(layout: Layout) -> sqlite3.Connection:
    """A connection that may append."""
    return _opened(layout, "mode=rw", ("PRAGMA synchronous=NORMAL", "PRAGMA cell_size_check=ON"))


def open_reader(layout: Layout) -> sqlite3.Connection:
    """A connection that cannot write and that no writer ever waits for."""
    try:
        return _opened(layout, "mode=ro", ("PRAGMA query_only=ON",))
    except StoreError:
        if not os.access(layout.folder, os.W_OK) and _is_empty(layout.log):
            # On a read-only disk SQLite cannot make its index; without a log it needs none.
            return _opened(layout, "mode=ro&immutable=1", ())
        raise


def require(layout: Layout) -> None:
    """Refuse a folder that holds no run."""
    with explained(layout.folder):
        if not layout.journal.exists():
            raise StoreError(
                f"{layout.folder} holds no run: there is no {layout.journal.name} in it. Check "
                "the path; `coevolve run` makes a new run."
            )


def extent(connection: sqlite3.Connection, layout: Layout) -> tuple[int, int]:
    """How many events there should be, and how many there are by the number of the last."""
    query = "SELECT schema, count, (SELECT max(seq) FROM events) FROM head WHERE id = 0"
    with explained(layout.journal):
        row = connection.execute(query).fetchone()
    if row is None or not all(isinstance(value, int) for value in row[:2]):
        raise damaged(layout.folder, 0, "the table 'head' is empty")
    count, last = row[1:]
    return count, 0 if last is None else last + 1


def _opened(layout: Layout, mode: str, settings: tuple[str, ...]) -> sqlite3.Connection:
    path = layout.journal
    with explained(path):
        _check_header(layout)
        connection = _connect(path, mode)
        try:
            for setting in settings:
                connection.execute(setting)
            _check_marks(connection, layout)
        except BaseException:
            connection.close()
            raise
    return connection


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=PATIENCE_MS / 1000,
    )
    connection.text_factory = bytes
    return connection


def _check_header(layout: Layout) -> None:
    with layout.journal.open("rb") as file:
        head = file.read(100)
    for start, expected in _FIXED:
        if head[start : start + len(expected)] != expected:
            raise damaged(layout.folder, 0, "the first bytes of run.db are not those of a journal")


def _check_marks(connection: sqlite3.Connection, layout: Layout) -> None:
    path = layout.journal
    [application] = connection.execute("PRAGMA application_id").fetchone()
    [version] = connection.execute("PRAGMA user_version").fetchone()
    if (application, version) == (APPLICATION, SCHEMA):
        return
    # The version stands in two places, to tell a damaged file from somebody else's.
    if _schema(connection) == SCHEMA:
        raise damaged(layout.folder, 0, f"its marks are {application:#x} and {version}")
    if application != APPLICATION:
        raise StoreError(
            f"{path} is not a journal of coevolve (application id {application:#x}). Choose "
            "another folder."
        )
    raise StoreError(
        f"{path} was written by another version of coevolve (schema {version}; this version "
        f"reads {SCHEMA}). Use the version that wrote it."
    )


def _schema(connection: sqlite3.Connection) -> object:
    try:
        return next(iter(connection.execute("SELECT schema FROM head WHERE id = 0")), (None,))[0]
    except sqlite3.OperationalError:
        return None


def _is_empty(path: Path) -> bool:
    return not path.exists() or path.stat().st_size == 0
