"""A recording in the place of a model."""

import json
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from coevolve.models.errors import NotRecorded
from coevolve.models.provider import Provider
from coevolve.models.recording import RecordError, digest
from coevolve.models.request import JSON, ModelReply, ModelRequest, canonical

_SHOWN = 80


class ReplayProvider(Provider):
    """Answers from what a `Recorder` wrote, and nothing else.

    A request that was asked several times gets its answers in their order, and then the last of
    them again and again. Usage is that of the recording, so that a repeated run is the same in
    this too.

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
        for line in lines:
            self._counts |= line.get("counts", {})
            if "request" in line:
                request = ModelRequest.from_json(line["request"])
                self._prompts.add(_prompt(request))
                replies = self._replies[request.key(self._identity)]
                if not (replies and line["cached"]):  # a cached one repeats what is there
                    replies.append(ModelReply.from_json(line["reply"]))

    @property
    def identity(self) -> Mapping[str, JSON]:
        """That of the model that was recorded."""
        return self._identity

    @property
    def window(self) -> int | None:
        """That of the model that was recorded."""
        return self._window

    @property
    def gives_scores(self) -> bool:
        """Whether the model that was recorded gives scores."""
        return self._scores

    async def complete(self, request: ModelRequest, /) -> ModelReply:
        """The recorded answer.

        Raises:
            NotRecorded: There is none.
        """
        replies = self._replies.get(request.key(self._identity))
        if not replies:
            raise self._missing(request)
        return replies.popleft() if len(replies) > 1 else replies[0]

    async def count(self, texts: Sequence[str], /) -> list[int]:
        """The recorded numbers of tokens.

        Raises:
            NotRecorded: A text was not counted then.
        """
        for text in texts:
            if digest(text) not in self._counts:
                raise NotRecorded(
                    f"the recording {self.path} does not say how many tokens "
                    f"{_start(text)} has. {_ADVICE}"
                )
        return [self._counts[digest(text)] for text in texts]

    async def close(self) -> None:
        """Nothing to end."""

    def _head(self, lines: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        heads = {line["model"]: line for line in lines if "identity" in line}
        called = {line["model"] for line in lines if "request" in line}
        if not called:
            raise RecordError(f"the recording {self.path} has no call in it.")
        names = sorted(str(heads[model]["identity"].get("name")) for model in called)
        if len(names) > 1:
            raise RecordError(
                f"the recording {self.path} has calls of several models ({', '.join(names)}), "
                "and one can be replayed at a time. Record each into a file of its own."
            )
        return heads[called.pop()]

    def _missing(self, request: ModelRequest) -> NotRecorded:
        asked = request.texts()[-1]
        known = _prompt(request) in self._prompts
        what = ", though to the same prompt with other parameters" if known else ""
        return NotRecorded(
            f"the recording {self.path} has no answer to {_start(asked)}{what}. {_ADVICE}"
        )


_ADVICE = (
    "Replay the run that was recorded, with its configuration and seed, or take `replay` out of "
    "[model] to ask the model itself."
)


def _read(path: Path) -> list[dict[str, Any]]:
    """The lines of a recording; one that a crash cut off is left out."""
    try:
        *lines, _ = path.read_bytes().split(b"\n")
    except OSError as error:
        why = error.strerror or str(error)
        raise RecordError(f"the recording {path} cannot be read: {why}.") from error
    found: list[dict[str, Any]] = []
    models: set[str] = set()
    for number, line in enumerate(lines, start=1):
        part = _parsed(line)
        if "identity" in part:
            models.add(part["model"])
        if part.get("model") not in models:
            raise RecordError(
                f"the recording {path} is damaged in line {number}. Restore it from a copy, or "
                "delete that line to go without the call."
            )
        found.append(part)
    return found


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        part = json.loads(line)
    except ValueError:
        return {}
    return part if isinstance(part, dict) else {}


def _prompt(request: ModelRequest) -> str:
    return digest(canonical([list(message) for message in request.conversation()]))


def _start(text: str) -> str:
    shown = " ".join("".join(islice(text, 2 * _SHOWN)).split())[:_SHOWN]
    return f"{shown!r}{'…' if len(text) > len(shown) else ''} ({len(text):,} characters)"
