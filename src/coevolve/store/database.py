"""The SQLite file of a journal: creating it, and opening it to write or to read.

It has two tables. `events(seq, text)` holds the lines. `head(schema, count)` holds one row with
the number of events, written in the same transactions. It shows whether the last events are lost.
"""

import os
import sqlite3
from pathlib import Path

from coevolve.errors import StoreError
from coevolve.store.layout import Layout, damaged, explained

APPLICATION = 0x436F4576
"""The application id of our files: "CoEv"."""
SCHEMA = 1
PAGE = 4096
PATIENCE_MS = 10_000

_TABLES = """
CREATE TABLE events (seq INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE head (id INTEGER PRIMARY KEY, schema INTEGER NOT NULL, count INTEGER NOT NULL);
"""

# The bytes that never change among the first 100 of our files: (start, bytes). SQLite trusts
# them, and writes to the wrong places if one of them is damaged.
_FIXED = (
    (0, b"SQLite format 3\0" + PAGE.to_bytes(2) + bytes((2, 2, 0, 64, 32, 32))),
    (32, bytes(8)),
    (44, (4).to_bytes(4)),
    (52, bytes(4) + (1).to_bytes(4)),
    (64, bytes(4)),
    (72, bytes(20)),
)


def make(path: Path) -> None:
    """Create an empty journal."""
    connection = _connect(path, "mode=rwc")
    try:
        connection.execute(f"PRAGMA page_size={PAGE}")
        connection.execute(f"PRAGMA application_id={APPLICATION}")
        connection.execute(f"PRAGMA user_version={SCHEMA}")
        connection.executescript(_TABLES)
        connection.execute("INSERT INTO head VALUES (0, ?, 0)", (SCHEMA,))
        # Last, so that the tables are in the file itself and not only in a log that may be lost.
        connection.execute("PRAGMA journal_mode=WAL")
    finally:
        connection.close()


def make_first(layout: Layout) -> None:
    """Create the journal of a new run; it is renamed to its name when it is complete."""
    with explained(layout.journal):
        if layout.journal.exists():
            raise StoreError(
                f"{layout.folder} already contains a run. Resume it with `coevolve resume "
                f"{layout.folder}`, or choose another folder."
            )
        if not _is_empty(layout.log):
            # SQLite would write its contents into the new file.
            raise StoreError(
                f"{layout.log} is the log of a journal that is missing. Restore its run.db, "
                "or move the log away."
            )
        layout.clear_unfinished()
        layout.unfinished.mkdir()
        unfinished = Layout(layout.unfinished).journal
        make(unfinished)
        unfinished.rename(layout.journal)


def open_writer(layout: Layout) -> sqlite3.Connection:
    """Open a connection that may append."""
    return _opened(layout, "mode=rw", ("PRAGMA synchronous=NORMAL", "PRAGMA cell_size_check=ON"))


def open_reader(layout: Layout) -> sqlite3.Connection:
    """Open a connection that cannot write and never makes a writer wait."""
    try:
        return _opened(layout, "mode=ro", ("PRAGMA query_only=ON",))
    except StoreError:
        if not os.access(layout.folder, os.W_OK) and _is_empty(layout.log):
            # SQLite cannot create its index on a read-only disk; without a log it needs none.
            return _opened(layout, "mode=ro&immutable=1", ())
        raise


def require(layout: Layout) -> None:
    """Refuse a folder without a run."""
    with explained(layout.folder):
        if not layout.journal.exists():
            raise StoreError(
                f"{layout.folder} contains no run: it has no {layout.journal.name}. Check the "
                "path, or create a new run with `coevolve run`."
            )


def extent(connection: sqlite3.Connection, layout: Layout) -> tuple[int, int]:
    """The number of events recorded, and the number found, from the number of the last."""
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
            raise damaged(layout.folder, 0, "run.db does not have the header of a journal")


def _check_marks(connection: sqlite3.Connection, layout: Layout) -> None:
    path = layout.journal
    [application] = connection.execute("PRAGMA application_id").fetchone()
    [version] = connection.execute("PRAGMA user_version").fetchone()
    if (application, version) == (APPLICATION, SCHEMA):
        return
    # The schema is stored twice, to distinguish a damaged file from one of another program.
    if _schema(connection) == SCHEMA:
        what = f"its application id is {application:#x}, its version {version}"
        raise damaged(layout.folder, 0, what)
    if application != APPLICATION:
        raise StoreError(
            f"{path} is not a journal of coevolve (application id {application:#x}). Choose "
            "another folder."
        )
    raise StoreError(
        f"{path} has journal schema {version}, written by a newer version of coevolve; this "
        f"version reads schema {SCHEMA}. The file is unchanged. Upgrade with `pip install "
        "--upgrade task-coevolve`, then open the run again."
    )


def _schema(connection: sqlite3.Connection) -> object:
    try:
        return next(iter(connection.execute("SELECT schema FROM head WHERE id = 0")), (None,))[0]
    except sqlite3.OperationalError:
        return None


def _is_empty(path: Path) -> bool:
    return not path.exists() or path.stat().st_size == 0
