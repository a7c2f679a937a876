"""A candidate may ask services from several threads at once, and may stop waiting for them."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from coevolve.executors.isolation import HarnessFault, Isolation, current_ask
from coevolve.executors.isolation.service_calls import MOST_AT_ONCE
from tests.executors.isolation.conftest import STRICT, Make

ROOMY = replace(STRICT, seconds=30, processes=40, asks=500, memory_mb=1500)

ASKER = """
import asyncio, threading, time
import coevolve_host

def in_threads(count, service):
    found = [None] * count
    def work(place):
        found[place] = coevolve_host.ask(service, place)
    threads = [threading.Thread(target=work, args=(place,)) for place in range(count)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return found

def gathered(count, service):
    async def main():
        asks = [coevolve_host.ask_async(service, place) for place in range(count)]
        return await asyncio.gather(*asks)
    return asyncio.run(main())

def submitted(count, service):
    asks = [coevolve_host.submit(service, place) for place in range(count)]
    return [ask.result() for ask in reversed(asks)]

def gives_up():
    async def main():
        try:
            await asyncio.wait_for(coevolve_host.ask_async("slow"), 0.05)
        except TimeoutError:
            return await coevolve_host.ask_async("quick", 7)
    return asyncio.run(main())

def late():
    ask = coevolve_host.submit("slow")
    try:
        ask.result(timeout=0.05)
    except TimeoutError:
        pass
    said = [ask.done(), coevolve_host.cancel(ask), ask.cancel(), ask.cancelled()]
    try:
        ask.result()
    except coevolve_host.AskCancelled:
        said.append("cancelled")
    return [*said, coevolve_host.ask("quick", 8)]

def leaves(count):
    for place in range(count):
        coevolve_host.submit("slow")
    return coevolve_host.ask("quick", 1)

kept = []

def keeps():
    kept.append(coevolve_host.submit("slow"))
    return coevolve_host.ask("quick", 1)

def finds():
    try:
        kept[0].result(timeout=10)
    except coevolve_host.AskError as error:
        return [str(error), coevolve_host.ask("quick", 2)]

def errors():
    said = []
    for name, arguments in (("absent", ()), ("quick", ()), ("quick", (1, 2, 3))):
        try:
            coevolve_host.submit(name, *arguments).result()
        except coevolve_host.AskError as error:
            said.append(str(error))
    return said

def calls_back():
    done = threading.Event()
    seen = []
    ask = coevolve_host.submit("quick", 4)
    ask.add_done_callback(lambda ask: (seen.append(ask.result()), done.set()))
    done.wait(10)
    return seen

def mixed():
    async def main():
        asks = [coevolve_host.ask_async("quick", place) for place in range(20)]
        plain = [asyncio.to_thread(coevolve_host.ask, "quick", place) for place in range(20)]
        return await asyncio.gather(*asks, *plain)
    return asyncio.run(main())
"""


class Together:
    """A service that answers when as many requests have come as are expected."""

    def __init__(self, parties: int) -> None:
        self._barrier = threading.Barrier(parties)

    def __call__(self, place: int) -> int:
        self._barrier.wait(timeout=20)
        return place * place


@contextmanager
def event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def quick(place: int) -> int:
    return place * place


@pytest.mark.parametrize("function", ["in_threads", "gathered", "submitted"])
def test_requests_are_served_at_once(function: str, isolation: Isolation, make: Make) -> None:
    harness = make(ASKER, isolation, ROOMY)
    found = harness.call(
        function, 4, "together", services={"together": Together(4)}, concurrent=True
    )
    assert sorted(found) == [0, 1, 4, 9]


@pytest.mark.parametrize("function", ["in_threads", "gathered", "submitted"])
@pytest.mark.parametrize("concurrent", [False, True])
def test_every_request_gets_its_own_reply(
    function: str, concurrent: bool, isolation: Isolation, make: Make
) -> None:
    harness = make(ASKER, isolation, replace(ROOMY, open_asks=5))
    services = {"quick": quick}
    found = harness.call(function, 20, "quick", services=services, concurrent=concurrent)
    assert sorted(found) == [place * place for place in range(20)]
    harness.end_trial()
    assert harness.call("mixed", services=services, concurrent=concurrent) == [
        place * place for place in [*range(20), *range(20)]
    ]


def test_services_run_in_the_calling_thread_unless_they_may_run_at_once(
    isolation: Isolation, make: Make
) -> None:
    names: list[str] = []

    def quick(place: int) -> int:
        names.append(threading.current_thread().name)
        return place

    harness = make(ASKER, isolation, ROOMY)
    harness.call("in_threads", 4, "quick", services={"quick": quick})
    assert set(names) == {threading.current_thread().name}
    harness.call("in_threads", 4, "quick", services={"quick": quick}, concurrent=True)
    assert set(names[4:]) == {"coevolve-service-quick"}


def test_only_so_many_services_work_at_once(isolation: Isolation, make: Make) -> None:
    lock, most, now = threading.Lock(), 0, 0
    full = threading.Event()

    def busy(place: int) -> int:
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
            if now == MOST_AT_ONCE:
                full.set()
        full.wait(20)
        with lock:
            now -= 1
        return place

    harness = make(ASKER, isolation, ROOMY)
    found = harness.call("gathered", 40, "busy", services={"busy": busy}, concurrent=True)
    assert found == list(range(40))
    assert most == MOST_AT_ONCE


@pytest.mark.parametrize("function", ["gives_up", "late"])
def test_a_candidate_that_gives_up_is_not_blocked_and_the_service_is_told(
    function: str, isolation: Isolation, make: Make
) -> None:
    with event_loop() as loop:
        ended: list[str] = []

        async def wait() -> None:
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        def slow() -> "Future[None]":
            return asyncio.run_coroutine_threadsafe(wait(), loop)

        harness = make(ASKER, isolation, ROOMY)
        services: dict[str, Callable[..., Any]] = {"slow": slow, "quick": quick}
        found = harness.call(function, services=services, concurrent=True)
    assert found == (49 if function == "gives_up" else [False, True, False, True, "cancelled", 64])
    assert ended == ["cancelled"]


def test_a_plain_service_sees_that_its_request_was_cancelled(
    isolation: Isolation, make: Make
) -> None:
    told = threading.Event()

    def slow() -> None:
        ask = current_ask()
        assert ask is not None
        ask.on_cancel(told.set)
        assert told.wait(20)
        raise RuntimeError("the error of a cancelled request is dropped")

    harness = make(ASKER, isolation, ROOMY)
    services: dict[str, Callable[..., Any]] = {"slow": slow, "quick": quick}
    assert harness.call("gives_up", services=services, concurrent=True) == 49
    assert told.is_set()


def test_requests_still_open_when_a_call_ends_are_cancelled(
    isolation: Isolation, make: Make
) -> None:
    waiting: list[Future[None]] = []

    def slow() -> "Future[None]":
        waiting.append(Future())
        return waiting[-1]

    harness = make(ASKER, isolation, ROOMY)
    services: dict[str, Callable[..., Any]] = {"slow": slow, "quick": quick}
    assert harness.call("leaves", 3, services=services, concurrent=True) == 1
    assert all(future.cancelled() for future in waiting)
    said = harness.call("keeps", services=services, concurrent=True)
    assert said == 1
    assert harness.call("finds", services=services) == ["the call has ended", 4]
    harness.end_trial()
    assert harness.call("in_threads", 2, "quick", services=services) == [0, 1]


@pytest.mark.parametrize("concurrent", [False, True])
def test_an_error_in_a_service_ends_the_call(
    concurrent: bool, isolation: Isolation, make: Make
) -> None:
    def broken(place: int) -> None:
        raise ConnectionResetError("the model is away")

    harness = make(ASKER, isolation, ROOMY)
    with pytest.raises(ConnectionResetError):
        harness.call("gathered", 3, "broken", services={"broken": broken}, concurrent=concurrent)
    assert harness.call("in_threads", 1, "quick", services={"quick": quick}) == [0]


@pytest.mark.parametrize("concurrent", [False, True])
def test_refused_requests_are_errors_in_the_candidate(
    concurrent: bool, isolation: Isolation, make: Make
) -> None:
    harness = make(ASKER, isolation, ROOMY)
    said = harness.call("errors", services={"quick": quick}, concurrent=concurrent)
    assert [text.partition(":")[0] for text in said] == [
        "unknown service 'absent'; available",
        "service 'quick'",
        "service 'quick'",
    ]
    assert harness.call("calls_back", services={"quick": quick}, concurrent=concurrent) == [16]


FORGER = """
import time
import coevolve_host

def forge(messages):
    link = coevolve_host.ask.__self__._link
    for message in messages:
        link.send(message)
    time.sleep(1000)

def fine():
    return 1
"""


def ask(number: object, service: str = "slow") -> dict[str, Any]:
    return {"ask": service, "number": number, "args": [], "kwargs": {}}


@pytest.mark.parametrize(
    ("messages", "kind"),
    [
        pytest.param([ask(1), ask(1)], "protocol", id="a number used twice"),
        pytest.param([ask(number) for number in range(1, 67)], "ask-limit", id="too many open"),
        pytest.param([ask(n, "none") for n in range(1, 600)], "ask-limit", id="too many"),
        pytest.param([ask(1), {"cancel": 2}, {"cancel": 2}], "protocol", id="forged cancels"),
        pytest.param([ask(-1)], "protocol", id="a negative number"),
        pytest.param([{"number": 1, "result": 2}], "protocol", id="a reply"),
    ],
)
def test_a_forged_request_is_the_candidates_fault(
    messages: list[Any], kind: str, isolation: Isolation, make: Make
) -> None:
    harness = make(FORGER, isolation, ROOMY)
    waiting: list[Future[None]] = []

    def slow() -> "Future[None]":
        waiting.append(Future())
        return waiting[-1]

    with pytest.raises(HarnessFault) as caught:
        harness.call("forge", messages, services={"slow": slow}, concurrent=True)
    assert caught.value.kind == kind
    assert all(future.cancelled() for future in waiting)
    assert harness.call("fine") == 1


def test_open_requests_stop_the_clock_but_a_loop_without_any_does_not(
    isolation: Isolation, make: Make
) -> None:
    def slow() -> int:
        time.sleep(1.5)
        return 3

    services: dict[str, Callable[..., Any]] = {"slow": slow, "quick": quick}
    source = "\nimport time\ndef waits():\n    return coevolve_host.submit('slow').result()\n"
    harness = make(ASKER + source, isolation, replace(ROOMY, seconds=1))
    assert harness.call("waits", services=services, concurrent=True) == 3
    source = "\ndef loops():\n    while True: pass\n"
    harness = make(ASKER + source, isolation, replace(ROOMY, seconds=1))
    with pytest.raises(HarnessFault, match="longer than 1 s"):
        harness.call("loops", services=services, concurrent=True)
