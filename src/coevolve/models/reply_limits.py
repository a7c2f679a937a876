"""Limits on what a service may answer: no redirects, and replies of limited size.

LiteLLM makes all its asynchronous HTTP clients in two functions, which `limit_clients` wraps. The
limits therefore hold for every service, and for all calls of LiteLLM in this process.
"""

import functools
import importlib
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx

from coevolve.errors import ConfigError
from coevolve.models.model_errors import ModelNotFound, ModelReplyError

MOST_BYTES = 16 << 20
"""Bytes of a reply after decompression; no model writes as much."""
_BLOCK = 1 << 16
_ENCODINGS = ("gzip", "x-gzip", "deflate")
_MADE_BY = {
    "litellm.llms.custom_httpx.http_handler": ("AsyncHTTPHandler", "create_client"),
    "litellm.llms.openai.common_utils": ("BaseOpenAILLM", "_get_async_http_client"),
}


@functools.cache
def limit_clients() -> None:
    """Limit every client that LiteLLM makes from now on; a second call has no effect.

    Raises:
        ConfigError: This version of LiteLLM makes its clients in another way.
    """
    for module, (owner, function) in _MADE_BY.items():
        try:
            maker = getattr(importlib.import_module(module), owner)
            made = vars(maker)[function]
        except (ImportError, AttributeError, KeyError) as error:
            raise ConfigError(
                f"the installed LiteLLM is not supported: it has no {owner}.{function}, so its "
                "replies cannot be limited. Install the version in requirements.lock."
            ) from error
        if isinstance(made, staticmethod):
            setattr(maker, function, staticmethod(_limiting(made.__func__)))
        else:
            setattr(maker, function, _limiting(made))


def _limiting(make: Callable[..., httpx.AsyncClient]) -> Callable[..., httpx.AsyncClient]:
    @functools.wraps(make)
    def made(*arguments: Any, **named: Any) -> httpx.AsyncClient:
        client = make(*arguments, **named)
        hooks = client.event_hooks
        if _limit_reply not in hooks["response"]:
            client.event_hooks = {
                "request": [*hooks["request"], _ask_for_gzip],
                "response": [*hooks["response"], _limit_reply],
            }
        client.follow_redirects = False
        return client

    return made


async def _ask_for_gzip(request: httpx.Request) -> None:
    request.headers["Accept-Encoding"] = "gzip"


async def _limit_reply(response: httpx.Response) -> None:
    """Refuse a redirect, and limit the body, which has not been read yet."""
    where = response.request.url.netloc.decode()
    if 300 <= response.status_code < 400:
        raise ModelNotFound(
            f"{where} answered {response.status_code}, a redirect to {_target(response)}. "
            "Redirects are not followed: nothing was sent there. If this is the address of your "
            "service, set base_url to it."
        )
    encoding = response.headers.pop("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "", *_ENCODINGS):
        raise ModelReplyError(f"{where} sent a reply in the encoding {encoding!r:.80}.")
    response.stream = _LimitedStream(response.stream, where, packed=encoding in _ENCODINGS)


def _target(response: httpx.Response) -> str:
    """The host and port that a redirect points to."""
    try:
        target = httpx.URL(response.headers.get("Location", ""))
    except httpx.InvalidURL:
        return "an invalid address"
    return (target.netloc or response.request.url.netloc).decode()


class _LimitedStream(httpx.AsyncByteStream):
    """The body of a reply, decompressed, which ends with an error at `MOST_BYTES`."""

    def __init__(self, stream: Any, where: str, *, packed: bool) -> None:
        self._stream, self._where = stream, where
        # 32: the header says whether it is gzip or zlib.
        self._unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32) if packed else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            for part in self._parts(chunk):
                size += len(part)
                if size > MOST_BYTES:
                    raise ModelReplyError(
                        f"{self._where} sent a reply of more than {MOST_BYTES >> 20} MB."
                    )
                yield part

    def _parts(self, chunk: bytes) -> Iterator[bytes]:
        """A chunk, decompressed in small parts."""
        if self._unpacker is None:
            yield chunk
            return
        try:
            # What follows the end of the stream is ignored; it would stay in `unconsumed_tail`.
            while chunk and not self._unpacker.eof:
                yield self._unpacker.decompress(chunk, _BLOCK)
                chunk = self._unpacker.unconsumed_tail
        except zlib.error as error:
            raise ModelReplyError(
                f"{self._where} sent a reply that cannot be decompressed: {error}."
            ) from error

    async def aclose(self) -> None:
        """Close the connection, or give it back."""
        await self._stream.aclose()
