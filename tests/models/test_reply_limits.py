"""What a service may not do: redirect, send endless or very slow replies, report absurd usage."""

import asyncio
import gzip
import zlib
from typing import Any

import pytest

from coevolve.core.outcomes import Usage
from coevolve.errors import ConfigError
from coevolve.models import reply_limits
from coevolve.models.gateway import Gateway
from coevolve.models.hosted import HostedProvider
from coevolve.models.model_client import ModelClient
from coevolve.models.model_errors import ModelNotFound, ModelReplyError, ModelUnavailable
from coevolve.models.model_spend import Prices
from coevolve.models.rate_limits import Retrying
from coevolve.models.reply_limits import MOST_BYTES
from tests.models.endpoint import Act, Endpoint, completion, says
from tests.models.hosting import KEY, asked, failed, provider, reply_to, request


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with Endpoint() as other:
        host = other.base_url.split("/")[2]
        act = Act(
            status=status, headers={"Location": f"{other.base_url}/chat/completions?k={KEY}"}
        )
        error = failed(ModelNotFound, act)
    assert not other.seen
    assert f"answered {status}, a redirect to {host}. " in str(error)
    assert KEY not in str(error)


@pytest.mark.parametrize(
    ("location", "shown"),
    [("/v2/chat", "127.0.0.1:"), ("http://[::", "an invalid"), ("http://x\x1b", "an invalid")],
)
def test_a_redirect_to_anywhere_is_an_error(location: str, shown: str) -> None:
    error = failed(ModelNotFound, Act(status=307, headers={"Location": location}))
    assert f"a redirect to {shown}" in str(error)


def test_a_redirect_of_another_maker_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("litellm", reason="needs LiteLLM, of the extra llm")
    with Endpoint() as other:
        act = Act(status=307, headers={"Location": f"{other.base_url}/messages"})
        with Endpoint([act]) as endpoint:
            monkeypatch.setenv("ANTHROPIC_API_BASE", endpoint.base_url.removesuffix("/v1"))
            with pytest.raises(ModelNotFound, match="answered 307, a redirect to 127"):
                asked(HostedProvider("anthropic/claude-sonnet-4-5", key=KEY), request())
    assert not other.seen


def test_a_library_that_cannot_be_limited_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("litellm", reason="needs LiteLLM, of the extra llm")
    monkeypatch.setitem(reply_limits._MADE_BY, "litellm", ("Gone", "made"))
    limit = reply_limits.limit_clients.__wrapped__
    monkeypatch.setattr(reply_limits, "_limiting", lambda make: make)
    with pytest.raises(ConfigError, match="its replies cannot be limited"):
        limit()


def _packed(size: int) -> bytes:
    """A reply with so many spaces in it, compressed."""
    packer = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
    block = packer.compress(b'{"choices": ') + packer.compress(b" " * size)
    return block + packer.compress(b"[]}") + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "body"),
    [("gzip", _packed(4 * MOST_BYTES)), ("identity", b" " * (MOST_BYTES + 1))],
    ids=["gzip", "plain"],
)
def test_a_reply_has_a_limited_size(encoding: str, body: bytes) -> None:
    act = Act(body=body, headers={"Content-Encoding": encoding})
    assert "sent a reply of more than 16 MB." in str(failed(ModelReplyError, act))


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "deflate"])
def test_a_compressed_reply_is_read(encoding: str) -> None:
    pack = zlib.compress if encoding == "deflate" else gzip.compress
    body = pack(str(completion("yes")).replace("'", '"').encode())
    act = Act(body=body, headers={"Content-Encoding": encoding})
    assert reply_to(act).text == "yes"


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "nonsense"])
def test_an_encoding_that_was_not_requested_is_not_read(encoding: str) -> None:
    act = Act(body=b"0123", headers={"Content-Encoding": encoding})
    assert f"in the encoding {encoding!r}" in str(failed(ModelReplyError, act))


def test_a_body_that_is_not_what_it_says_is_not_read() -> None:
    act = Act(body=b"plain", headers={"Content-Encoding": "gzip"})
    assert "cannot be decompressed" in str(failed(ModelReplyError, act))


def test_a_reply_that_drips_ends_at_the_time_limit() -> None:
    act = Act(body=completion("yes"), drip=0.1)  # each byte in time, all of them in half a minute
    error = failed(ModelUnavailable, act, timeout=0.5)
    assert "did not answer within 0.5 s" in str(error)


@pytest.mark.parametrize("said", [KEY, KEY[4:16], KEY[::-1]])
def test_a_key_in_an_answer_is_hidden(said: str) -> None:
    assert reply_to(says(f"you sent {said}!")).text == "you sent [hidden]!"


class _Host:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def ask(self, service: str, /, **payload: Any) -> Any:
        async def asked() -> Any:
            try:
                return await self._gateway.ask(**payload)
            finally:
                await self._gateway.provider.close()

        return self._gateway.facts() if service == "model_facts" else asyncio.run(asked())


@pytest.mark.parametrize("tokens", [10**7 + 1, 10**15, 10**400, -(10**15)])
def test_usage_that_cannot_be_true_is_estimated(tokens: int) -> None:
    with Endpoint(answer=lambda _: says("certainly", tokens=tokens)) as endpoint:
        gateway = Gateway(
            provider(endpoint),
            retrying=Retrying(attempts=1),
            prices=Prices(tokens_in=1, tokens_out=1),
        )
        client = ModelClient(_Host(gateway))
        client.model("Is water wet?")
    assert 0 < client.usage.tokens_in < 100
    assert client.usage == gateway.spent != Usage()
    assert client.calls[0]["answer"]["estimated"]
