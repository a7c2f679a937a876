"""What a proposer is, and a check that one keeps to it."""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable

from coevolve.errors import CandidateError, InputError, nearest
from coevolve.search.candidate import check_files
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
    "check_proposer",
]


async def check_proposer(proposer: Proposer, view: View, count: int = 1) -> Proposed:
    """Ask a proposer once, as the engine does, and check what it hands over; for tests.

    Raises:
        InputError: It is no proposer, or hands over what is no proposal, too many of them, or one
            with a parent that is not in the view.
    """
    source = type(proposer).__name__
    if not isinstance(proposer, Proposer):
        raise InputError(f"{source} has no method propose(view, count).")
    made = as_proposed(await proposer.propose(view, count), source=source)
    if len(made.proposals) > count:
        raise InputError(
            f"{source} returned {len(made.proposals)} proposals, but was asked for {count}."
        )
    known = {standing.candidate.name for standing in view.standings}
    for proposal in made.proposals:
        try:
            check_files(proposal.files, proposal.name)
        except CandidateError as error:
            raise InputError(f"{source}: {error}") from error
        for parent in proposal.parents:
            if parent not in known:
                raise InputError(
                    f"{source}: the parent {parent!r} of {proposal.name!r} is no candidate of "
                    f"the run.{nearest(parent, known)}"
                )
    return made


async def in_thread[**P, T](function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """What a function returns that may take minutes.

    The thread is a daemon, unlike those of `asyncio.to_thread`: a run that is interrupted ends
    at once and not when the function does.

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
