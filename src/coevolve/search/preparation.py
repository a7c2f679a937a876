"""Checks and preparations of candidates on an executor: retries, controls, and who is refused."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from coevolve.core.outcomes import Usage
from coevolve.errors import CoevolveError, StopRun, titled
from coevolve.search.attempts import Attempts
from coevolve.search.candidate import Candidate
from coevolve.search.controls import NOT_ANSWERED, OUTAGE, WINDOW, blamed
from coevolve.search.run_state import CandidateState, Status
from coevolve.search.trials import Blame, Fault, Prepared, error_in

Act = Callable[[Candidate], Awaitable[Prepared]]
"""The check or the preparation of an executor."""


class Preparation:
    """Checks and prepares candidates, several at once; those that fail are refused.

    If the infrastructure fails, a candidate is tried again a minute later. If it fails again, a
    control decides: a starting harness is checked or prepared again. If that works, the candidate
    is refused. Otherwise the service is down: the run waits until it works, and tries again. It
    stops if that takes more than an hour.

    With a cap on tokens or dollars it handles one at a time, because the cost is unknown.
    """

    def __init__(self, attempts: Attempts) -> None:
        self._attempts, self._recorder = attempts, attempts.recorder
        self._places = asyncio.Semaphore(1 if attempts.priced else attempts.executor.capacity)
        self._spent: str | None = None

    async def run(self, candidates: list[CandidateState]) -> None:
        """Make candidates ready, or as many as the budget allows."""
        if (cap := await self.made_ready(candidates)) is not None:
            self._recorder.exhausted(cap)

    async def made_ready(self, candidates: list[CandidateState]) -> str | None:
        """Make candidates ready; return the cap that ended it before the last one, if any."""
        try:
            async with asyncio.TaskGroup() as group:
                for known in candidates:
                    group.create_task(self._make_ready(known))
        except* CoevolveError as errors:
            raise errors.exceptions[0] from None
        return self._spent

    async def _make_ready(self, known: CandidateState) -> None:
        executor = self._attempts.executor
        async with self._places:
            if known.status == Status.PROPOSED:
                checked = await self._attempt(executor.check, known.candidate)
                if checked is not None:
                    self._recorder.record("checked", self._body(known, checked))
            if known.status == Status.CHECKED:
                prepared = await self._attempt(executor.prepare, known.candidate)
                if prepared is not None:
                    text, put = prepared.state, self._recorder.journal.put
                    state = None if text is None else put(text.encode(), durable=True)
                    body = {**self._body(known, prepared), "state": state}
                    self._recorder.record("prepared", body)

    async def _attempt(self, act: Act, candidate: Candidate) -> Prepared | None:
        """The last result of all attempts; None when the budget is spent before the first."""
        prepared = await self._tried(act, candidate, Usage())
        if prepared is not None and self._doubtful(candidate, prepared.fault):
            await asyncio.sleep(WINDOW * self._attempts.retries.pause)
            prepared = await self._tried(act, candidate, prepared.usage) or prepared
            if self._doubtful(candidate, prepared.fault):
                prepared = await self._decided(act, candidate, prepared)
        if prepared is not None and prepared.fault is not None and self._spent is None:
            _check_candidate(candidate, prepared.fault, prepared.trace)
        return prepared

    def _doubtful(self, candidate: Candidate, fault: Fault | None) -> bool:
        control = candidate.round > 0 and bool(self._recorder.state.starts)
        return fault is not None and fault.unexplained and control and self._spent is None

    async def _tried(self, act: Act, candidate: Candidate, used: Usage) -> Prepared | None:
        """The last result of up to three attempts, with what was `used` before."""
        attempt, prepared = 0, None
        while True:
            self._spent = self._spent or self._attempts.cap_ahead(used=used)
            if self._spent is not None:
                break
            prepared = await act(candidate)
            used += prepared.usage
            if (wait := self._attempts.wait(prepared.fault, attempt)) is None:
                break
            await asyncio.sleep(wait)
            attempt += 1
        return None if prepared is None else replace(prepared, usage=used)

    async def _decided(self, act: Act, candidate: Candidate, prepared: Prepared) -> Prepared:
        """The result of a candidate for which the infrastructure failed every time."""
        state = self._recorder.state
        start, was_down = state.candidates[state.starts[0]].candidate, False
        for pauses in (*OUTAGE, None):
            control = await self._tried(act, start, prepared.usage)
            if control is None:
                return prepared
            prepared = replace(prepared, usage=control.usage)
            if control.fault is None or control.fault.blame not in NOT_ANSWERED:
                break
            if pauses is None:
                raise self._down(candidate, start, prepared.fault)
            was_down = True
            await asyncio.sleep(pauses * self._attempts.retries.pause)
        if was_down:
            prepared = await self._tried(act, candidate, prepared.usage) or prepared
        if not self._doubtful(candidate, prepared.fault):
            return prepared
        assert prepared.fault is not None
        return replace(prepared, fault=blamed(prepared.fault, f"but {start.name} got an answer"))

    def _down(self, candidate: Candidate, start: Candidate, fault: Fault | None) -> StopRun:
        why = "" if fault is None else titled(fault.kind, fault.reason).rstrip(".")
        return StopRun(
            f"candidate {candidate.name!r} cannot be evaluated now: {why}. The starting harness "
            f"{start.name!r} has failed for an hour too. Fix the cause, then resume the run."
        )

    def _body(self, known: CandidateState, prepared: Prepared) -> dict[str, object]:
        body: dict[str, object] = {
            "candidate": known.candidate.name,
            "fault": None if prepared.fault is None else prepared.fault.to_json(),
            "usage": prepared.usage.row,
        }
        if prepared.trace is not None:
            body["trace"] = self._recorder.journal.put(prepared.trace.encode())
        return body


def _check_candidate(candidate: Candidate, fault: Fault, trace: str | None) -> None:
    """Stop for a fault that only the operator can fix, or for any of a starting harness."""
    if fault.blame == Blame.OPERATOR or candidate.round == 0:
        what = "starting harness" if candidate.round == 0 else "candidate"
        why = titled(fault.kind, fault.reason).rstrip(".")
        text = f"{what} {candidate.name!r} cannot be evaluated: {why}. {fault.advice}".rstrip()
        if fault.blame == Blame.CANDIDATE:
            text += " Fix its files, remove the folder of this run, and run again."
        details = error_in(trace)
        raise StopRun(text, resumable=fault.blame != Blame.CANDIDATE, details=details)
