"""What every provider of a model promises the gateway."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from coevolve.models.embedded import EmbeddedProvider, embedded_line
from coevolve.models.model_errors import RequestRefused
from coevolve.models.provider import JSON, ModelReply, ModelRequest
from coevolve.testing import assert_model, check_model


class Polite:
    """A provider in a few lines."""

    window: int | None = 4096
    gives_scores: Any = True

    def __init__(self, **changes: Any) -> None:
        self.__dict__.update(changes)

    @property
    def identity(self) -> Mapping[str, JSON]:
        return {"name": "polite"}

    async def complete(self, request: ModelRequest, /) -> ModelReply:
        if request.scores and not self.gives_scores:
            raise RequestRefused("no scores")
        text = request.choices[0] if request.choices else "yes"
        scores = dict.fromkeys(request.choices, -0.5) if request.scores else None
        return ModelReply(text=text, finish="stop", tokens_in=9, tokens_out=1, scores=scores)

    async def count(self, texts: Sequence[str], /) -> list[int]:
        return [len(text.split()) for text in texts]

    async def close(self) -> None: ...


class Rude(Polite):
    @property
    def identity(self) -> Mapping[str, JSON]:
        return {"host": "nowhere"}

    async def complete(self, request: ModelRequest, /) -> ModelReply:
        return ModelReply(text="perhaps", finish="stop", tokens_in=0, tokens_out=1)

    async def count(self, texts: Sequence[str], /) -> list[int]:
        return [1 for _ in texts]

    async def close(self) -> None:
        raise RuntimeError("already closed")


@pytest.mark.parametrize("gives_scores", [True, False])
def test_a_polite_provider_conforms(gives_scores: bool) -> None:
    assert_model(Polite(gives_scores=gives_scores))
    assert {one.kind for one in check_model(Polite(window=None))} == {"passed"}


@pytest.mark.long
def test_the_embedded_model_conforms() -> None:
    there, line = embedded_line()
    if not there:
        pytest.skip(line)
    assert_model(EmbeddedProvider())


def test_what_the_gateway_cannot_rely_on_is_found() -> None:
    found = {one.about: one for one in check_model(Rude())}
    assert {one.kind for one in found.values()} == {"failed"}
    assert "identity must have a name" in found["identity"].detail
    assert "tokens_in must count the prompt" in found["complete"].detail
    assert "the text must be one of them, got [\"'perhaps'\"" in found["choices"].detail
    assert "scores must have a number for each of" in found["scores"].detail
    assert "a longer text must have more tokens" in found["count"].detail
    assert "already closed" in found["close"].detail
    with pytest.raises(AssertionError, match="identity must have a name"):
        assert_model(Rude())
    (shape,) = check_model(object())  # type: ignore[arg-type]
    assert shape.detail == ("object has no identity, window, gives_scores, complete, count, close")
