"""An OpenAI-compatible server on loopback that does what it is told, request by request.

>>> with Endpoint([refuses(429, retry_after=1), says("billing")]) as endpoint:
...     url = endpoint.base_url
>>> url.startswith("http://127.0.0.1:")
True
"""

import contextlib
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

type Json = Any
type Answer = Callable[[Json], "str | Act"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What the server does with one request.

    Args:
        status: The HTTP status.
        body: The body: bytes as they are, anything else as JSON.
        headers: Headers beside the usual ones.
        delay: Seconds before the answer; the end of the server ends the wait.
        withheld: Bytes that Content-Length promises and that are not sent.
        silent: Close the connection without an answer.
        drip: Seconds between two bytes of the body.
    """

    status: int = 200
    body: Json = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    withheld: int = 0
    silent: bool = False
    drip: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A request as it came in."""

    path: str
    headers: Mapping[str, str]
    body: Json


def completion(text: str | None, *, finish: str = "stop", tokens: int = 10, **more: Json) -> Json:
    """The body of a chat completion; `more` goes into the message."""
    message = {"role": "assistant", "content": text, **more}
    spoken = len((text or "").split())
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "served",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": tokens,
            "completion_tokens": spoken,
            "total_tokens": tokens + spoken,
        },
    }


def says(text: str | None, *, delay: float = 0.0, **more: Json) -> Act:
    """A completion with this text; `more` as in `completion`."""
    return Act(body=completion(text, **more), delay=delay)


def refuses(
    status: int, message: str = "no", *, code: str | None = None, retry_after: float | None = None
) -> Act:
    """An error of the API, with a Retry-After header where given."""
    error = {"message": message, "type": "error", "param": None, "code": code}
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
    return Act(status=status, body={"error": error}, headers=headers)


def hangs(seconds: float = 60.0) -> Act:
    """An answer that comes too late."""
    return says("too late", delay=seconds)


def cuts(text: str = "billing") -> Act:
    """A connection that ends in the middle of the body."""
    return Act(body=completion(text), withheld=40)


def drops() -> Act:
    """A connection that ends without an answer."""
    return Act(silent=True)


def raw(body: bytes) -> Act:
    """Status 200 and these bytes, JSON or not."""
    return Act(body=body)


class Endpoint:
    """Serves while the `with` block lasts; `seen` holds every request, oldest first.

    Args:
        script: What to do with each request, in order of arrival; then `answer` decides.
        answer: From the body of a request to a text or an act.
        latency: Seconds every answer takes, beside the delay of its act.
        key: The only key that is let in; any when empty.
    """

    def __init__(
        self,
        script: Iterable[Act] = (),
        *,
        answer: Answer = lambda _: "ok",
        latency: float = 0.0,
        key: str = "",
    ) -> None:
        self.seen: list[Seen] = []
        self.busiest = 0
        self._busy = 0
        self._script = iter(script)
        self._answer = answer
        self._latency = latency
        self._key = key
        self._lock = threading.Lock()
        self.over = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.endpoint = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def base_url(self) -> str:
        """The address to give to a client."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def prompts(self) -> list[str]:
        """The last message of every request."""
        return [seen.body["messages"][-1]["content"] for seen in self.seen]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.hang_up()
        self._server.server_close()  # waits for the threads of the connections

    def act(self, seen: Seen) -> Act:
        """What to do with a request, after the wait it takes."""
        with self._lock:
            self.seen.append(seen)
            self._busy += 1
            self.busiest = max(self.busiest, self._busy)
            act = self._locked_act(seen)
        try:
            self.over.wait(self._latency + act.delay)
        finally:
            with self._lock:
                self._busy -= 1
        return act

    def _locked_act(self, seen: Seen) -> Act:
        if self._key and seen.headers.get("authorization") != f"Bearer {self._key}":
            return refuses(401, "Incorrect API key provided.", code="invalid_api_key")
        if (act := next(self._script, None)) is not None:
            return act
        if not seen.path.endswith("/chat/completions"):
            return refuses(404, f"no such path: {seen.path}")
        answer = self._answer(seen.body)
        return says(answer) if isinstance(answer, str) else answer


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 256
    endpoint: Endpoint

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # the client did not wait
            super().handle_error(request, client_address)

    def hang_up(self) -> None:
        """Ends idle connections, whose threads would wait for the next request for ever."""
        with self._guard:
            for request in self._open:
                with contextlib.suppress(OSError):  # the client was first
                    request.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        act = self.server.endpoint.act(Seen(path=self.path, headers=headers, body=body))
        try:
            self._send(act)
        except ConnectionError:
            self.close_connection = True  # the client did not wait

    def _send(self, act: Act) -> None:
        if act.silent:
            self.close_connection = True
            return
        body = act.body if isinstance(act.body, bytes) else json.dumps(act.body).encode()
        self.send_response(act.status)
        for name, value in {"Content-Type": "application/json", **act.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) + act.withheld))
        self.end_headers()
        for place in range(len(body) if act.drip else 0):
            self.wfile.write(body[place : place + 1])
            if self.server.endpoint.over.wait(act.drip):
                break
        else:
            self.wfile.write(b"" if act.drip else body)
        self.close_connection = self.close_connection or act.withheld > 0

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""
