"""The engine as a worker sees it: requests to its services, from any thread."""

import itertools
import threading
from collections import deque
from typing import Any

from coevolve.executors.channel import Message, Pipe, fault_from_json
from coevolve.executors.failures import FaultError
from coevolve.executors.isolation.service_calls import AskAbandoned, current_ask


class Terminated(BaseException):
    """The engine asked this process to end, or has ended itself."""


class PipeHost:
    """The engine, reached through a socket.

    Requests are numbered, so several threads may wait at once. One of the waiting threads reads
    the socket for all of them. A request made by a service whose own request is cancelled is
    cancelled too, and raises `AskAbandoned`.

    Args:
        pipe: The socket.
    """

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self._numbers = itertools.count(1)
        self._sending = threading.Lock()
        self._changed = threading.Condition()
        self._reading = self._closed = False
        self._open: set[int] = set()
        self._answers: dict[int, Message] = {}
        self._requests: deque[Message] = deque()

    def ask(self, service: str, /, **payload: Any) -> Any:
        """The answer of a service of the engine; raises its fault if it failed."""
        ask = current_ask()
        if ask is not None and ask.cancelled:
            raise AskAbandoned(f"the request that needs {service!r} was cancelled.")
        number = next(self._numbers)
        with self._changed:
            self._open.add(number)
        try:
            self.send({"ask": service, "number": number, "payload": payload})
            if ask is not None:
                ask.on_cancel(lambda: self._cancel(number))
            self._wait(lambda: number in self._answers or number not in self._open)
        finally:
            with self._changed:
                self._open.discard(number)
                answer = self._answers.pop(number, None)
        if self._closed and answer is None:
            raise Terminated
        if answer is None or "cancelled" in answer:
            raise AskAbandoned(f"the request to {service!r} was cancelled.")
        if "fault" in answer:
            raise FaultError(fault_from_json(answer["fault"]))
        return answer["answer"]

    def send(self, message: Message) -> None:
        """Send a message to the engine."""
        with self._sending:
            self.pipe.send(message)

    def next_request(self) -> Message | None:
        """The next request of the engine; None when it has closed the socket."""
        self._wait(lambda: bool(self._requests))
        return self._requests.popleft() if self._requests else None

    def end_request(self) -> None:
        """Give up requests of threads that an attempt has left behind."""
        with self._changed:
            self._open.clear()
            self._changed.notify_all()

    def _cancel(self, number: int) -> None:
        with self._changed:
            waits = number in self._open and number not in self._answers and not self._closed
        if waits:
            self.send({"cancel": number})  # the engine confirms it, which wakes the thread

    def _wait(self, done: Any) -> None:
        """Read the socket until something is done, or wait while another thread reads it."""
        while True:
            with self._changed:
                while self._reading and not done() and not self._closed:
                    self._changed.wait()
                if done() or self._closed:
                    return
                self._reading = True
            message: Message | None = None
            try:
                message = self.pipe.receive()
            finally:
                with self._changed:
                    self._reading = False
                    self._take(message)
                    self._changed.notify_all()

    def _take(self, message: Message | None) -> None:
        if message is None:
            self._closed = True
        elif "number" not in message:
            self._requests.append(message)
        elif message["number"] in self._open:
            self._answers[message["number"]] = message
