"""The interface of proposers, and threads for slow functions."""

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Callable
from typing import Any

from coevolve.search.proposal import (
    Broken,
    Proposal,
    Proposed,
    Proposer,
    Repairer,
    Solvability,
    Standing,
    View,
    as_proposal,
    as_proposed,
)

__all__ = [
    "Broken",
    "Proposal",
    "Proposed",
    "Proposer",
    "Repairer",
    "Solvability",
    "Standing",
    "View",
    "as_proposal",
    "as_proposed",
    "call",
    "in_thread",
    "takes",
]


async def in_thread[**P, T](function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """The result of a slow function, run in a thread.

    The thread is a daemon, unlike those of `asyncio.to_thread`: an interrupted run ends at once,
    without waiting for the function.

    >>> asyncio.run(in_thread(sum, [1, 2]))
    3
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)  # type: ignore[arg-type]
        else:
            future.set_exception(error)

    def work() -> None:
        result, failure = None, None
        try:
            result = context.run(function, *arguments, **named)
        except BaseException as error:
            failure = error
            if isinstance(error, StopIteration):
                failure = RuntimeError("the function raised StopIteration")
        with contextlib.suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=work, name=f"coevolve-{function!r}", daemon=True).start()
    return await future


async def call(function: Callable[..., Any], *arguments: object) -> Any:
    """The result of an `async` function, or of a plain one in a thread."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    given = await in_thread(function, *arguments)
    return await given if inspect.isawaitable(given) else given


def takes(function: Callable[..., Any], count: int) -> bool:
    """Whether a function can be called with this number of arguments."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # it has no signature
        return True
    return True
