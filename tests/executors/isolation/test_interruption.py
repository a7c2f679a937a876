"""A call can be interrupted from another thread, whatever the candidate does."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coevolve.executors.failures import classify
from coevolve.executors.in_process import TrustedHarness
from coevolve.executors.isolation import CallInterrupted, Harness, Isolation, current_ask
from coevolve.executors.isolation.process_table import descendants
from coevolve.search.trials import Blame
from tests.executors.isolation.conftest import STRICT, Make
from tests.executors.projects import runs, until

LONG = replace(STRICT, seconds=300, cpu_seconds=300)

CANDIDATE = """
import os, signal, subprocess, sys, time
import coevolve_host

def fine(value):
    return value

def loops():
    print("begun", flush=True)
    while True: pass

def sleeps():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    print("begun", flush=True)
    time.sleep(1000)

def asks():
    return coevolve_host.ask("stuck")
"""


@contextmanager
def interrupting(harness: Harness, when: Callable[[], bool]) -> Iterator[list[bool]]:
    """Interrupt a harness as soon as something is true."""
    done: list[bool] = []

    def work() -> None:
        until(when)
        done.append(harness.interrupt())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield done
    finally:
        thread.join()


def begun(harness: Harness) -> Callable[[], bool]:
    def begun() -> bool:
        sandbox = harness._sandbox
        return sandbox is not None and "begun" in sandbox.output.text

    return begun


@pytest.mark.parametrize("concurrent", [False, True])
@pytest.mark.parametrize("function", ["loops", "sleeps"])
def test_a_call_ends_with_all_its_processes(
    function: str, concurrent: bool, isolation: Isolation, make: Make
) -> None:
    harness = make(CANDIDATE, isolation, LONG)
    assert harness.call("fine", 1) == 1
    assert harness._sandbox is not None
    root = harness._sandbox._process.pid
    seen: set[int] = set()

    def ready() -> bool:
        seen.update(descendants(root))
        return begun(harness)()

    with interrupting(harness, ready) as done, pytest.raises(CallInterrupted) as caught:
        harness.call(function, concurrent=concurrent)
    assert done == [True]
    assert classify(caught.value).blame is Blame.DOUBTFUL
    assert until(lambda: not any(map(runs, seen)))
    assert harness.call("fine", 2) == 2


def test_a_call_with_concurrent_services_does_not_wait_for_them(
    isolation: Isolation, make: Make
) -> None:
    harness = make(CANDIDATE, isolation, LONG)
    asked, over = threading.Event(), threading.Event()

    def stuck() -> None:
        asked.set()
        over.wait(60)

    try:
        with interrupting(harness, asked.is_set), pytest.raises(CallInterrupted):
            harness.call("asks", services={"stuck": stuck}, concurrent=True)
    finally:
        over.set()
    assert harness.call("fine", 2) == 2


def test_a_future_that_a_call_waits_for_is_cancelled(isolation: Isolation, make: Make) -> None:
    harness = make(CANDIDATE, isolation, LONG)
    waiting: list[Future[None]] = []

    def stuck() -> "Future[None]":
        waiting.append(Future())
        return waiting[0]

    for concurrent in (False, True):
        with interrupting(harness, lambda: bool(waiting)), pytest.raises(CallInterrupted):
            harness.call("asks", services={"stuck": stuck}, concurrent=concurrent)
        assert waiting.pop().cancelled()
    assert harness.call("fine", 2) == 2


def test_a_service_in_the_calling_thread_is_told_and_the_call_ends_with_it(
    isolation: Isolation, make: Make
) -> None:
    harness = make(CANDIDATE, isolation, LONG)
    asked, told = threading.Event(), threading.Event()

    def stuck() -> str:
        ask = current_ask()
        assert ask is not None
        ask.on_cancel(told.set)
        asked.set()
        assert told.wait(60)
        return "too late"

    with interrupting(harness, asked.is_set), pytest.raises(CallInterrupted):
        harness.call("asks", services={"stuck": stuck})
    assert harness.call("fine", 2) == 2


def test_an_import_is_interrupted_too(isolation: Isolation, make: Make) -> None:
    slow = make("print('begun', flush=True)\nwhile True: pass", isolation, LONG)
    with interrupting(slow, begun(slow)), pytest.raises(CallInterrupted):
        slow.call("fine", 1)


def test_an_execution_is_interrupted_too(isolation: Isolation, make: Make) -> None:
    harness = make(CANDIDATE, isolation, LONG)
    with (
        interrupting(harness, lambda: harness._interruption._running),
        pytest.raises(CallInterrupted),
    ):
        harness.execute(["sleep", "1000"])
    assert harness.execute(["echo", "hello"]).stdout == b"hello\n"


def test_nothing_happens_when_no_call_is_running(
    isolation: Isolation, make: Make, tmp_path: Path
) -> None:
    harness = make(CANDIDATE, isolation, LONG)
    assert not harness.interrupt()
    assert harness.call("fine", 1) == 1
    assert not harness.interrupt()
    assert harness.call("fine", 2) == 2
    harness.close()
    assert not harness.interrupt()
    assert not TrustedHarness(tmp_path, name="trusted").interrupt()


def test_calls_interrupted_at_any_moment_leave_a_harness_that_works(
    isolation: Isolation, make: Make
) -> None:
    harness = make(CANDIDATE, isolation, LONG)
    over = threading.Event()

    def keep_interrupting() -> None:
        while not over.wait(0.004):
            harness.interrupt()

    thread = threading.Thread(target=keep_interrupting)
    thread.start()
    ended: list[Any] = []
    try:
        for number in range(40):
            try:
                ended.append(harness.call("fine", number))
            except CallInterrupted:
                ended.append(None)
    finally:
        over.set()
        thread.join()
    assert None in ended
    assert all(value in (None, number) for number, value in enumerate(ended))
    assert harness.call("fine", 7) == 7
