"""Requests of a candidate to services, on the trusted side: one at a time, or several at once."""

import inspect
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextvars import Context, ContextVar, copy_context
from typing import Any, NamedTuple

from coevolve.errors import CoevolveError
from coevolve.executors.isolation.launch import HarnessFault

Services = Mapping[str, Callable[..., object]]
Message = dict[str, Any]

MOST_AT_ONCE = 16
"""Services of one call that work at once; further requests wait."""


class AskAbandoned(CoevolveError):  # noqa: N818
    """The candidate no longer waits for this service: it cancelled, or its call has ended."""


class ServedAsk:
    """The request that a service works on.

    Attributes:
        service: The name of the service.
        cancelled: Whether the candidate no longer waits for the answer.
    """

    def __init__(self, service: str) -> None:
        self.service = service
        self.cancelled = False
        self._lock = threading.Lock()
        self._actions: list[Callable[[], object]] = []

    def on_cancel(self, action: Callable[[], object]) -> None:
        """Run an action when the request is cancelled, or now if it was."""
        with self._lock:
            if not self.cancelled:
                self._actions.append(action)
                return
        action()

    def cancel(self) -> None:
        """Tell the service that its answer is not needed any more."""
        with self._lock:
            self.cancelled = True
            actions, self._actions = self._actions, []
        for action in actions:
            action()


_CURRENT: ContextVar[ServedAsk | None] = ContextVar("coevolve_ask", default=None)


def current_ask() -> ServedAsk | None:
    """The request that this service works on; None outside of a service.

    >>> current_ask() is None
    True
    """
    return _CURRENT.get()


class Asked(NamedTuple):
    """A request as it arrived."""

    number: int
    service: str
    args: list[Any]
    kwargs: dict[str, Any]


def read_ask(message: Message) -> Asked:
    """The request in a message of a candidate.

    Raises:
        HarnessFault: There is none.
    """
    name, number = message.get("ask"), ask_number(message.get("number"))
    args, kwargs = message.get("args"), message.get("kwargs")
    if not (isinstance(name, str) and isinstance(args, list) and isinstance(kwargs, dict)):
        raise HarnessFault("protocol", "wrote an invalid request to a service")
    return Asked(number, name, args, kwargs)


def ask_number(value: object) -> int:
    """The number of a request.

    Raises:
        HarnessFault: It is not a number.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 1 << 53:
        raise HarnessFault("protocol", "wrote a request to a service without a valid number")
    return value


def refusal(asked: Asked, services: Services) -> str:
    """Why a request is not passed to a service; empty if it is."""
    service = services.get(asked.service)
    if service is None:
        offered = ", ".join(sorted(services)) or "none"
        return f"unknown service {asked.service!r}; available: {offered}"
    try:
        inspect.signature(service).bind(*asked.args, **asked.kwargs)
    except TypeError as error:
        return f"service {asked.service!r}: {error}"
    return ""


def serve(asked: Asked, services: Services, ask: ServedAsk) -> Message:
    """The reply to a request: the result of the service, or why it was not called."""
    if why := refusal(asked, services):
        return {"number": asked.number, "refused": why}
    result = _in_context(ask).run(services[asked.service], *asked.args, **asked.kwargs)
    if isinstance(result, Future):
        ask.on_cancel(result.cancel)
        result = result.result()
    return {"number": asked.number, "result": result}


def _in_context(ask: ServedAsk) -> Context:
    context = copy_context()
    context.run(_CURRENT.set, ask)
    return context


class ServiceThreads:
    """Serves several requests of a call at once, each in a thread of its own.

    A service may return a `Future`, which then takes no thread. It is cancelled with its request.

    Args:
        services: The services by name.
        most_open: How many requests may wait for their answer.
        wake: Called in another thread whenever `replies` has something new.
    """

    def __init__(self, services: Services, most_open: int, wake: Callable[[], object]) -> None:
        self._services, self._most_open, self._wake = services, most_open, wake
        self._open: dict[int, ServedAsk] = {}
        self._waiting: deque[tuple[Asked, ServedAsk]] = deque()
        self._working = 0
        self._done: deque[tuple[int, ServedAsk, Future[object]]] = deque()

    @property
    def open(self) -> int:
        """How many requests the candidate waits for."""
        return len(self._open)

    @property
    def ready(self) -> bool:
        """Whether a service has ended."""
        return bool(self._done)

    def add(self, asked: Asked) -> Message | None:
        """Begin to serve a request; the reply if it is refused.

        Raises:
            HarnessFault: Its number is in use, or too many requests are open.
        """
        if asked.number in self._open:
            raise HarnessFault("protocol", f"used the number {asked.number} for two requests")
        if len(self._open) >= self._most_open:
            raise HarnessFault(
                "ask-limit", f"had more than {self._most_open} open requests to services"
            )
        if why := refusal(asked, self._services):
            return {"number": asked.number, "refused": why}
        ask = self._open[asked.number] = ServedAsk(asked.service)
        self._waiting.append((asked, ask))
        self._start()
        return None

    def cancel(self, number: int) -> None:
        """The candidate no longer waits for a reply; nothing if it was sent already."""
        ask = self._open.pop(number, None)
        if ask is not None:
            self._waiting = deque(pair for pair in self._waiting if pair[1] is not ask)
            ask.cancel()

    def replies(self) -> list[Message]:
        """The replies that are ready; raises the error of a service that failed."""
        found: list[Message] = []
        while self._done:
            number, ask, outcome = self._done.popleft()
            self._working -= 1
            if not ask.cancelled:
                del self._open[number]
                found.append({"number": number, "result": outcome.result()})
        self._start()
        return found

    def close(self) -> None:
        """Cancel all requests; threads that are at work are not waited for."""
        self._waiting.clear()
        left, self._open = self._open, {}
        for ask in left.values():
            ask.cancel()

    def _start(self) -> None:
        while self._waiting and self._working < MOST_AT_ONCE:
            asked, ask = self._waiting.popleft()
            self._working += 1
            threading.Thread(
                target=self._work,
                args=(asked, ask, _in_context(ask)),
                name=f"coevolve-service-{asked.service:.20}",
                daemon=True,
            ).start()

    def _work(self, asked: Asked, ask: ServedAsk, context: Context) -> None:
        outcome: Future[object] = Future()
        try:
            result = context.run(self._services[asked.service], *asked.args, **asked.kwargs)
        except BaseException as error:
            outcome.set_exception(error)
        else:
            if isinstance(result, Future):
                result.add_done_callback(lambda done: self._ended(asked.number, ask, done))
                ask.on_cancel(result.cancel)
                return
            outcome.set_result(result)
        self._ended(asked.number, ask, outcome)

    def _ended(self, number: int, ask: ServedAsk, outcome: "Future[object]") -> None:
        self._done.append((number, ask, outcome))
        self._wake()
