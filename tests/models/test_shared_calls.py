"""Equal calls at the same time are made once."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from coevolve.models.gateway import SharedCalls
from coevolve.models.model_errors import ModelUnavailable


class Calls:
    """Counts calls, which end when they may."""

    def __init__(self) -> None:
        self.made = self.cancelled = 0
        self.may_end = asyncio.Event()

    async def __call__(self) -> str:
        self.made += 1
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return "yes"


def shared_by(use: Callable[[SharedCalls[str], Calls], Awaitable[None]]) -> None:
    async def whole() -> None:
        shared: SharedCalls[str] = SharedCalls()
        try:
            async with asyncio.timeout(30):
                await use(shared, Calls())
        finally:
            await shared.close()

    asyncio.run(whole())


async def waiting(shared: SharedCalls[str], calls: Calls, many: int) -> list[asyncio.Task[object]]:
    tasks: list[asyncio.Task[object]] = [
        asyncio.create_task(shared.join("k", calls)) for _ in range(many)
    ]
    await asyncio.sleep(0.01)
    return tasks


def test_all_get_the_one_answer_and_one_of_them_is_first() -> None:
    async def use(shared: SharedCalls[str], calls: Calls) -> None:
        tasks = await waiting(shared, calls, 5)
        calls.may_end.set()
        answers = await asyncio.gather(*tasks)
        assert calls.made == 1
        assert sorted(answers) == [("yes", False)] * 4 + [("yes", True)]  # type: ignore[type-var]
        assert await shared.join("k", calls) == ("yes", True)
        assert calls.made == 2

    shared_by(use)


def test_who_came_first_may_leave() -> None:
    async def use(shared: SharedCalls[str], calls: Calls) -> None:
        first, second = await waiting(shared, calls, 2)
        first.cancel()
        await asyncio.wait([first])
        calls.may_end.set()
        assert await second == ("yes", True)
        assert (calls.made, calls.cancelled) == (1, 0)

    shared_by(use)


def test_a_call_without_waiting_callers_ends_and_the_next_is_another() -> None:
    async def use(shared: SharedCalls[str], calls: Calls) -> None:
        tasks = await waiting(shared, calls, 2)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        again = asyncio.create_task(shared.join("k", calls))
        await asyncio.sleep(0.01)
        assert (calls.made, calls.cancelled) == (2, 1)
        calls.may_end.set()
        assert await again == ("yes", True)

    shared_by(use)


def test_all_get_the_error_and_the_next_call_is_another() -> None:
    made = 0

    async def fail() -> str:
        nonlocal made
        made += 1
        await asyncio.sleep(0)
        raise ModelUnavailable("busy")

    async def use(shared: SharedCalls[str], calls: Calls) -> None:
        both = await asyncio.gather(
            shared.join("k", fail), shared.join("k", fail), return_exceptions=True
        )
        assert [str(error) for error in both] == ["busy", "busy"]
        with pytest.raises(ModelUnavailable):
            await shared.join("k", fail)
        assert made == 2

    shared_by(use)


def test_closing_tells_those_who_wait() -> None:
    async def use(shared: SharedCalls[str], calls: Calls) -> None:
        tasks = await waiting(shared, calls, 2)
        await shared.close()
        for task in tasks:
            with pytest.raises(ModelUnavailable, match="closed"):
                await task

    shared_by(use)
