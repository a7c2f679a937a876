"""Recording the calls of a model in a file, and a provider that replays such a file.

The file has three kinds of lines. The first describes a model; the others name it by `model`:

    {"model": "3f0c9a…", "identity": {"name": …}, "window": 8192, "scores": true}
    {"model": "3f0c9a…", "request": {…}, "reply": {…}, "cached": false}
    {"model": "3f0c9a…", "counts": {"<sha256 of a text>": 17}}

Lines are only appended. A line that a crash cut off is removed before the next is written.
"""

import fcntl
import json
import operator
import os
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Self

from coevolve.core.events import MISFITS
from coevolve.core.outcomes import is_whole
from coevolve.errors import StoreError
from coevolve.models.model_errors import NotRecorded
from coevolve.models.provider import JSON, ModelReply, ModelRequest, Provider, canonical

_BLOCK = 1 << 16


class RecordError(StoreError):
    """The recording cannot be written or read; the message says why and what to do."""


class Recorder:
    """Appends the calls of a provider to a file; one process at a time may write it.

    Args:
        path: The file; it is created, with its folder, if it does not exist.
        provider: The model.
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
        """Record the number of tokens of texts, each text once."""
        found = dict(zip(map(digest, texts), counts, strict=True))
        fresh = {text: count for text, count in found.items() if text not in self._counted}
        if fresh:
            self._write(counts=fresh)
            self._counted |= fresh.keys()

    def close(self) -> None:
        """Close the file."""
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
                f"another run is recording to {self.path}. Choose another file for `record`."
            ) from error

    def _write(self, **parts: object) -> None:
        line = canonical({"model": self._model, **parts}).encode() + b"\n"
        left = memoryview(line)
        with self._explained():
            try:
                while left:
                    left = left[os.write(self._file, left) :]
            except OSError:
                os.ftruncate(self._file, self._size)  # half a line would corrupt the next
                raise
        self._size += len(line)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = error.strerror or str(error)
            raise RecordError(
                f"the recording {self.path} cannot be written: {why}. Fix this and resume the "
                "run, or remove `record` from [model]."
            ) from error


def digest(text: str) -> str:
    """The SHA-256 of a text, which may contain unpaired surrogates."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def _whole_lines(file: int) -> int:
    """The number of bytes in complete lines of a file."""
    end = os.fstat(file).st_size
    while end:
        start = max(0, end - _BLOCK)
        found = os.pread(file, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


_SHOWN = 80


class ReplayProvider(Provider):
    """Answers only from a recording.

    A request that was recorded several times gets its answers in order, and then the last one
    again. Usage is that of the recording, so a repeated run has the same usage.

    Args:
        path: The recording, of one model.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        lines = _read(self.path)
        head = self._head(lines)
        self._identity: dict[str, JSON] = head["identity"]
        self._window: int | None = head["window"]
        self._scores: bool = head["scores"]
        self._replies: defaultdict[str, deque[ModelReply]] = defaultdict(deque)
        self._prompts: set[str] = set()
        self._counts: dict[str, int] = {}
        for number, line in enumerate(lines, start=1):
            try:
                self._take(line)
            except MISFITS as error:
                raise _damaged(self.path, number) from error

    @property
    def identity(self) -> Mapping[str, JSON]:
        """The identity of the recorded model."""
        return self._identity

    @property
    def window(self) -> int | None:
        """The window of the recorded model."""
        return self._window

    takes_tools = True

    @property
    def gives_scores(self) -> bool:
        """Whether the recorded model gives scores."""
        return self._scores

    async def complete(self, request: ModelRequest, /) -> ModelReply:
        """The recorded answer.

        Raises:
            NotRecorded: The recording does not have it.
        """
        replies = self._replies.get(request.key(self._identity))
        if not replies:
            raise self._missing(request)
        return replies.popleft() if len(replies) > 1 else replies[0]

    async def count(self, texts: Sequence[str], /) -> list[int]:
        """The recorded numbers of tokens.

        Raises:
            NotRecorded: The recording does not have one of them.
        """
        for text in texts:
            if digest(text) not in self._counts:
                raise NotRecorded(
                    f"the recording {self.path} does not have the number of tokens of "
                    f"{_start(text)}. {_ADVICE}"
                )
        return [self._counts[digest(text)] for text in texts]

    async def close(self) -> None:
        """Do nothing."""

    def _take(self, line: Mapping[str, Any]) -> None:
        counts = {text: operator.index(count) for text, count in line.get("counts", {}).items()}
        self._counts |= counts
        if "request" in line:
            request = ModelRequest.from_json(line["request"])
            self._prompts.add(_prompt(request))
            replies = self._replies[request.key(self._identity)]
            if not (replies and line["cached"]):  # a cached reply repeats an earlier one
                replies.append(ModelReply.from_json(line["reply"]))

    def _head(self, lines: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        heads = {line["model"]: line for line in lines if _is_head(line)}
        called = {line["model"] for line in lines if "request" in line}
        if not called:
            raise RecordError(
                f"the recording {self.path} contains no call. Choose another file for `replay`."
            )
        names = sorted(str(heads[model]["identity"].get("name")) for model in called)
        if len(names) > 1:
            raise RecordError(
                f"the recording {self.path} has calls of several models ({', '.join(names)}), but "
                "only one can be replayed. Record each model to a separate file."
            )
        return heads[called.pop()]

    def _missing(self, request: ModelRequest) -> NotRecorded:
        asked = request.conversation()[-1].content
        known = _prompt(request) in self._prompts
        what = "; it has one to the same prompt with other parameters" if known else ""
        return NotRecorded(
            f"the recording {self.path} has no answer to {_start(asked)}{what}. {_ADVICE}"
        )


_ADVICE = (
    "Replay the recorded run with its configuration and seed, or remove `replay` from [model] to "
    "use the model itself."
)


def _read(path: Path) -> list[dict[str, Any]]:
    """The lines of a recording, without one that a crash cut off."""
    try:
        *lines, _ = path.read_bytes().split(b"\n")
    except OSError as error:
        why = error.strerror or str(error)
        raise RecordError(
            f"the recording {path} cannot be read: {why}. Check `replay` in [model]."
        ) from error
    found: list[dict[str, Any]] = []
    models: set[str] = set()
    for number, line in enumerate(lines, start=1):
        part = _parsed(line)
        model = part.get("model")
        if not isinstance(model, str):
            raise _damaged(path, number)
        if _is_head(part):
            models.add(model)
        if model not in models:
            raise _damaged(path, number)
        found.append(part)
    return found


def _is_head(part: Mapping[str, Any]) -> bool:
    window = part.get("window")
    return (
        isinstance(part.get("identity"), dict)
        and "window" in part
        and (window is None or is_whole(window, least=0))
        and isinstance(part.get("scores"), bool)
    )


def _damaged(path: Path, number: int) -> RecordError:
    return RecordError(
        f"the recording {path} is damaged in line {number}. Restore it from a copy, or delete "
        "that line to replay without the call."
    )


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        part = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return part if isinstance(part, dict) else {}


def _prompt(request: ModelRequest) -> str:
    return digest(canonical([message.to_json() for message in request.conversation()]))


def _start(text: str) -> str:
    shown = " ".join("".join(islice(text, 2 * _SHOWN)).split())[:_SHOWN]
    return f"{shown!r}{'…' if len(text) > len(shown) else ''} ({len(text):,} characters)"
