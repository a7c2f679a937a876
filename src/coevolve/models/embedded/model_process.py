"""The embedded model's process: started when first needed, and again after a crash."""

import asyncio
import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coevolve.errors import CoevolveError, ConfigError
from coevolve.models.embedded.model_weights import WINDOW
from coevolve.models.model_errors import ContextTooLong, ModelUnavailable, RequestRefused

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


_OK, _BAD, _TOO_LONG = 200, 400, "exceed_context_size_error"
_TAIL = 800
_LONGEST_SOCKET = 100
"""Bytes in the path of a socket: the system's own bound is 104 or 108."""

# Threads that wait must not spin: with other work on the machine, that costs tenfold. And a
# crash is told in a line, not looked into by a debugger.
_ENVIRONMENT = {"OMP_WAIT_POLICY": "passive", "GGML_NO_BACKTRACE": "1"}


class ModelProcess:
    """A child process that runs the model, reached over a socket that only this user can open.

    Args:
        weights: The file to load, or what finds it.
        slots: Prompts that are worked on at once, each with a window of its own.
        threads: Cores to compute with.
    """

    def __init__(self, weights: Callable[[], Path], *, slots: int, threads: int) -> None:
        self._weights, self._slots, self._threads = weights, slots, threads
        self._child: Child | None = None
        self._starting = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The process, where it runs."""
        return None if self._child is None else self._child.process.pid

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """What the model's server answers.

        Raises:
            ModelUnavailable: It died meanwhile; the next request starts it again.
        """
        child = await self._running()
        try:
            status, answer = await post(child.socket, path, body, child.key)
        except WireError as error:
            raise ModelUnavailable(await self._why(child, error)) from error
        if status == _OK:
            return answer
        raise _refusal(status, answer)

    async def close(self) -> None:
        """End the process."""
        async with self._starting:
            child, self._child = self._child, None
            if child is not None:
                await asyncio.to_thread(child.end)

    async def _running(self) -> "Child":
        async with self._starting:
            if self._child is None or self._child.process.poll() is not None:
                if self._child is not None:
                    self._child.end()
                weights = await asyncio.to_thread(self._weights)
                child = Child(weights, self._slots, self._threads)
                self._child = child
                try:
                    await asyncio.to_thread(child.wait_until_ready)
                except BaseException:
                    self._child = None
                    child.end()
                    raise
            return self._child

    async def _why(self, child: "Child", error: WireError) -> str:
        code = await asyncio.to_thread(child.exit_code)
        if code is None:
            return f"the embedded model's process did not answer: {error}"
        said = child.said()
        return f"the embedded model's process ended with code {code}{f': {said}' if said else ''}"


class Child:
    """One life of the process."""

    def __init__(self, weights: Path, slots: int, threads: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="coevolve-model-", dir=_short_folder())
        self.socket = Path(self._folder.name) / "model.sock"
        self.key = secrets.token_urlsafe(24)
        self._log = Path(self._folder.name) / "stderr.txt"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "coevolve.models.embedded.llama_server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=os.environ | _ENVIRONMENT,
                start_new_session=True,  # Ctrl-C is the engine's to handle
            )
        settings = {
            "weights": str(weights),
            "socket": str(self.socket),
            "key": self.key,
            "slots": slots,
            "threads": threads,
            "window": WINDOW,
        }
        self._tell(json.dumps(settings) + "\n")

    def wait_until_ready(self) -> None:
        """Wait until the model is loaded.

        Raises:
            ConfigError: The runtime is not installed, or cannot load the weights.
        """
        assert self.process.stdout is not None
        if self.process.stdout.readline():
            return
        self.process.wait()
        said = self.said()
        if "No module named 'xllamacpp'" in said:
            raise ConfigError(
                "the embedded model needs xllamacpp, which is not installed here. Install it "
                "with pip install 'task-coevolve[embedded]'."
            )
        raise ConfigError(f"the embedded model cannot be loaded: {said}")

    def exit_code(self) -> int | None:
        """How the process ended; None if it runs on."""
        try:
            return self.process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return None

    def said(self) -> str:
        """The end of what it wrote to its standard error."""
        try:
            return self._log.read_text(errors="replace")[-_TAIL:].strip()
        except FileNotFoundError:  # it was ended on purpose
            return ""

    def end(self) -> None:
        """End the process and remove its folder."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        self._folder.cleanup()

    def _tell(self, line: str) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # `wait_until_ready` says what became of it
            self.process.stdin.write(line.encode())
            self.process.stdin.flush()


def _refusal(status: int, answer: Any) -> Exception:
    error = answer.get("error", {}) if isinstance(answer, dict) else {}
    said = f"{status}: {error.get('message', answer)}"
    if error.get("type") == _TOO_LONG:
        return ContextTooLong(said)
    if status == _BAD:
        return RequestRefused(f"the embedded model refuses the request, {said}")
    return ModelUnavailable(f"the embedded model failed, {said}")


def _short_folder() -> str | None:
    usual = tempfile.gettempdir()
    return (
        usual
        if len(usual) + len("/coevolve-model-12345678/model.sock") < _LONGEST_SOCKET
        else "/tmp"
    )
