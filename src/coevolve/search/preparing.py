"""Checking and preparing candidates before any trial of them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import numpy as np

from coevolve.core.outcomes import Usage
from coevolve.errors import CoevolveError, StopRun, titled
from coevolve.search.ahead import cap_ahead
from coevolve.search.budget import usage_row
from coevolve.search.candidate import Candidate
from coevolve.search.entry import Entry, Status
from coevolve.search.parts import Executor
from coevolve.search.recorder import Recorder, fault_json
from coevolve.search.retrying import AGAIN, RETRIES, backoff
from coevolve.search.trials import Blame, Fault, Prepared

Act = Callable[[Candidate], Awaitable[Prepared]]


class Preparation:
    """Checks and prepares candidates, several at once; those that fail are refused.

    Where money or tokens are capped, one at a time: nobody knows what preparing one costs.
    """

    def __init__(
        self, recorder: Recorder, executor: Executor, rng: np.random.Generator, pause: float
    ) -> None:
        budget = recorder.state.settings.budget
        self._recorder, self._executor, self._rng, self._pause = recorder, executor, rng, pause
        self._places = asyncio.Semaphore(1 if budget.priced else executor.capacity)
        self._spent: str | None = None

    async def run(self, entries: list[Entry]) -> None:
        """Make candidates ready, or as many as the budget allows."""
        try:
            async with asyncio.TaskGroup() as group:
                for entry in entries:
                    group.create_task(self._ready(entry))
        except* CoevolveError as errors:
            raise errors.exceptions[0] from None
        if self._spent is not None:
            self._recorder.exhausted(self._spent)

    async def _ready(self, entry: Entry) -> None:
        async with self._places:
            if entry.status == Status.PROPOSED:
                checked = await self._attempts(self._executor.check, entry.candidate)
                if checked is None:
                    return
                self._recorder.record("checked", self._body(entry, checked))
            if entry.status == Status.CHECKED:
                prepared = await self._attempts(self._executor.prepare, entry.candidate)
                if prepared is None:
                    return
                state = self._kept(prepared.state)
                self._recorder.record("prepared", self._body(entry, prepared) | {"state": state})

    async def _attempts(self, act: Act, candidate: Candidate) -> Prepared | None:
        """What comes of it after all attempts; nothing when a budget is spent before the first."""
        used, attempt, prepared = Usage(), 0, None
        capacity = self._executor.capacity
        while True:
            self._spent = self._spent or cap_ahead(self._recorder, capacity, used=used)
            if self._spent is not None:
                return None if prepared is None else replace(prepared, usage=used)
            prepared = await act(candidate)
            used += prepared.usage
            fault = prepared.fault
            if fault is None or fault.blame not in AGAIN or attempt == RETRIES:
                break
            await asyncio.sleep(backoff(attempt, self._rng, self._pause))
            attempt += 1
        if fault is not None:
            _check(candidate, fault)
        return replace(prepared, usage=used)

    def _body(self, entry: Entry, prepared: Prepared) -> dict[str, object]:
        body: dict[str, object] = {
            "candidate": entry.candidate.name,
            "fault": fault_json(prepared.fault),
            "usage": usage_row(prepared.usage),
        }
        if prepared.trace is not None:
            body["trace"] = self._recorder.journal.put(prepared.trace.encode())
        return body

    def _kept(self, text: str | None) -> str | None:
        return None if text is None else self._recorder.journal.put(text.encode(), durable=True)


def _check(candidate: Candidate, fault: Fault) -> None:
    """Stop for what only the operator can mend: any fault of a starting harness is."""
    if fault.blame == Blame.OPERATOR or candidate.round == 0:
        what = "starting harness" if candidate.round == 0 else "candidate"
        why = titled(fault.kind, fault.reason).rstrip(".")
        text = f"{what} {candidate.name!r} cannot be evaluated: {why}. {fault.advice}".rstrip()
        if fault.blame == Blame.CANDIDATE:
            text += " Mend its files, remove the folder of this run, and run again."
        raise StopRun(text, resumable=fault.blame != Blame.CANDIDATE)
