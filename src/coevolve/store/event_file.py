"""Events in the SQLite file: read in chunks and checked, appended in transactions.

A line is the text of `core.events.sealed`: JSON that ends with `,"seal":"<16 hex digits>"}`.
The time to open a long journal is spent here, so functions take lists of lines.
"""

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from hashlib import blake2b

from pydantic_core import from_json

from coevolve.core.events import Event
from coevolve.errors import InputError
from coevolve.store import database
from coevolve.store.layout import Layout, damaged, explained

_TAIL = len(',"seal":"0123456789abcdef"}')


def seal_of(line: bytes) -> bytes:
    """The seal at the end of a line."""
    return line[-18:-2]


def are_sealed(lines: list[bytes], before: bytes) -> bool:
    """Whether the seals of consecutive lines are right, given the seal before them.

    >>> line = b'{"seed":7,"seq":0,"type":"opened","seal":"e9ec64eab5c758cb"}'
    >>> are_sealed([line], b""), are_sealed([line.replace(b"7", b"8", 1)], b"")
    (True, False)
    """
    seals = [before, *[line[-18:-2] for line in lines]]
    fresh = blake2b(digest_size=8)
    right = []
    for seal, line in zip(seals, lines, strict=False):
        hashed = fresh.copy()
        hashed.update(seal + line[:-_TAIL] + b"}")
        right.append(hashed.hexdigest())
    tails = b"".join([line[-_TAIL:] for line in lines])
    return tails == "".join([f',"seal":"{seal}"}}' for seal in right]).encode()


def good(lines: list[bytes], before: bytes) -> int:
    """The number of lines before the first wrong seal."""
    for place, line in enumerate(lines):
        if not are_sealed([line], before):
            return place
        before = seal_of(line)
    return len(lines)


_TYPE = b',"type":"'
_OUTCOMES = (b'outcome"', b'failed"', b'reopened"')
_TOLD = (b'told"',)


def has_type(line: bytes, types: tuple[bytes, ...]) -> bool:
    """Whether the event of a line has one of these types, usually without parsing the line.

    JSON escapes quotes within text, so the last `,"type":"` is a key. It is the key of the event
    itself unless its object ends before the line does. Types include their closing quote.

    >>> has_type(b'{"seq":1,"type":"told","seal":"0123456789abcdef"}', (b'told"',))
    True
    >>> has_type(b'{"seq":1,"type":"noted","x":{"a":1,"type":"told"}}', (b'told"',))
    False
    """
    start = line.rfind(_TYPE)
    if start < 0 or line.find(b"}", start) != len(line) - 1:
        return f'{parsed([line])[0]["type"]}"'.encode(errors="replace") in types
    return line.startswith(types, start + len(_TYPE))


class Skimmer:
    """Drops the outcomes that a later `told` line summarizes.

    Outcomes are held until that line is read. If there are too many, all of their wave are kept.

    >>> skimmer = Skimmer()
    >>> skimmer.kept([b'{"seq":0,"type":"asked"}', b'{"seq":1,"type":"outcome"}'])
    [b'{"seq":0,"type":"asked"}']
    >>> skimmer.kept([b'{"seq":2,"type":"told"}']), skimmer.held
    ([b'{"seq":2,"type":"told"}'], [])
    """

    def __init__(self, most: int = 200_000) -> None:
        self.held: list[bytes] = []
        self._most = most
        self._all = False

    def kept(self, lines: list[bytes]) -> list[bytes]:
        """The lines to keep, of these and of those held."""
        kept, size = [], len(_TYPE)
        for line in lines:
            start = line.rfind(_TYPE)  # the same as `has_type`, without a call for most lines
            plain = start > 0 and line.startswith(_OUTCOMES, start + size)
            plain = plain and line.find(b"}", start) == len(line) - 1
            if not self._all and (plain or has_type(line, _OUTCOMES)):
                self.held.append(line)
                continue
            if has_type(line, _TOLD):
                self.held.clear()
                self._all = False
            kept.append(line)
        if len(self.held) > self._most:
            kept += self.held
            self.held.clear()
            self._all = True
        return kept


