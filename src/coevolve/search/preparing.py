"""Checking and preparing candidates before any trial of them."""

import asyncio
from collections.abc import Awaitable, Callable

import numpy as np

from coevolve.errors import CoevolveError, StopRun
from coevolve.search.budget import usage_row
from coevolve.search.candidate import Candidate
from coevolve.search.entry import Entry, Status
from coevolve.search.parts import Executor
from coevolve.search.recorder import Recorder, fault_json
from coevolve.search.retrying import RETRIES, backoff
from coevolve.search.trials import Blame, Prepared

Act = Callable[[Candidate], Awaitable[Prepared]]


async def make_ready(
    recorder: Recorder,
    entries: list[Entry],
    executor: Executor,
    rng: np.random.Generator,
    pause: float,
) -> None:
    """Check and prepare candidates, several at once; those that fail are refused."""
    places = asyncio.Semaphore(executor.capacity)

    async def attempt(act: Act, candidate: Candidate) -> Prepared:
        for attempt in range(RETRIES + 1):
            async with places:
                prepared = await act(candidate)
            fault = prepared.fault
            if fault is not None and fault.blame == Blame.OPERATOR:
                text = f"candidate {candidate.name!r}: {fault.kind}: {fault.reason} {fault.advice}"
                raise StopRun(text.rstrip())
            if fault is None or fault.blame != Blame.INFRASTRUCTURE or attempt == RETRIES:
                return prepared
            await asyncio.sleep(backoff(attempt, rng, pause))
        raise AssertionError

    async def ready(entry: Entry) -> None:
        if entry.status == Status.PROPOSED:
            recorder.record(
                "checked", _body(entry, await attempt(executor.check, entry.candidate))
            )
        if entry.status == Status.CHECKED:
            prepared = await attempt(executor.prepare, entry.candidate)
            text = prepared.state
            state = None if text is None else recorder.journal.put(text.encode())
            recorder.record("prepared", _body(entry, prepared) | {"state": state})

    try:
        async with asyncio.TaskGroup() as group:
            for entry in entries:
                group.create_task(ready(entry))
    except* CoevolveError as errors:
        raise errors.exceptions[0] from None


def _body(entry: Entry, prepared: Prepared) -> dict[str, object]:
    return {
        "candidate": entry.candidate.name,
        "fault": fault_json(prepared.fault),
        "usage": usage_row(prepared.usage),
    }
