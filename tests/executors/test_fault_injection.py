"""Injected faults hit the same attempts every time, as many as asked for."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from coevolve.errors import InputError
from coevolve.executors.in_process import InProcessExecutor
from coevolve.executors.local import LocalExecutor
from coevolve.search.candidate import Candidate
from coevolve.search.trials import Blame, Trial
from coevolve.testing.fault_injection import FaultyExecutor, fails
from tests.executors.projects import Project, trial, with_executor
from tests.executors.test_attempts import CANDIDATE, Giving


def faults(rate: float, seed: int) -> list[bool]:
    async def use(executor: Any) -> list[bool]:
        assert executor.capacity == 3
        assert (await executor.check(CANDIDATE)).fault is None
        assert (await executor.prepare(CANDIDATE)).fault is None
        trials = [trial("t", number, attempt=a) for number in range(300) for a in (0, 1)]
        results = [await executor.run(CANDIDATE, one) for one in trials]
        for result in results:
            assert result.fault is None or result.fault.blame is Blame.INFRASTRUCTURE
        return [result.fault is not None for result in results]

    inline = InProcessExecutor(Giving(1.0), workers=3)
    return with_executor(FaultyExecutor(inline, rate=rate, seed=seed), use)


def test_the_share_is_as_asked_and_the_attempts_follow_from_the_seed() -> None:
    assert not any(faults(0, seed=1))
    assert all(faults(1, seed=1))
    some = faults(0.2, seed=1)
    assert 80 <= sum(some) <= 160
    assert faults(0.2, seed=1) == some
    assert faults(0.2, seed=2) != some
    assert some[0::2] != some[1::2]


def test_a_rate_is_a_share() -> None:
    with pytest.raises(InputError, match=r"rate must be in \[0, 1\], got 1.5"):
        FaultyExecutor(InProcessExecutor(Giving(1.0)), rate=1.5, seed=0)


class KillingExecutor(FaultyExecutor):
    """Makes a share of attempts fail by killing their workers.

    An attempt that ends before the signal arrives counts as failed too, so that a run ends the
    same way every time.

    Args:
        executor: An executor with worker processes.
        rate: The share of attempts that fail, in [0, 1].
        seed: Decides which attempts fail.
    """

    def __init__(self, executor: LocalExecutor, *, rate: float, seed: int) -> None:
        super().__init__(executor, rate=rate, seed=seed)
        self._killable = executor

    async def _spoil(self, candidate: Candidate, trial: Trial) -> None:
        attempt = asyncio.ensure_future(self._killable.run(candidate, trial))
        try:
            while not attempt.done():
                worker = self._killable.worker_of(trial)
                if worker is not None:
                    os.kill(worker, signal.SIGKILL)
                    break
                await asyncio.sleep(0.001)
            await attempt
        finally:
            attempt.cancel()
            await asyncio.wait([attempt])


def test_killed_workers_are_replaced_and_the_other_trials_run(tmp_path: Path) -> None:
    project = Project(tmp_path)
    candidate = project.contents.candidate()
    trials = [trial("trial", number) for number in range(10)]
    expected = [fails(one, rate=0.4, seed=3) for one in trials]
    assert 2 <= sum(expected) <= 8

    async def use(executor: Any) -> None:
        for one, failing in zip(trials, expected, strict=True):
            result = await executor.run(candidate, one)
            assert (result.fault is not None) == failing
            assert failing or result.score == one.trial / 10

    with_executor(KillingExecutor(project.executor(), rate=0.4, seed=3), use)
