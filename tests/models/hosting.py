"""Hosted models at an endpoint on loopback, asked once."""

import asyncio
from typing import Any

import pytest

from coevolve.models.hosted import HostedProvider
from coevolve.models.provider import ModelReply, ModelRequest
from tests.models.endpoint import Act, Endpoint

KEY = "sk-topsecret-0123456789"
VARIABLE = "DESK_API_KEY"


def provider(endpoint: Endpoint, name: str = "served", **given: Any) -> HostedProvider:
    """A provider of the endpoint's model."""
    pytest.importorskip("litellm", reason="needs LiteLLM, of the extra llm")
    parts = {"key": KEY, "key_variable": VARIABLE, "timeout": 30.0, **given}
    return HostedProvider(name, base_url=endpoint.base_url, **parts)


def request(prompt: str | None = "Is water wet?", **given: Any) -> ModelRequest:
    """A request with the usual settings."""
    return ModelRequest(prompt=prompt, **{"max_tokens": 100, "temperature": 0.0, **given})


def asked(host: HostedProvider, *requests: ModelRequest) -> list[ModelReply]:
    """The replies to some requests, one after the other; the provider is closed."""

    async def ask() -> list[ModelReply]:
        try:
            return [await host.complete(one) for one in requests]
        finally:
            await host.close()

    return asyncio.run(ask())


def reply_to(act: Act, asking: ModelRequest | None = None, **given: Any) -> ModelReply:
    """What a provider makes of one act of a service."""
    with Endpoint([act]) as endpoint:
        [reply] = asked(provider(endpoint, **given), asking or request())
    return reply


def failed[Error: Exception](
    kind: type[Error], act: Act, asking: ModelRequest | None = None, **given: Any
) -> Error:
    """The error a provider makes of one act of a service, after one request."""
    with Endpoint([act]) as endpoint:
        with pytest.raises(kind) as caught:
            asked(provider(endpoint, **given), asking or request())
        assert len(endpoint.seen) == 1
    assert type(caught.value) is kind
    return caught.value
