"""Inside a sandbox: the module `coevolve_host`, through which a candidate asks for services.

Requests are numbered, and replies carry the number, so several threads may ask at once. The
thread that waits for a reply reads the pipe for all others; a thread of its own reads it for
requests that are not waited for. The runner executes this file. It imports little, and nothing
outside the sandbox trusts it.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock, start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, Protocol

    Reply = dict[str, Any]

    class Link(Protocol):
        """The pipe to the host."""

        def send(self, message: dict[str, Any]) -> None: ...

        def receive(self) -> Any: ...


_OVER = "services are available only during a call"


class AskError(Exception):
    """A request to a service was refused."""


class AskCancelled(AskError):  # noqa: N818
    """The candidate cancelled the request."""


class Ask:
    """A request to a service that was sent.

    Attributes:
        number: Its number; the reply carries it.
    """

    def __init__(self, asks: Asks, number: int) -> None:
        self.number = number
        self._asks = asks
        self._reply: Reply | None = None
        self._callbacks: list[Callable[[Ask], object]] = []
        self._waking = allocate_lock()
        self._waking.acquire()

    def done(self) -> bool:
        """Whether it was answered, refused or cancelled."""
        return self._reply is not None

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._reply is not None and "cancelled" in self._reply

    def cancel(self) -> bool:
        """Stop waiting for the reply, and tell the host; False if it is already there."""
        return self._asks.cancel(self)

    def result(self, timeout: float | None = None) -> object:
        """The result, when it is there.

        Raises:
            AskError: The request was refused, or cancelled (`AskCancelled`).
            TimeoutError: There was no reply within `timeout` seconds; the request stays open.
        """
        while self._reply is None:
            if not self._waking.acquire(timeout=-1 if timeout is None else timeout):
                raise TimeoutError(f"no reply within {timeout:g} s")
        self._wake()  # for another thread that waits for the same reply
        if "cancelled" in self._reply:
            raise AskCancelled("the request was cancelled")
        if "refused" in self._reply:
            raise AskError(self._reply["refused"])
        return self._reply["result"]

    def add_done_callback(self, function: Callable[[Ask], object]) -> None:
        """Call a function with this request when it is done, in the thread that read the reply."""
        with self._asks.guard:
            if self._reply is None:
                self._callbacks.append(function)
                return
        function(self)

    def _wake(self) -> None:
        with self._asks.guard:
            if self._waking.locked():
                self._waking.release()

    def _finish(self, reply: Reply) -> bool:
        """Set the reply, once."""
        with self._asks.guard:
            if self._reply is not None:
                return False
            self._reply = reply
            functions, self._callbacks = self._callbacks, []
        self._wake()
        for function in functions:
            try:
                function(self)
            except Exception:
                sys.excepthook(*sys.exc_info())
        return True


class Asks:
    """All requests of this process.

    Args:
        link: The pipe to the host.
        most: How many may be open at once; more wait here.
    """

    def __init__(self, link: Link, most: int) -> None:
        self.guard = allocate_lock()
        self._link, self._most = link, most
        self._sending, self._reading = allocate_lock(), allocate_lock()
        self._calling = self._pumping = False
        self._number = 0
        self._open: dict[int, Ask] = {}
        self._unsent: list[tuple[Ask, dict[str, Any]]] = []
        self._calls: list[Any] = []
        self._called = allocate_lock()
        self._called.acquire()

    def next_call(self) -> Any:
        """The next message of the host that is not a reply."""
        self._lead(lambda: bool(self._calls), self._called)
        return self._calls.pop()

    def begin_call(self) -> None:
        """Allow requests."""
        self._calling = True

    def end_call(self, send: Callable[[], None]) -> None:
        """Refuse further requests, end those that are open, and send the answer of the call."""
        with self._sending:
            self._calling = False
            left = [*self._open.values(), *(ask for ask, _ in self._unsent)]
            self._open.clear()
            self._unsent.clear()
            send()
        for ask in left:
            ask._finish({"refused": "the call has ended"})

    def ask(self, service: str, /, *args: object, **kwargs: object) -> object:
        """Ask a service of the host; arguments and result are JSON."""
        ask = self._start(service, args, kwargs)
        self._lead(ask.done, ask._waking)
        return ask.result()

    def submit(self, service: str, /, *args: object, **kwargs: object) -> Ask:
        """Send a request without waiting for its reply."""
        ask = self._start(service, args, kwargs)
        with self.guard:
            start, self._pumping = not self._pumping, True
        if start:
            start_new_thread(self._pump, ())
        return ask

    async def ask_async(self, service: str, /, *args: object, **kwargs: object) -> object:
        """Ask a service from a coroutine; cancelling the coroutine cancels the request."""
        import asyncio

        loop = asyncio.get_running_loop()
        answered = loop.create_future()

        def settle() -> None:
            if not answered.done():
                answered.set_result(None)

        def wake(ask: Ask) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle)

        ask = self.submit(service, *args, **kwargs)
        ask.add_done_callback(wake)
        try:
            await answered
        except asyncio.CancelledError:
            ask.cancel()
            raise
        return ask.result()

    def cancel(self, ask: Ask) -> bool:
        """Stop waiting for a reply; False if it is already there."""
        if not ask._finish({"cancelled": True}):
            return False
        with self._sending:
            self._unsent = [pair for pair in self._unsent if pair[0] is not ask]
            if self._open.pop(ask.number, None) is not None:
                self._link.send({"cancel": ask.number})
                self._send_next()
        return True

    def _start(self, service: str, args: tuple[object, ...], kwargs: dict[str, object]) -> Ask:
        with self._sending:
            if not self._calling:
                raise AskError(_OVER)
            self._number += 1
            ask = Ask(self, self._number)
            message = {"ask": service, "number": ask.number, "args": args, "kwargs": kwargs}
            if len(self._open) >= self._most:
                self._unsent.append((ask, message))
            else:
                self._send(ask, message)
        return ask

    def _send(self, ask: Ask, message: dict[str, Any]) -> None:
        self._open[ask.number] = ask
        try:
            self._link.send(message)
        except BaseException:
            del self._open[ask.number]
            raise

    def _send_next(self) -> None:
        """Send a request that waits for others to be done."""
        while self._unsent and len(self._open) < self._most:
            ask, message = self._unsent.pop(0)
            try:
                self._send(ask, message)
            except (OverflowError, TypeError, ValueError) as error:
                ask._finish({"refused": str(error)})

    def _take(self) -> None:
        """Read a message and pass it to the thread that waits for it."""
        message = self._link.receive()
        if "number" not in message:
            self._calls.append(message)
            self._wake_main()
            return
        with self._sending:
            ask = self._open.pop(message["number"], None)
            self._send_next()
        if ask is not None:  # else it was cancelled
            ask._finish(message)

    def _lead(self, done: Callable[[], bool], waking: Any) -> None:
        """Read the pipe until something is done, or wait while another thread reads it."""
        while not done():
            if not self._reading.acquire(False):
                waking.acquire()
                continue
            try:
                while not done():
                    self._take()
            finally:
                self._stop_reading()

    def _pump(self) -> None:
        """Read the pipe while requests are open."""
        while True:
            with self._reading:
                while self._open:
                    self._take()
                with self.guard:
                    if not self._open:
                        self._pumping = False
                        break
        self._wake_all()

    def _stop_reading(self) -> None:
        self._reading.release()
        self._wake_all()

    def _wake_all(self) -> None:
        """Let another thread read."""
        for ask in list(self._open.values()):
            ask._wake()
        self._wake_main()

    def _wake_main(self) -> None:
        with self.guard:
            if self._called.locked():
                self._called.release()


def host_module(asks: Asks) -> ModuleType:
    """The module `coevolve_host`."""
    module = type(sys)("coevolve_host", "The services of the candidate's host.")
    module.__dict__.update(
        ask=asks.ask,
        ask_async=asks.ask_async,
        submit=asks.submit,
        cancel=asks.cancel,
        Ask=Ask,
        AskError=AskError,
        AskCancelled=AskCancelled,
    )
    return module
