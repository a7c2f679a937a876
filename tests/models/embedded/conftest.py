"""The embedded model for tests, where its weights are here."""

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from coevolve.errors import ConfigError
from coevolve.models.embedded import EmbeddedProvider
from coevolve.models.embedded.model_weights import find_weights
from coevolve.models.provider import ModelReply, ModelRequest


class Asked:
    """A provider and the loop it lives in, for all tests of a session."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self.provider = EmbeddedProvider(slots=2)

    def run[Answer](self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return self._runner.run(work)

    def __call__(self, prompt: str | None = None, **given: Any) -> ModelReply:
        request = ModelRequest(prompt=prompt, **{"max_tokens": 8} | given)
        return self.run(self.provider.complete(request))

    def together(self, *requests: ModelRequest) -> list[ModelReply]:
        async def gathered() -> list[ModelReply]:
            return await asyncio.gather(*map(self.provider.complete, requests))

        return self.run(gathered())

    def close(self) -> None:
        self.run(self.provider.close())
        self._runner.close()


@pytest.fixture(scope="session")
def weights() -> Path:
    """The weights, or a skipped test."""
    pytest.importorskip("xllamacpp", reason="the embedded model's runtime is not installed")
    try:
        return find_weights()
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def asked(weights: Path) -> Iterator[Asked]:
    """The embedded model, loaded."""
    asked = Asked()
    try:
        yield asked
    finally:
        asked.close()
