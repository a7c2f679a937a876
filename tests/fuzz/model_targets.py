"""What model servers answer, and the files that keep their answers."""

import asyncio
import functools
import gzip
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import httpx
from hypothesis import strategies as st

from coevolve.models.call_recording import ReplayProvider
from coevolve.models.embedded.embedded_provider import EmbeddedProvider
from coevolve.models.embedded.gguf import requantise
from coevolve.models.embedded.model_process import _parsed, _refusal
from coevolve.models.embedded.scoring import Tokens
from coevolve.models.gateway import _checked as checked_reply
from coevolve.models.hosted import HostedProvider
from coevolve.models.hosted_service import Service, understood
from coevolve.models.provider import Message, ModelReply, ModelRequest
from coevolve.models.reply_limits import MOST_BYTES, _limit_reply
from coevolve.models.response_cache import ResponseCache, _seal
from tests.fuzz.inputs import changed, json_bytes, spoiled
from tests.fuzz.target import Target, json_lines, scratch, written

_HOSTED = (
    {
        "choices": [
            {
                "finish_reason": "stop",
                "message": {
                    "content": "<|channel|>final<|message|>Yes.<|end|>",
                    "provider_specific_fields": {"refusal": None},
                    "reasoning_content": "Well.",
                    "tool_calls": None,
                },
            }
        ],
        "usage": {
            "prompt_tokens": 12,
            "completion_tokens": 3,
            "prompt_tokens_details": {"cached_tokens": 4},
        },
    },
    {"choices": [{"finish_reason": "length", "message": {"content": None}}], "usage": None},
    {
        "choices": [
            {
                "finish_reason": "tool_calls",
                "message": {
                    "content": None,
                    "reasoning_content": "Well.",
                    "tool_calls": [{"id": "c1", "function": {"name": "run", "arguments": "{}"}}],
                },
            }
        ],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3},
    },
)
_ASKED = ModelRequest(prompt="Is water wet?", choices=("yes", "no"), max_tokens=9, stop=("\n",))


