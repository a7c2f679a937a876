"""Lines in the raw pages and the log of a damaged SQLite file, read without SQLite.

It reads what append-only tables need: the leaf pages of a table, and the overflow pages of long
lines (https://www.sqlite.org/fileformat2.html, sections 1.6 and 2.1). Invalid data is skipped;
the seals decide which of the lines are good. Queries through SQLite keep fewer events: one damaged
frame hides the rest of the log, and one damaged root page hides the table.
"""

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from coevolve.store.database import PAGE
from coevolve.store.layout import Layout
from coevolve.store.log_frames import FRAME, FRAME_HEADER, LOG_HEADER

_LEAF = 0x0D
_MOST_LOCAL = PAGE - 35
_LEAST_LOCAL = (PAGE - 12) * 32 // 255 - 23


class RawPages:
    """All pages of a journal and of its log, as a context manager."""

    def __init__(self, layout: Layout) -> None:
        self._files = [_mapped(path) for path in (layout.journal, layout.log)]
        main, log = map(len, self._files)
        self._main = range(0, main - PAGE + 1, PAGE)
        self._log = range(LOG_HEADER, log - FRAME + 1, FRAME)
        # A page of a long line is written once, so any copy of it in the log is good.
        self._logged = {self._number(at): at for at in self._log}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            if isinstance(file, mmap.mmap):
                file.close()

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """(seq, line) pairs, roughly in order; an event may occur several times."""
        pages = [(0, at) for at in self._main]
        pages += [(1, at + FRAME_HEADER) for at in self._log]
        places = ((_place(self._files[file][at : at + PAGE]), file, at) for file, at in pages)
        for _, file, at in sorted(place for place in places if place[0] is not None):
            yield from self._cells(self._files[file][at : at + PAGE])

    def _cells(self, page: bytes) -> Iterator[tuple[int, bytes]]:
        for start in _cell_starts(page):
            size, at = _varint(page, start)
            seq, at = _varint(page, at)
            record = self._payload(page, at, size)
            line = record and _text(record)
            if line:
                yield seq, line

    def _payload(self, page: bytes, at: int, size: int) -> bytes | None:
        if size <= _MOST_LOCAL:
            return page[at : at + size]
        if size > len(self._files[0]) + len(self._files[1]):
            return None  # a damaged length, which a circle of pages could fill for ever
        local = _LEAST_LOCAL + (size - _LEAST_LOCAL) % (PAGE - 4)
        local = local if local <= _MOST_LOCAL else _LEAST_LOCAL
        parts = [page[at : at + local]]
        missing = size - local
        number = int.from_bytes(page[at + local : at + local + 4])
        while missing > 0:
            found = self._page(number)
            if found is None:
                return None
            parts.append(found[4 : 4 + missing])
            missing -= PAGE - 4
            number = int.from_bytes(found[:4])
        return b"".join(parts)

    def _page(self, number: int) -> bytes | None:
        if number in self._logged:
            at = self._logged[number] + FRAME_HEADER
            return self._files[1][at : at + PAGE]
        at = (number - 1) * PAGE
        return self._files[0][at : at + PAGE] if at in self._main else None

    def _number(self, at: int) -> int:
        return int.from_bytes(self._files[1][at : at + 4])


def _mapped(path: Path) -> mmap.mmap | bytes:
    if not path.exists() or path.stat().st_size == 0:
        return b""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _place(page: bytes) -> int | None:
    """The middle event number of a leaf page, to sort pages by; None for other pages."""
    keys = sorted(_varint(page, _varint(page, start)[1])[0] for start in _cell_starts(page))
    return keys[len(keys) // 2] if keys else None


def _cell_starts(page: bytes) -> list[int]:
    if page[0] != _LEAF:
        return []
    count = min(int.from_bytes(page[3:5]), (PAGE - 8) // 2)
    starts = (int.from_bytes(page[at : at + 2]) % PAGE for at in range(8, 8 + 2 * count, 2))
    return [start for start in starts if start >= 8]


def _text(record: bytes) -> bytes | None:
    """The text in the record of an event: a header, nothing for seq (the key), then the text."""
    size, at = _varint(record, 0)
    _, at = _varint(record, at)
    kind, _ = _varint(record, at)
    if kind < 13 or kind % 2 == 0:
        return None
    return record[size : size + (kind - 13) // 2]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of 1 to 9 bytes, and the position behind it."""
    value = 0
    for place in range(8):
        byte = data[at + place] if at + place < len(data) else 0
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + place + 1
    return value << 8 | (data[at + 8] if at + 8 < len(data) else 0), at + 9