def parsed(lines: list[bytes]) -> list[Event]:
    """The events of some lines.

    >>> parsed([b'{"seq":0}', b'{"seq":1}'])
    [{'seq': 0}, {'seq': 1}]
    """
    text = b"[%b]" % b",".join(lines)
    try:
        events: list[Event] = from_json(text)
    except ValueError:
        # Twice as slow, but accepts half a surrogate pair.
        events = json.loads(text)
    return events


# CAST: damage may have changed the type of the text.
_TEXT = "SELECT CAST(coalesce(text, '') AS BLOB) FROM events"
_LINES = f"{_TEXT} WHERE seq >= ? AND seq < ? ORDER BY seq LIMIT ?"
_LINE = f"{_TEXT} WHERE seq = ?"
_ADD = "INSERT INTO events VALUES (?, ?)"
_MOST_LINES = 512
_MOST_BYTES = 4_000_000


class EventFile:
    """The events of a run, through one connection that threads share.

    Reads are short: a long transaction would keep the writer from clearing its log, and a long
    hold of the connection would keep other threads from writing.
    """

    def __init__(self, layout: Layout, connection: sqlite3.Connection) -> None:
        self._layout = layout
        self._connection = connection
        # The connection would see half a transaction between two statements.
        self._using = threading.Lock()

    def close(self) -> None:
        """Close the connection; the last one to close moves the log into the main file."""
        with self._using, explained(self._layout.journal):
            self._connection.close()

    def recorded(self) -> int:
        """The number of events recorded."""
        return self._extent()[0]

    def count(self) -> int:
        """The number of events as of now."""
        count, rows = self._extent()
        if rows != count:
            what = f"{count} events were recorded, but {rows} are in the file"
            raise damaged(self._layout.folder, min(count, rows), what)
        return count

    def read(self, since: int, until: int | None) -> Iterator[Event]:
        """Events from a number on, up to the last at the time of the first read."""
        for lines in self._checked(since, until):
            yield from parsed(lines)

    def skim(self, until: int | None) -> Iterator[Event]:
        """All events, without the outcomes that a later event summarizes."""
        skimmer = Skimmer()
        for lines in self._checked(0, until):
            yield from parsed(skimmer.kept(lines))
        yield from parsed(skimmer.held)

    def _checked(self, since: int, until: int | None) -> Iterator[list[bytes]]:
        """Lines in chunks; raises after the last good line if one is bad."""
        if since < 0:
            raise InputError(f"event numbers start at 0, got {since}.")
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
        """The seal of an event; empty for event -1, before the first."""
        if number < 0:
            return b""
        with self._using, explained(self._layout.journal, number):
            row = self._connection.execute(_LINE, (number,)).fetchone()
        if row is None:
            raise damaged(self._layout.folder, number, "it is missing")
        return seal_of(row[0])

    def check_structure(self) -> None:
        """Let SQLite check every page: a journal that can be read may still break on append."""
        with self._using, explained(self._layout.journal):
            found = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != (b"ok",):
            raise damaged(self._layout.folder, self.recorded(), str(found))

    def write(self, since: int, lines: Sequence[str]) -> None:
        """Append all lines in one transaction, or none."""
        run = self._connection.execute
        with self._using, explained(self._layout.journal, since):
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
        with self._using:
            return database.extent(self._connection, self._layout)

    def _lines(self, since: int, end: int) -> list[bytes]:
        """Consecutive lines, few enough for memory even if they are long."""
        lines: list[bytes] = []
        room = _MOST_BYTES
        with self._using, explained(self._layout.journal, since):
            rows = self._connection.execute(_LINES, (since, end, _MOST_LINES))
            try:
                while room > 0 and (some := rows.fetchmany(64)):
                    lines += [line for (line,) in some]
                    room -= sum(map(len, lines[-len(some) :]))
            finally:
                rows.close()
        return lines
