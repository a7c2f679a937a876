"""The child process of the embedded model, started at the first request and after a crash."""

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
    """The connection is lost, or the answer cannot be read."""


async def post(socket: Path, path: str, body: dict[str, Any], key: str) -> tuple[int, Any]:
    """The status and the JSON of the answer to a POST.

    Raises:
        WireError: There is no complete answer.
    """
    try:
        reader, writer = await asyncio.open_unix_connection(str(socket))
    except OSError as error:
        raise WireError(f"no connection: {error}") from error
    try:
        writer.write(_request(path, json.dumps(body).encode(), key))
        return _parsed(await reader.read())
    except OSError as error:
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
        raise WireError(f"no answer in {len(answer)} bytes")
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    try:
        if int(fields.get("content-length", -1)) != len(body):
            raise WireError(f"the answer ends early, after {len(body)} bytes")
        return int(first.split()[1]), json.loads(body)
    except (ValueError, IndexError, RecursionError) as error:
        raise WireError(f"the answer cannot be read: {error}") from error


_OK, _BAD, _TOO_LONG = 200, 400, "exceed_context_size_error"
_TAIL = 800
_LONGEST_SOCKET = 100
"""Bytes in the path of a socket; the limit of the system is 104 or 108."""

# Waiting threads must not spin: on a busy machine, that is ten times slower. A crash must not
# start a debugger.
_ENVIRONMENT = {"OMP_WAIT_POLICY": "passive", "GGML_NO_BACKTRACE": "1"}


class ModelProcess:
    """A child process that runs the model, behind a socket that only this user can open.

    Args:
        weights: Finds the file to load.
        slots: Prompts at once, each with a whole window.
        threads: Cores to compute with.
    """

    def __init__(self, weights: Callable[[], Path], *, slots: int, threads: int) -> None:
        self._weights, self._slots, self._threads = weights, slots, threads
        self._child: Child | None = None
        self._starting = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The id of the process, if it runs."""
        return None if self._child is None else self._child.process.pid

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """The answer of the model's server.

        Raises:
            ModelUnavailable: It died in the meantime; the next request starts it again.
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
            return f"the process of the embedded model did not answer: {error}"
        errors = child.errors()
        end = f": {errors}" if errors else ""
        return f"the process of the embedded model ended with exit status {code}{end}"


class Child:
    """One child process, from start to end."""

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
                start_new_session=True,  # the engine handles Ctrl-C
            )
        settings = {
            "weights": str(weights),
            "socket": str(self.socket),
            "key": self.key,
            "slots": slots,
            "threads": threads,
            "window": WINDOW,
        }
        self._send(json.dumps(settings) + "\n")

    def wait_until_ready(self) -> None:
        """Wait until the model is loaded.

        Raises:
            ConfigError: The runtime is not installed, or cannot load the weights.
        """
        assert self.process.stdout is not None
        if self.process.stdout.readline():
            return
        self.process.wait()
        errors = self.errors()
        if "No module named 'xllamacpp'" in errors:
            raise ConfigError(
                "the embedded model needs xllamacpp, which is not installed. Install it with "
                "pip install 'task-coevolve[embedded]'."
            )
        raise ConfigError(f"the embedded model cannot be loaded: {errors}")

    def exit_code(self) -> int | None:
        """The exit status of the process; None if it still runs."""
        try:
            return self.process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return None

    def errors(self) -> str:
        """The end of its standard error."""
        try:
            return self._log.read_text(errors="replace")[-_TAIL:].strip()
        except FileNotFoundError:  # `end` has removed it
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

    def _send(self, line: str) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # `wait_until_ready` reports the error
            self.process.stdin.write(line.encode())
            self.process.stdin.flush()


def _refusal(status: int, answer: Any) -> Exception:
    error = answer.get("error") if isinstance(answer, dict) else None
    error = error if isinstance(error, dict) else {}
    why = f"{status}: {str(error.get('message', answer))[:_TAIL]}"
    if error.get("type") == _TOO_LONG:
        return ContextTooLong(why)
    if status == _BAD:
        return RequestRefused(f"the embedded model refuses the request, {why}")
    return ModelUnavailable(f"the embedded model failed, {why}")


def _short_folder() -> str:
    usual = tempfile.gettempdir()
    longest = len(usual) + len("/coevolve-model-12345678/model.sock")
    return usual if longest < _LONGEST_SOCKET else "/tmp"
