"""Every call of a model in a file, one line of JSON each, for people and for `ReplayProvider`.

A line of the first kind says which model the lines that name its `model` are about:

    {"model": "3f0c9a…", "identity": {"name": …}, "window": 8192, "scores": true}
    {"model": "3f0c9a…", "request": {…}, "reply": {…}, "cached": false}
    {"model": "3f0c9a…", "counts": {"<sha256 of a text>": 17}}

Lines are only ever appended. A line that a crash cut off is taken away before the next.
"""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Self

from coevolve.errors import StoreError
from coevolve.models.provider import Provider
from coevolve.models.request import ModelReply, ModelRequest, canonical

_BLOCK = 1 << 16


class RecordError(StoreError):
    """A recording that cannot be written or read; the message says why and what to do."""


class Recorder:
    """Appends the calls of a provider to a file; one process at a time may record into a file.

    Args:
        path: The file; it is made, with its folder, if it is not there.
        provider: Who answers.
    """

    def __init__(self, path: Path, provider: Provider) -> None:
        self.path = Path(path)
        self._counted: set[str] = set()
        self._model = digest(canonical(dict(provider.identity)))[:16]
        with self._explained():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._file = os.open(self.path, flags, 0o644)
        try:
            self._own()
            self._size = _whole_lines(self._file)
            os.ftruncate(self._file, self._size)
            self._write(
                identity=dict(provider.identity),
                window=provider.window,
                scores=provider.gives_scores,
            )
        except BaseException:
            os.close(self._file)
            raise

    def call(self, request: ModelRequest, reply: ModelReply, *, cached: bool) -> None:
        """Record a call that was answered."""
        self._write(request=request.to_json(), reply=reply.to_json(), cached=cached)

    def counts(self, texts: Sequence[str], counts: Sequence[int]) -> None:
        """Record how many tokens texts have; each text once."""
        found = dict(zip(map(digest, texts), counts, strict=True))
        fresh = {text: count for text, count in found.items() if text not in self._counted}
        if fresh:
            self._write(counts=fresh)
            self._counted |= fresh.keys()

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _own(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RecordError(
                f"another run records into {self.path} now. Choose another file for `record`."
            ) from error

    def _write(self, **parts: object) -> None:
        line = canonical({"model": self._model, **parts}).encode() + b"\n"
        left = memoryview(line)
        with self._explained():
            try:
                while left:
                    left = left[os.write(self._file, left) :]
            except OSError:
                os.ftruncate(self._file, self._size)  # half a line would spoil those after it
                raise
        self._size += len(line)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = error.strerror or str(error)
            raise RecordError(
                f"the recording {self.path} cannot be written: {why}. Put that right and resume "
                "the run, or take `record` out of [model]."
            ) from error


def digest(text: str) -> str:
    """The SHA-256 of a text, which may have halves of characters in it."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def _whole_lines(file: int) -> int:
    """How many bytes of a file are complete lines."""
    end = os.fstat(file).st_size
    while end:
        start = max(0, end - _BLOCK)
        found = os.pread(file, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
