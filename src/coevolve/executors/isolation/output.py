"""What a candidate prints: counted in full, kept in part."""

import os

from coevolve.executors.isolation.faults import HarnessFault
from coevolve.executors.isolation.limits import Limits

KEPT = 1 << 16
_CHUNK = 1 << 16


class Output:
    """The stream a candidate prints to, read without waiting; only its end is kept.

    Args:
        fd: Where to read; it is made non-blocking.
        limits: `output_mb` holds from one `restart` to the next.
    """

    def __init__(self, fd: int, limits: Limits, kept: int = KEPT) -> None:
        self.fd, self._limits, self._kept = fd, limits, kept
        self._tail, self._count = bytearray(), 0
        os.set_blocking(fd, False)

    def restart(self) -> None:
        """Forget what was printed."""
        if self._count:
            self._tail, self._count = bytearray(), 0

    def read(self) -> bool:
        """Read once; False at the end of the stream."""
        try:
            data = os.read(self.fd, _CHUNK)
        except BlockingIOError:
            return True
        self._tail += data
        self._count += len(data)
        if self._count > self._limits.output_bytes:
            raise HarnessFault("output-limit", f"printed more than {self._limits.output_mb:g} MB")
        if len(self._tail) > 2 * self._kept:
            del self._tail[: -self._kept]
        return bool(data)

    def read_all(self) -> None:
        """Read what is there now, or raise that it is too much."""
        before = -1
        while before != self._count:
            before = self._count
            self.read()

    @property
    def data(self) -> bytes:
        """The end of what was printed."""
        return bytes(self._tail[-self._kept :])

    @property
    def text(self) -> str:
        """The end of what was printed, as text."""
        return self.data.decode("utf-8", "replace")
