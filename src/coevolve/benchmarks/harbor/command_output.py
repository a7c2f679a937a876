"""What a command in a task environment writes, up to a limit."""

import asyncio
import os
from collections.abc import Awaitable, Callable

type OnOutput = Callable[[str], Awaitable[None]]

PIECE = 1 << 16
"""How much is read at once."""


class CommandOutput:
    """Collects what a command writes.

    Args:
        fd: Where to read it; closed in the end.
        limit: How many bytes to keep.
        on_output: Called with all text as it comes.
    """

    def __init__(self, fd: int, limit: int, on_output: OnOutput | None) -> None:
        self._fd: int | None = fd
        self._limit = limit
        self._kept = bytearray()
        self._dropped = 0
        self._on_output = on_output
        self._tellers: set[asyncio.Task[None]] = set()
        os.set_blocking(fd, False)
        asyncio.get_running_loop().add_reader(fd, self._read)

    def _read(self) -> bool:
        """Read what there is; whether there may be more."""
        if self._fd is None:
            return False
        try:
            piece = os.read(self._fd, PIECE)
        except BlockingIOError:
            return False
        if not piece:
            self.close()
            return False
        room = max(0, self._limit - len(self._kept))
        self._kept += piece[:room]
        self._dropped += len(piece) - len(piece[:room])
        if self._on_output is not None:
            self._tell(piece.decode(errors="replace"), self._on_output)
        return True

    def _tell(self, text: str, on_output: OnOutput) -> None:
        before = next(iter(self._tellers), None)

        async def in_order() -> None:
            if before is not None:
                await asyncio.wait([before])
            await on_output(text)

        self._tellers = {asyncio.create_task(in_order())}

    async def rest(self) -> None:
        """Read what the command has written before its end."""
        for _ in range((self._limit + self._dropped) // PIECE + 64):
            if not self._read():
                break
        for teller in self._tellers:
            await teller

    def text(self) -> str:
        """What was kept, with a note on what was not."""
        text = self._kept.decode(errors="replace")
        if self._dropped:
            text += f"\n[{self._dropped} more bytes of output were dropped]\n"
        return text

    def detach(self) -> int | None:
        """The descriptor, no longer read by this; None if the output has ended."""
        fd, self._fd = self._fd, None
        if fd is not None:
            asyncio.get_running_loop().remove_reader(fd)
        return fd

    def close(self) -> None:
        """Stop reading."""
        fd = self.detach()
        if fd is not None:
            os.close(fd)