def _as_object(value: Any) -> Any:
    """JSON as LiteLLM gives it: objects with attributes."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: _as_object(part) for key, part in value.items()})
    return [_as_object(part) for part in value] if isinstance(value, list) else value


def _hosted(answer: Any) -> None:
    async def completion(**_: Any) -> Any:
        return _as_object(answer)

    provider = HostedProvider("served", base_url="http://localhost:1/v1", key="sk-0123456789")
    provider._library = SimpleNamespace(
        acompletion=completion,
        supports_response_schema=lambda name: False,
        token_counter=lambda model, text: len(text),
    )
    plain = ModelRequest(prompt="Is water wet?", max_tokens=9)
    for request in (_ASKED, plain, replace(plain, tools="[]")):
        reply = asyncio.run(provider.complete(request))
        reply.to_json()
        checked_reply(reply, request)
        assert reply.usage.tokens >= 0


_FAILURES = (
    {
        "status_code": 429,
        "body": {"error": {"message": "slow down", "param": "max_tokens", "code": "x"}},
        "litellm_response_headers": {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"},
        "said": "Request too large: maximum context length is 8192 tokens",
    },
    {"status_code": 401, "body": None, "said": "Incorrect API key provided: sk-0123456789"},
)


def _failed(given: Any) -> None:
    """Understand an error whose every part a service chose."""
    if isinstance(given, dict):
        error = RuntimeError(given.pop("said", ""))
        headers = given.get("litellm_response_headers")
        if not isinstance(headers, dict):  # LiteLLM makes them
            given.pop("litellm_response_headers", None)
        for name, value in given.items():
            if not name.startswith("__"):  # no service can name the parts of a Python object
                setattr(error, name, value)
        service = Service(
            name="served", base_url="http://localhost:1/v1", key="sk-0123456789", variable="KEY"
        )
        raise understood(error, service, _ASKED)


class _Chunks(httpx.AsyncByteStream):
    """A body in pieces, as a service sends it."""

    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


def _body(given: tuple[int, bytes, bytes, Sequence[bytes]]) -> None:
    """Read a reply with any status, encoding, address and body."""
    status, encoding, location, chunks = given
    response = httpx.Response(
        status,
        headers=[(b"Content-Encoding", encoding), (b"Location", location)],
        stream=_Chunks(chunks),
        request=httpx.Request("POST", "http://localhost:1/v1"),
    )

    async def read() -> int:
        await _limit_reply(response)
        stream: Any = response.stream
        return sum([len(part) async for part in stream])

    assert asyncio.run(read()) <= MOST_BYTES


class _Server:
    """A server of the embedded model that gives one other answer than expected."""

    def __init__(self, path: str, answer: Any) -> None:
        self._path, self._answer = path, answer

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        if path == self._path:
            return self._answer
        if path == "/apply-template":
            return {"prompt": "user: Is water wet?"}
        if path == "/tokenize":
            return {"tokens": [one if one == -1 else 5 for one in body["content"]]}
        return _COMPLETION


_COMPLETION = {
    "content": "yes",
    "tokens": [5],
    "stop_type": "eos",
    "tokens_predicted": 1,
    "timings": {"cache_n": 3},
    "completion_probabilities": [
        {
            "id": 5,
            "logprob": -0.1,
            "top_logprobs": [{"id": 5, "logprob": -0.1}],
            "top_probs": [{"id": 5, "prob": 0.9}, {"id": 6, "prob": 0.1}],
        }
    ],
}
_EMBEDDED = st.one_of(
    st.tuples(st.just("/apply-template"), changed({"prompt": "hello"})),
    st.tuples(st.just("/tokenize"), changed({"tokens": [5, 6, -1, 5, 7, -1, 5, -1]})),
    st.tuples(st.just("/completion"), changed(_COMPLETION)),
)
_EMBEDDED_REQUESTS = (
    ModelRequest(messages=(Message("user", "Is water wet?"),), max_tokens=9),
    ModelRequest(prompt="Is water wet?", choices=("yes", "no"), max_tokens=9),
    ModelRequest(prompt="Is water wet?", choices=("yes", "no"), scores=True, max_tokens=9),
)


def _embedded(given: tuple[tuple[str, Any], int]) -> None:
    (path, answer), number = given
    provider = EmbeddedProvider(slots=1, threads=1)
    server: Any = _Server(path, answer)
    provider._process, provider._tokens = server, Tokens(server)
    request = _EMBEDDED_REQUESTS[number]
    checked_reply(asyncio.run(provider.complete(request)), request)
    asyncio.run(provider.count(["hello"]))


_HTTP = b'HTTP/1.1 400 Bad\r\nContent-Length: 31\r\n\r\n{"error":{"type":"x","message":1}}'


def _wire(data: bytes) -> None:
    status, answer = _parsed(data)
    raise _refusal(status, answer)


_HEADER = {"model": "m1", "identity": {"name": "small"}, "window": 99, "scores": True}
_RECORDED = {
    "model": "m1",
    "request": ModelRequest(prompt="Is water wet?", max_tokens=9).to_json(),
    "reply": ModelReply(text="yes", finish="stop", tokens_in=9, tokens_out=1).to_json(),
    "cached": False,
}
_LINES = (_HEADER, _RECORDED, {"model": "m1", "counts": {"ab": 3}})


def _replay(data: bytes) -> None:
    provider = ReplayProvider(written("calls.jsonl", data))
    asyncio.run(provider.complete(ModelRequest(prompt="Is water wet?", max_tokens=9)))


@functools.cache
def _cache() -> ResponseCache:
    return ResponseCache(scratch() / "cache.db")


def _cached(reply: bytes) -> None:
    key = "ab" * 32
    cache = _cache()
    cache._connection.execute("DELETE FROM replies")
    row = (bytes.fromhex(key), reply, _seal(key, reply))
    cache._connection.execute("INSERT INTO replies VALUES (?, ?, ?)", row)
    cache.get(key)


def _gguf_sample() -> bytes:
    def text(value: bytes) -> bytes:
        return len(value).to_bytes(8, "little") + value

    def number(value: int, size: int = 4) -> bytes:
        return value.to_bytes(size, "little")

    header = b"GGUF" + number(3) + number(1, 8) + number(3, 8)
    header += text(b"general.alignment") + number(4) + number(32)
    header += text(b"name") + number(8) + text(b"small")
    header += text(b"list") + number(9) + number(9) + number(1, 8) + number(4) + number(2, 8)
    header += number(1) + number(2)
    header += text(b"weights") + number(1) + number(64, 8) + number(3) + number(0, 8)
    return header + b"\0" * (-len(header) % 32) + bytes(range(40))


def _gguf(data: bytes) -> None:
    requantise(written("small.gguf", data), scratch() / "new.gguf")


_NESTED = st.lists(json_bytes(*_LINES).map(lambda data: data + b"\n"), max_size=5)


TARGETS: tuple[Target, ...] = (
    Target(
        name="answers of a service", written_by="model", inputs=changed(*_HOSTED), read=_hosted
    ),
    Target(
        name="errors of a service", written_by="model", inputs=changed(*_FAILURES), read=_failed
    ),
    Target(
        name="bodies of a service",
        written_by="model",
        inputs=st.tuples(
            st.sampled_from([200, 307, 500]),
            st.sampled_from([b"gzip", b"deflate", b"identity", b"br", b""]),
            spoiled(b"https://elsewhere:8080/v1?a=b", b"//x", b"http://[::1]:99999/"),
            st.lists(
                spoiled(gzip.compress(b'{"a": 1}', mtime=0), gzip.compress(bytes(10**6), mtime=0)),
                max_size=3,
            ),
        ),
        read=_body,
    ),
    Target(
        name="answers of the embedded model",
        written_by="model",
        inputs=st.tuples(_EMBEDDED, st.integers(0, 2)),
        read=_embedded,
    ),
    Target(
        name="HTTP of the embedded model",
        written_by="model",
        inputs=spoiled(_HTTP)
        | json_bytes({"error": {"type": "exceed_context_size_error", "message": "too long"}}).map(
            lambda body: b"HTTP/1.1 400 Bad\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        ),
        read=_wire,
    ),
    Target(
        name="recorded calls",
        written_by="user",
        inputs=_NESTED.map(b"".join)
        | st.lists(changed(*_LINES), max_size=4).map(lambda more: json_lines([_HEADER, *more]))
        | spoiled(json_lines(_LINES)),
        read=_replay,
    ),
    Target(
        name="rows of the cache",
        written_by="user",
        inputs=json_bytes(_RECORDED["reply"]),
        read=_cached,
    ),
    Target(
        name="model weights",
        written_by="user",
        inputs=spoiled(_gguf_sample()),
        read=_gguf,
    ),
)
