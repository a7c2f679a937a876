"""Events in their file: read in chunks and checked, appended in transactions."""

import sqlite3
import threading
from collections.abc import Iterator, Sequence

from coevolve.core.events import Event
from coevolve.errors import InputError
from coevolve.store import database
from coevolve.store.layout import Layout
from coevolve.store.lines import Skimmer, are_sealed, good, parsed, seal_of
from coevolve.store.trouble import damaged, explained

# Bytes whatever happens: damage may have turned text into anything.
_TEXT = "SELECT CAST(coalesce(text, '') AS BLOB) FROM events"
_LINES = f"{_TEXT} WHERE seq >= ? AND seq < ? ORDER BY seq LIMIT ?"
_LINE = f"{_TEXT} WHERE seq = ?"
_ADD = "INSERT INTO events VALUES (?, ?)"
_MOST_LINES = 512
_MOST_BYTES = 4_000_000


class EventFile:
    """The events of a run, through one connection, which threads use in turns.

    Nothing is read in a long transaction, which would keep the writer from clearing its log, nor
    in a long turn, which would keep another thread from writing.
    """

    def __init__(self, layout: Layout, connection: sqlite3.Connection) -> None:
        self._layout = layout
        self._connection = connection
        # Between the statements of a transaction its connection sees half of it.
        self._turn = threading.Lock()

    def close(self) -> None:
        """Close the connection; the last one moves the log into the main file."""
        with self._turn, explained(self._layout.journal):
            self._connection.close()

    def recorded(self) -> int:
        """How many events there should be."""
        return self._extent()[0]

    def count(self) -> int:
        """How many events there are as of now."""
        count, rows = self._extent()
        if rows != count:
            what = f"{count} events were recorded and {rows} are there"
            raise damaged(self._layout.folder, min(count, rows), what)
        return count

    def read(self, since: int, until: int | None) -> Iterator[Event]:
        """Events since a number, as far as they went when the first of them was asked for."""
        for lines in self._checked(since, until):
            yield from parsed(lines)

    def skim(self, until: int | None) -> Iterator[Event]:
        """The same from the first on, without the outcomes that a later event sums up."""
        skimmer = Skimmer()
        for lines in self._checked(0, until):
            yield from parsed(skimmer.standing(lines))
        yield from parsed(skimmer.held)

    def _checked(self, since: int, until: int | None) -> Iterator[list[bytes]]:
        """Lines in chunks; raises after the last good one where one is bad."""
        if since < 0:
            raise InputError(f"events are counted from 0, got {since}.")
        end = self.count() if until is None else min(until, self.count())
        before = self.seal(since - 1) if since < end else b""
        while since < end:
            lines = self._lines(since, end)
            whole = bool(lines) and are_sealed(lines, before)
            if not whole:
                del lines[good(lines, before) :]
            yield lines
            since += len(lines)
            if not whole:
                raise damaged(self._layout.folder, since, "it is missing or its seal is wrong")
            before = seal_of(lines[-1])

    def seal(self, number: int) -> bytes:
        """The seal of an event; that of event -1, before the first, is empty."""
        if number < 0:
            return b""
        with self._turn, explained(self._layout.journal, number):
            row = self._connection.execute(_LINE, (number,)).fetchone()
        if row is None:
            raise damaged(self._layout.folder, number, "it is missing")
        return seal_of(row[0])

    def check_structure(self) -> None:
        """Have SQLite look at every page: what can be read today may break the next append."""
        with self._turn, explained(self._layout.journal):
            found = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != (b"ok",):
            raise damaged(self._layout.folder, self.recorded(), str(found))

    def write(self, since: int, lines: Sequence[str]) -> None:
        """Append lines in one transaction, or none of them."""
        run = self._connection.execute
        with self._turn, explained(self._layout.journal, since):
            run("BEGIN IMMEDIATE")
            try:
                self._connection.executemany(_ADD, enumerate(lines, since))
                run("UPDATE head SET count = ? WHERE id = 0", (since + len(lines),))
                run("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    run("ROLLBACK")
                raise

    def _extent(self) -> tuple[int, int]:
        with self._turn:
            return database.extent(self._connection, self._layout)

    def _lines(self, since: int, end: int) -> list[bytes]:
        """Some lines in a row: few enough to hold in memory, however long they are."""
        lines: list[bytes] = []
        room = _MOST_BYTES
        with self._turn, explained(self._layout.journal, since):
            rows = self._connection.execute(_LINES, (since, end, _MOST_LINES))
            try:
                while room > 0 and (some := rows.fetchmany(64)):
                    lines += [line for (line,) in some]
                    room -= sum(map(len, lines[-len(some) :]))
            finally:
                rows.close()
        return lines
