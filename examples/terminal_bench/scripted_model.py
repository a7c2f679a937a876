"""A deterministic chat server that plays a model for the tasks of this folder.

It speaks OpenAI's protocol on loopback and needs only the standard library:

    python examples/terminal_bench/scripted_model.py --port 8000

It sees nothing but the messages. It recognises the task by its description, replays its own moves
over the terminal's output so far, and answers with the next move: as the JSON object of Terminus 2
or, if the request has tools, as tool calls. The same messages always get the same answer.

The character it plays depends on the task (`scripted_plays.py`):

- competent: a sensible plan, sometimes with a slip that it corrects when it sees the error;
- impatient: it does not want to check too early, so it asks for long waits;
- clumsy: it counts by reading what it is shown, even if the output was cut; it calls a task
  complete too early, unless it is asked to verify each requirement; it plans with tools and files
  that it supposes, unless it is told what is there.

So harnesses differ by what they do: how they wait, how much output they show, whether they ask
for a check before completion, and whether they describe the environment.

POST /control {"fault": NAME, "count": N, "after": K} makes N requests fail after K good ones:
rate-limit (429), error (500), overflow (context length), hang (no answer), die (the server ends).
"""

import argparse
import contextlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from scripted_plays import DONE, PLAYS, Move, unknown_task

FAULTS = {
    "rate-limit": (429, "rate_limit_exceeded", "Rate limit reached, try again later."),
    "error": (500, "server_error", "The server had an error."),
    "overflow": (
        400,
        "context_length_exceeded",
        "The maximum context length is 1 token.",
    ),
    "hang": (504, "timeout", "The server did not answer."),
    "die": (0, "", ""),
}


def text_of(message: dict) -> str:
    """Return the text of a message; an image counts as its address."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(p.get("text") or p.get("image_url", {}).get("url", "") for p in content)


def next_move(messages: list[dict]) -> Move:
    """Replay the play over the conversation and return the move that is due."""
    heard: list[str] = [""]
    for message in messages:
        if message["role"] == "assistant":
            heard.append("")
        else:
            heard[-1] += text_of(message) + "\n"
    first = heard[0]
    task = re.split(r"(?i)task description:", first)[-1]
    name = next((name for name in PLAYS if re.search(rf"{re.escape(name)}\b", task)), "")
    play = (PLAYS[name][1] if name else unknown_task)(first)
    move = next(play)
    for text in heard[1:]:
        try:
            move = play.send(text)
        except StopIteration:
            return DONE
    return move


def answer(request: dict) -> dict:
    """Return the assistant's message for a request."""
    messages = request["messages"]
    last = text_of(messages[-1])
    if re.search(r"(?i)hand off your work|summarise this work|briefly continue", last):
        return {"role": "assistant", "content": "I have done the first steps of the task."}
    if re.search(r"(?i)asking several questions|few questions for you", last):
        return {"role": "assistant", "content": "Nothing is left to ask."}
    if isinstance(messages[-1].get("content"), list) and "data:image" in last:
        return {"role": "assistant", "content": f"An image of {len(last)} characters."}
    move = next_move(messages)
    commands = [{"keystrokes": keys, "duration": wait} for keys, wait in move.commands]
    reply = {"analysis": move.thought, "plan": "See the commands.", "commands": commands}
    chatter = "Let me do this.\n" if move.slip == "chatter" else ""
    if not request.get("tools"):
        text = json.dumps({**reply, "task_complete": True} if move.complete else reply, indent=2)
        if move.slip == "broken":
            text = text.replace(",\n", "\n", 1)
        return {"role": "assistant", "content": chatter + text}
    name, arguments = "execute_commands", json.dumps(reply)
    if move.complete:
        name, arguments = "task_complete", "{}"
    if move.slip == "broken":
        arguments = arguments.replace(", ", " ", 1)
    number = sum(message["role"] == "assistant" for message in messages)
    function = {"name": name, "arguments": arguments}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": chatter, "tool_calls": [call]}


def tokens(value: object) -> int:
    """Count tokens as a quarter of the characters, rounded up."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return -(-len(text) // 4)


def completion(request: dict) -> dict:
    """Return the response body for a request."""
    message = answer(request)
    asked = sum(
        tokens(text_of(entry)) + tokens(entry.get("tool_calls") or "")
        for entry in request["messages"]
    )
    asked += tokens(request.get("tools") or "")
    given = tokens(message["content"]) + tokens(message.get("tool_calls") or "")
    finish = "tool_calls" if "tool_calls" in message else "stop"
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": request.get("model", "scripted"),
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": asked,
            "completion_tokens": given,
            "total_tokens": asked + given,
        },
    }


class ScriptedModel:
    """The server; use it with `with`, or call `start` and `stop`.

    Args:
        port: The port on 127.0.0.1; 0 takes a free one.
    """

    def __init__(self, port: int = 0) -> None:
        self.requests = 0
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._fault, self._after, self._count = "", 0, 0
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.model = self
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def start(self) -> "ScriptedModel":
        """Begin to answer."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End the server and every request that hangs."""
        self._stopped.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def wait(self) -> None:
        """Return when the server has been stopped."""
        self._stopped.wait()

    def fail(self, fault: str, count: int = 1, after: int = 0) -> None:
        """Make `count` requests fail after `after` good ones; a count of 0 ends all faults."""
        if fault not in FAULTS:
            raise ValueError(f"unknown fault {fault!r}; choose one of {', '.join(FAULTS)}")
        with self._lock:
            self._fault, self._count, self._after = fault, count, after

    def due_fault(self) -> str:
        """Count a request; return the fault that it meets, or an empty text."""
        with self._lock:
            self.requests += 1
            if self._after:
                self._after -= 1
                return ""
            if not self._count:
                return ""
            self._count -= 1
            return self._fault

    def hang(self) -> None:
        """Block until the server stops."""
        self._stopped.wait()

    def __enter__(self) -> "ScriptedModel":
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    model: ScriptedModel


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        """List the one model, or the number of requests."""
        if self.path == "/control":
            self._send(200, {"requests": self.server.model.requests})
        elif self.path == "/v1/models":
            self._send(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})
        else:
            self._refuse(404, "not_found", f"unknown path {self.path}")

    def do_POST(self) -> None:
        """Answer a chat request or set a fault."""
        try:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/control":
                self.server.model.fail(**body)
                self._send(200, {})
            elif self.path == "/v1/chat/completions":
                self._chat(body)
            else:
                self._refuse(404, "not_found", f"unknown path {self.path}")
        except (ValueError, KeyError, TypeError) as error:
            self._refuse(400, "invalid_request_error", f"cannot read the request: {error!r}")

    def _chat(self, body: dict) -> None:
        fault = self.server.model.due_fault()
        if fault == "die":
            threading.Thread(target=self.server.model.stop, daemon=True).start()
            self.close_connection = True
        elif fault == "hang":
            self.server.model.hang()
        elif fault:
            self._refuse(*FAULTS[fault])
        elif body.get("stream"):
            self._refuse(400, "invalid_request_error", "this server does not stream")
        else:
            self._send(200, completion(body))

    def _refuse(self, status: int, code: str, text: str) -> None:
        kind = "invalid_request_error" if status < 429 else code
        self._send(status, {"error": {"message": text, "type": kind, "code": code}})

    def _send(self, status: int, body: dict) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        """Keep quiet."""


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="Play a model for the tasks of this folder.")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: any)")
    with ScriptedModel(parser.parse_args().port) as model:
        print(model.url, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            model.wait()


if __name__ == "__main__":
    main()
