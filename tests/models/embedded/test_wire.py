"""An incomplete answer is an error."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest

from coevolve.models.embedded.model_process import WireError, post

BODY = b'{"text": "yes"}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"


def exchange(answer: bytes) -> tuple[int, Any]:
    async def talk(socket: Path) -> tuple[int, Any]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
            writer.close()

        async with await asyncio.start_unix_server(serve, socket):
            return await post(socket, "/completion", {}, "key")

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(talk(Path(folder) / "s"))


def test_a_whole_answer() -> None:
    assert exchange(HEAD % len(BODY) + BODY) == (200, {"text": "yes"})


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        HEAD % len(BODY) + BODY[:-1],
        HEAD % 3 + b"yes",
        b"HTTP/1.1 200 OK\r\n\r\n" + BODY,
    ],
)
def test_anything_less(answer: bytes) -> None:
    with pytest.raises(WireError):
        exchange(answer)


def test_a_missing_socket_is_reported(tmp_path: Path) -> None:
    with pytest.raises(WireError, match="no connection"):
        asyncio.run(post(tmp_path / "missing", "/", {}, "key"))
