"""One HTTP request over a local socket."""

import asyncio
import json
from pathlib import Path
from typing import Any

from coevolve.errors import CoevolveError

_HEAD_END = b"\r\n\r\n"


class WireError(CoevolveError):
    """The other side is gone, or says nothing that can be read."""


async def post(socket: Path, path: str, body: dict[str, Any], key: str) -> tuple[int, Any]:
    """The status and the JSON that a POST is answered with.

    Raises:
        WireError: There is no whole answer.
    """
    try:
        reader, writer = await asyncio.open_unix_connection(str(socket))
    except OSError as error:
        raise WireError(f"no connection: {error}") from error
    try:
        writer.write(_request(path, json.dumps(body).encode(), key))
        return _parsed(await reader.read())
    except (OSError, ValueError) as error:
        raise WireError(f"the connection broke: {error}") from error
    finally:
        writer.close()


def _request(path: str, body: bytes, key: str) -> bytes:
    head = (
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {key}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join(head).encode() + _HEAD_END + body


def _parsed(answer: bytes) -> tuple[int, Any]:
    head, found, body = answer.partition(_HEAD_END)
    if not found:
        raise ValueError(f"{len(answer)} bytes and no answer")
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    if int(fields.get("content-length", -1)) != len(body):
        raise ValueError(f"the answer ends early, after {len(body)} bytes")
    return int(first.split()[1]), json.loads(body)
