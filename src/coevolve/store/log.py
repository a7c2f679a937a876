"""Whether SQLite's write-ahead log lost transactions in its middle.

SQLite takes the end of the log to be where its checksums stop, as it must after a crash, so that
a damaged frame silently hides all that follows. Frames are written in order: where a good salt
follows a bad frame, the bad frame was good once, and what follows was recorded.
(https://www.sqlite.org/fileformat2.html, section 4)
"""

import struct
from pathlib import Path

from coevolve.store.database import PAGE

_HEADER = 32
_FRAME = 24 + PAGE
_BIG_ENDIAN = 0x377F0683
_LITTLE_ENDIAN = 0x377F0682

_Sums = tuple[int, int]


def hides_commits(path: Path) -> bool:
    """Whether there are transactions in a log behind a frame that is not what it was."""
    if not path.exists():
        return False
    with path.open("rb") as file:
        header = file.read(_HEADER)
        if len(header) < _HEADER:
            return False
        magic, salt = int.from_bytes(header[:4]), header[16:24]
        order = ">" if magic == _BIG_ENDIAN else "<"
        sums = _summed(header[:24], (0, 0), order)
        if magic not in (_BIG_ENDIAN, _LITTLE_ENDIAN) or sums != _stored(header[24:]):
            return len(file.read(_FRAME)) == _FRAME
        good = True
        while len(frame := file.read(_FRAME)) == _FRAME:
            if frame[8:16] != salt:
                good = False
            elif not good and frame[4:8] != bytes(4):
                return True
            elif good:
                sums = _summed(frame[:8] + frame[24:], sums, order)
                good = sums == _stored(frame[16:24])
    return False


def _stored(data: bytes) -> _Sums:
    return int.from_bytes(data[:4]), int.from_bytes(data[4:])


def _summed(data: bytes, sums: _Sums, order: str) -> _Sums:
    first, second = sums
    for even, odd in struct.iter_unpack(f"{order}II", data):
        first = first + even + second & 0xFFFFFFFF
        second = second + odd + first & 0xFFFFFFFF
    return first, second
