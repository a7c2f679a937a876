"""Controls: starting harnesses that run tasks again, to tell whether a service answers."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from coevolve.core.outcomes import Missing, Usage
from coevolve.errors import StopRun, titled
from coevolve.search.attempts import Attempts
from coevolve.search.trials import Blame, Fault, Result, Trial

NOT_ANSWERED = (Blame.INFRASTRUCTURE, Blame.OPERATOR)
"""Blames of a control that proves nothing against a candidate."""
WINDOW = 60
"""Pauses before trials in doubt are repeated, and before their controls: a minute, for which
services count requests."""
OUTAGE = (60, 120, 240, 480, 900, 900, 900)
"""Pauses between the controls of an outage: an hour in all."""


def blamed(fault: Fault, why: str) -> Fault:
    """The fault of a trial that others do not meet."""
    reason = f"{fault.reason.rstrip('.')}, {why}"
    return replace(fault, blame=Blame.DOUBTFUL, reason=reason, shared=False)


class Controls:
    """Decides trials of one candidate that failed for reasons of the infrastructure.

    Args:
        attempts: Where trials run, and when they are repeated.
        doubts: The trials, with their last results.

    Attributes:
        spent: The cap that another control might exceed, if any; nothing is decided then.

    Raises:
        StopRun: No starting harness has a score.
    """

    def __init__(self, attempts: Attempts, doubts: Sequence[tuple[Trial, Result]]) -> None:
        self._attempts, self._doubts = attempts, doubts
        self._trials = self._chosen()
        self._answers: dict[str, bool] = {}
        self._used = Usage()
        self.spent: str | None = None

    async def quiet(self) -> None:
        """Wait until a rate limit that the candidate has used up is over."""
        await asyncio.sleep(WINDOW * self._attempts.retries.pause)

    async def up(self) -> bool:
        """Whether a starting harness gets an answer on one of two tasks."""
        for task in list(self._trials)[:2]:
            self._answers[task] = await self._answered(self._trials[task])
        return any(self._answers.values())

    async def back(self) -> str:
        """Wait for a service that is down; return the starting harness that gets an answer.

        Empty if the budget does not allow another control.

        Raises:
            StopRun: It gets none within an hour.
        """
        for pauses in OUTAGE:
            if self.spent is not None:
                return ""
            await asyncio.sleep(pauses * self._attempts.retries.pause)
            if await self.up():
                return next(iter(self._trials.values())).candidate
        trial, result = self._doubts[0]
        assert result.fault is not None
        why = titled(result.fault.kind, result.fault.reason).rstrip(".")
        raise StopRun(
            f"candidate {trial.candidate!r}, task {trial.task!r}: {why}. Starting harnesses got "
            "no answer for an hour either. Fix the cause, then resume the run."
        )

    async def try_tasks(self) -> bool:
        """Run a control on every task in doubt that has one; False if the budget is spent.

        Where it gets no answer, it runs once more after a minute: the service answered other
        controls, so it may still have worked for the candidate.
        """
        doubted = dict.fromkeys(trial.task for trial, _ in self._doubts)
        open_tasks = [task for task in doubted if task in self._trials]
        for task in open_tasks:
            if task not in self._answers:
                self._answers[task] = await self._answered(self._trials[task])
        if again := [task for task in open_tasks if not self._answers[task]]:
            await self.quiet()
            for task in again:
                self._answers[task] = await self._answered(self._trials[task])
        return self.spent is None

    def verdict(self, trial: Trial, result: Result) -> Fault:
        """The fault of a trial: shared if the control on its task got no answer either."""
        assert result.fault is not None
        if not self._answers.get(trial.task, True):
            return replace(result.fault, shared=True)
        start = self._trials.get(trial.task, next(iter(self._trials.values()))).candidate
        return blamed(result.fault, f"but {start} got an answer")

    @property
    def unrecorded(self) -> Usage:
        """What the controls have cost that no result has paid for yet."""
        return self._used

    def paid(self, result: Result) -> Result:
        """A result that also pays for the controls so far."""
        usage, self._used = result.usage + self._used, Usage()
        return replace(result, usage=usage)

    async def _answered(self, control: Trial) -> bool:
        """Whether a starting harness gets an answer, in as many attempts as a trial has."""
        executor, retries = self._attempts.executor, self._attempts.retries
        recorder = self._attempts.recorder
        candidate = recorder.state.candidates[control.candidate].candidate
        for attempt in range(2 * retries.attempts):
            used = sum((result.usage for _, result in self._doubts), self._used)
            self.spent = self.spent or self._attempts.cap_ahead(used=used)
            if self.spent is not None:
                return False
            found = await executor.run(candidate, replace(control, attempt=attempt))
            self._used += found.usage
            if found.fault is None or found.fault.blame not in NOT_ANSWERED:
                return True
            wait = retries.wait(attempt % retries.attempts, self._attempts.rng)
            await asyncio.sleep(wait or 0.0)
        return False

    def _chosen(self) -> dict[str, Trial]:
        """A control for each task that a starting harness has a score on, those in doubt first."""
        state = self._attempts.recorder.state
        found: dict[str, Trial] = {}
        for name in state.starts:
            for task, score in state.selector.scores(name).items():
                if not isinstance(score, Missing):
                    own = state.candidates[name].state
                    found.setdefault(task, Trial(candidate=name, task=task, state=own))
        if not found:
            raise StopRun("no starting harness has a score; fix the cause, then resume the run.")
        doubted = {trial.task for trial, _ in self._doubts}
        return {task: found[task] for task in sorted(found, key=lambda task: task not in doubted)}
