"""How many calls run at once, and how many begin in a minute."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevolve.errors import ConfigError
from coevolve.models.rate_limits import Pace
from tests.models.fakes import FakeTime


def begun(time: FakeTime, pace: Pace, tokens: list[int], used: list[int]) -> list[float]:
    """When calls began that may take, and then take, so many tokens; all are wanted at once."""
    times: list[float] = []

    async def call(expected: int, taken: int) -> None:
        async with pace.slot(expected) as entry:
            times.append(time.now)
            await asyncio.sleep(0)
            entry.amount = taken

    async def all_of_them() -> None:
        await asyncio.gather(*map(call, tokens, used))

    asyncio.run(all_of_them())
    return times


def paced(time: FakeTime, **limits: Any) -> Pace:
    return Pace(**{"concurrency": 100, **limits}, clock=time.clock, sleep=time.sleep)


def test_without_limits_no_call_waits() -> None:
    time = FakeTime()
    assert begun(time, paced(time), [9] * 50, [9] * 50) == [0.0] * 50
    assert time.slept == []


def test_so_many_calls_run_at_once_and_no_more() -> None:
    running = most = 0
    pace = Pace(concurrency=3)

    async def call() -> None:
        nonlocal running, most
        async with pace.slot(1):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            running -= 1

    async def all_of_them() -> None:
        await asyncio.gather(*(call() for _ in range(20)))

    asyncio.run(all_of_them())
    assert most == 3


def test_a_failed_or_cancelled_call_frees_its_slot() -> None:
    pace = Pace(concurrency=1)

    async def fail() -> None:
        async with pace.slot(1):
            raise KeyError

    async def hang() -> None:
        async with pace.slot(1):
            await asyncio.Event().wait()

    async def use() -> None:
        with pytest.raises(KeyError):
            await fail()
        hanging, waiting = asyncio.create_task(hang()), asyncio.create_task(hang())
        await asyncio.sleep(0.01)
        waiting.cancel()
        hanging.cancel()
        await asyncio.wait([hanging, waiting])
        async with asyncio.timeout(30), pace.slot(1):
            pass

    asyncio.run(use())


@settings(deadline=None)
@given(st.integers(1, 6), st.integers(1, 25))
def test_no_minute_has_more_requests_than_it_may(limit: int, calls: int) -> None:
    time = FakeTime()
    times = begun(time, paced(time, requests_per_minute=limit), [1] * calls, [1] * calls)
    assert times == sorted(times)
    for start in times:
        assert sum(start <= other < start + 60 for other in times) <= limit
    assert times[-1] <= 60 * ((calls - 1) // limit) + 1e-6  # and no call waits longer


@settings(deadline=None)
@given(st.integers(10, 50), st.lists(st.integers(1, 60), min_size=1, max_size=15))
def test_no_minute_has_more_tokens_than_it_may(limit: int, sizes: list[int]) -> None:
    time = FakeTime()
    times = begun(
        time, paced(time, tokens_per_minute=limit), sizes, [min(n, limit) for n in sizes]
    )
    for start in times:
        taken = [
            min(size, limit)
            for size, at in zip(sizes, times, strict=True)
            if start <= at < start + 60
        ]
        assert sum(taken) <= limit


def test_tokens_that_a_call_did_not_take_are_there_for_the_next() -> None:
    time = FakeTime()
    pace = paced(time, tokens_per_minute=100, concurrency=1)
    times = begun(time, pace, [90] * 5, [10] * 5)
    assert times == [0.0, 0.0, 60.0, 60.0, 120.0]


def test_the_head_of_the_queue_sees_soon_that_tokens_came_back() -> None:
    time = FakeTime()
    pace = paced(time, tokens_per_minute=100)
    times = begun(time, pace, [90, 90], [5, 5])
    assert times[0] == 0.0
    assert times[1] <= 1.0


@pytest.mark.parametrize("name", ["concurrency", "requests_per_minute", "tokens_per_minute"])
def test_limits_are_positive(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} must be 1 or more, got 0"):
        Pace(**{name: 0})  # type: ignore[arg-type]
