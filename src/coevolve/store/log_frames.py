"""The frames of SQLite's write-ahead log, checked without SQLite.

SQLite ends the log where its checksums stop, as it must after a crash, so a damaged frame
silently hides all frames behind it. Two things reveal it. Frames are written in order: a good
salt behind a bad frame shows that the bad frame was good once, and that the frames behind it were
recorded. And the index of the log, which survives the end of its process, has the number of
frames that were committed (https://www.sqlite.org/fileformat2.html, section 4, and
https://www.sqlite.org/walformat.html, section 2).
"""

import functools
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from coevolve.store.database import PAGE

LOG_HEADER = 32
FRAME_HEADER = 24
FRAME = FRAME_HEADER + PAGE
_INDEX_VERSION = 3_007_000
_INDEX_HEADER = struct.Struct("=IIIBBHII8s8s8s")
_BIG_ENDIAN = 0x377F0683
_LITTLE_ENDIAN = 0x377F0682
_MOST_FRAMES = 1_000
_MASK = 0xFFFFFFFF

_Sums = tuple[int, int]
_Bytes = NDArray[np.uint8]


def log_damage(log: Path, index: Path) -> str:
    """What shows that a log has lost transactions; empty if nothing does.

    Args:
        log: The log; a missing one has lost nothing.
        index: Its index. It is trusted only if it was written since this machine started, because
            a power cut may keep it and lose the end of the log.
    """
    recorded = _recorded(index)
    if not log.exists():
        return ""
    with log.open("rb") as file:
        header = file.read(LOG_HEADER)
        if len(header) < LOG_HEADER:
            return ""
        magic, salt = int.from_bytes(header[:4]), header[16:24]
        order = ">" if magic == _BIG_ENDIAN else "<"
        [sums] = _Checksum(order, 24).parts(np.frombuffer(header[:24], np.uint8)[None, :])
        if magic not in (_BIG_ENDIAN, _LITTLE_ENDIAN) or sums != _stored(header[24:]):
            return f"the head of {log.name} is damaged" if len(file.read(FRAME)) == FRAME else ""
        read = _read_frames(file, salt, order, sums)
    if read.hides:
        return f"{log.name} is damaged in its middle"
    if recorded is not None and recorded.salt == salt and recorded.frames > read.committed:
        return f"{log.name} is damaged at its end"
    return ""


@dataclass(frozen=True, slots=True)
class _Read:
    """The number of the last frame that ends a good transaction, and whether others follow."""

    committed: int
    hides: bool


def _read_frames(file: IO[bytes], salt: bytes, order: str, sums: _Sums) -> _Read:
    checksum = _Checksum(order, 8 + PAGE)
    wanted = np.frombuffer(salt, np.uint8)
    number = committed = 0
    good = True
    for frames in _chunks(file):
        ours = (frames[:, 8:16] == wanted).all(axis=1)
        ends = frames[:, 4:8].any(axis=1)
        behind = 0
        if good:
            count, sums = _matching(
                frames if ours.all() else frames[: ours.argmin()], checksum, sums
            )
            if ends[:count].any():
                committed = number + count - int(ends[:count][::-1].argmax())
            good, behind = count == len(frames), count + 1
        # The first bad frame may be one that was never finished. Those behind it were recorded.
        if not good and (ours & ends)[behind:].any():
            return _Read(committed, hides=True)
        number += len(frames)
    return _Read(committed, hides=False)


def _matching(frames: _Bytes, checksum: "_Checksum", sums: _Sums) -> tuple[int, _Sums]:
    """How many frames have the right checksum, each of which depends on the one before."""
    stored = frames[:, 16:24].tobytes()
    for place, part in enumerate(checksum.parts(np.delete(frames, slice(8, 24), axis=1))):
        sums = checksum.added(sums, part)
        if sums != _stored(stored[8 * place : 8 * place + 8]):
            return place, sums
    return len(frames), sums


def _chunks(file: IO[bytes]) -> Iterator[_Bytes]:
    while data := file.read(_MOST_FRAMES * FRAME):
        count = len(data) // FRAME
        yield np.frombuffer(data, np.uint8, count * FRAME).reshape(count, FRAME)


class _Checksum:
    """SQLite's checksum of rows of bytes, all rows at once.

    Each pair of 32-bit words (x, y) takes the sums from (a, b) to (a + b + x, a + 2b + x + y)
    modulo 2^32. This is linear, so the effect of a row on the sums before it is a matrix, and what
    the row adds is a dot product with fixed weights.
    """

    def __init__(self, order: str, size: int) -> None:
        self._words = np.dtype(f"{order}u4")
        self._matrix, self._weights = _powers(size // 8)

    def parts(self, rows: _Bytes) -> Iterator[_Sums]:
        """What each row adds to the sums."""
        words = np.ascontiguousarray(rows).view(self._words).astype(np.uint32)
        yield from zip(*(words @ self._weights).T.tolist(), strict=True)

    def added(self, sums: _Sums, part: _Sums) -> _Sums:
        """The sums after a row."""
        (a, b), (c, d) = self._matrix
        x, y = sums
        return (a * x + b * y + part[0]) & _MASK, (c * x + d * y + part[1]) & _MASK


_Matrix = tuple[_Sums, _Sums]


@functools.cache
def _powers(pairs: int) -> tuple[_Matrix, NDArray[np.uint32]]:
    """The matrix of a row of so many pairs, and the weight of each word in both sums."""
    weights = np.zeros((2 * pairs, 2), np.uint32)
    a, b, c, d = 1, 0, 0, 1
    for place in reversed(range(pairs)):
        weights[2 * place] = (a + b) & _MASK, (c + d) & _MASK
        weights[2 * place + 1] = b, d
        a, b, c, d = (value & _MASK for value in (a + b, a + 2 * b, c + d, c + 2 * d))
    return ((a, b), (c, d)), weights


def _stored(data: bytes) -> _Sums:
    return int.from_bytes(data[:4]), int.from_bytes(data[4:])


@dataclass(frozen=True, slots=True)
class _Recorded:
    """The number of frames that were committed to the log with this salt."""

    frames: int
    salt: bytes


def _recorded(index: Path) -> _Recorded | None:
    """What the index says about its log; None if it says nothing that can be trusted."""
    if not index.exists() or index.stat().st_mtime < _started():
        return None
    with index.open("rb") as file:
        first, second = file.read(_INDEX_HEADER.size), file.read(_INDEX_HEADER.size)
    # It is written twice: different copies are a change that was not finished.
    if len(second) < _INDEX_HEADER.size or first != second:
        return None
    version, _, _, complete, _, _, frames, _, _, salt, _ = _INDEX_HEADER.unpack(first)
    return _Recorded(frames, salt) if version == _INDEX_VERSION and complete else None


def _started() -> float:
    """When this machine started, in seconds since 1970; infinite if unknown."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return float("inf")
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
