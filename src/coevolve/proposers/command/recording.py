"""What an agent prints: to a log that can be followed, to a transcript, to its meter."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

MEGABYTE = 1 << 20
MOST_LOG = 32 * MEGABYTE
MOST_TRANSCRIPT = MOST_LOG
_MOST_LINE = 4 * MEGABYTE
_HIDDEN = b"[hidden]"


class Recording:
    """Keeps what an agent prints, without its secrets and in bounds.

    Args:
        log: A file to follow while the agent is at work; it ends after `MOST_LOG`.
        line: Gets every line of standard output.

    Its transcript is everything, or its beginning and its end, half of `MOST_TRANSCRIPT` each.
    """

    def __init__(self, log: Path, *, line: Callable[[str], None]) -> None:
        self._log = log.open("wb", buffering=0)
        self._left = MOST_LOG
        self._head, self._tail, self._size = bytearray(), bytearray(), 0
        self._line = line
        self.out = Lines(self._printed)
        self.err = Lines(self._keep)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.out.close()
        self.err.close()
        self._log.close()

    def hide(self, secrets: Sequence[str]) -> None:
        """Blank these texts out everywhere, from now on."""
        self.out.hide(secrets)
        self.err.hide(secrets)

    @property
    def transcript(self) -> str:
        """All that was printed, with the middle left out where it is too much."""
        left_out = self._size - len(self._head) - len(self._tail)
        gap = f"\n[... {left_out:,} bytes left out ...]\n" if left_out else ""
        head, tail = bytes(self._head), bytes(self._tail)
        if not left_out:
            return (head + tail).decode("utf-8", "replace")
        return f"{head.decode('utf-8', 'replace')}{gap}{tail.decode('utf-8', 'replace')}"

    def _printed(self, data: bytes) -> None:
        self._keep(data)
        for line in data.splitlines():
            self._line(line.decode("utf-8", "replace"))

    def _keep(self, data: bytes) -> None:
        half = MOST_TRANSCRIPT // 2
        self._size += len(data)
        room = half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[: max(0, len(self._tail) - half)]
        try:
            self._write(data)
        except OSError:  # a full disk, say: the work of the agent is worth more than its log
            self._left = 0

    def _write(self, data: bytes) -> None:
        if self._left > 0:
            self._log.write(data[: self._left])
            self._left -= len(data)
            if self._left <= 0:
                self._log.write(b"\n[the log ends here; the agent goes on]\n")


class Lines:
    r"""Whole lines of a stream, blanked of secrets; a line without end comes in pieces.

    >>> lines = Lines(print)
    >>> lines.hide(["sk-12345678"])
    >>> lines.feed(b"key sk-123")
    >>> lines.feed(b"45678 used\nnext")
    b'key [hidden] used\n'
    """

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take, self._held = take, bytearray()
        self.hide(())

    def hide(self, secrets: Sequence[str]) -> None:
        """Blank these texts out of what is given away from now on."""
        self._secrets = sorted({s.encode() for s in secrets if s}, key=len, reverse=True)
        self._longest = max(map(len, self._secrets), default=1)

    def feed(self, data: bytes) -> None:
        """Add what was read."""
        cut = data.rfind(b"\n") + 1
        if cut:
            cut += len(self._held)
        self._held += data
        if not cut and len(self._held) > _MOST_LINE:
            self._held = bytearray(self._blanked(bytes(self._held)))
            cut = len(self._held) - self._longest
        if cut:
            self._give(cut)

    def close(self) -> None:
        """Give away the rest."""
        self._give(len(self._held))

    def _give(self, cut: int) -> None:
        data = self._blanked(bytes(self._held[:cut]))
        del self._held[:cut]
        if data:
            self._take(data)

    def _blanked(self, data: bytes) -> bytes:
        for secret in self._secrets:
            data = data.replace(secret, _HIDDEN)
        return data
