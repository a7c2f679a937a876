"""Evaluating a wave: longest trials first, as many at once as the executor can take."""

import asyncio
import heapq
import math
from collections.abc import Callable

import numpy as np

from coevolve.errors import StopRun
from coevolve.search.ahead import cap_ahead
from coevolve.search.alarms import check_operator
from coevolve.search.parts import Executor
from coevolve.search.recorder import Recorder
from coevolve.search.retrying import AGAIN, RETRIES, backoff
from coevolve.search.state import RunState
from coevolve.search.trials import Cell, Result, Trial
from coevolve.search.wave import Wave

Order = Callable[[RunState, Cell], float]
"""Which trials start first: those of the least number, in the order they were asked if equal."""


class Evaluation:
    """The trials of one wave, until all are recorded or a budget is spent.

    Args:
        recorder: Where outcomes go.
        wave: The trials.
        executor: Where they run.
        rng: Jitter of the waits between attempts.
        pause: Seconds of the first such wait, which doubles with every attempt.
        order: Which trials start first.
    """

    def __init__(
        self,
        recorder: Recorder,
        wave: Wave,
        executor: Executor,
        rng: np.random.Generator,
        pause: float,
        order: Order,
        proposing: Callable[[], bool],
    ) -> None:
        self._recorder, self._wave, self._executor = recorder, wave, executor
        self._rng, self._pause, self._proposing = rng, pause, proposing
        self._queue = [(order(recorder.state, cell), n, cell) for n, cell in enumerate(wave.open)]
        heapq.heapify(self._queue)
        self._later: list[tuple[float, int, Cell]] = []
        self._running: dict[asyncio.Task[Result], Trial] = {}
        self._spent: str | None = None

    @property
    def under_way(self) -> int:
        """Trials that run now."""
        return len(self._running)

    async def run(self) -> None:
        """Evaluate everything, or as much as the budget allows."""
        try:
            while self._start() or self._running or (self._later and not self._spent):
                self._take_all(await self._finished())
        finally:
            await self._cancel()
        if self._spent is not None:
            self._recorder.exhausted(self._spent)

    def _start(self) -> bool:
        """Start as many trials as may run at once."""
        self._put_back()
        while self._queue and len(self._running) < self._places() and not self._spent:
            self._spent = cap_ahead(
                self._recorder,
                self._executor.capacity,
                self.under_way,
                self._wave,
                proposal=self._proposing(),
            )
            if self._spent is None:
                trial = self._trial(heapq.heappop(self._queue)[-1])
                candidate = self._recorder.state.entries[trial.candidate].candidate
                task = asyncio.create_task(self._executor.run(candidate, trial))
                self._running[task] = trial
        return bool(self._running)

    def _places(self) -> int:
        """How many trials may run at once: one, while a cap binds and no price is known."""
        state = self._recorder.state
        known = state.evaluating.trials + state.evaluating.failed_attempts
        return 1 if state.settings.budget.priced and not known else self._executor.capacity

    async def _finished(self) -> set[asyncio.Task[Result]]:
        """The trials that are done, when there are some or others wait to be tried again."""
        wait = None
        if self._later and not self._spent:
            wait = max(0.0, self._later[0][0] - asyncio.get_running_loop().time())
        if not self._running:
            await asyncio.sleep(wait or 0.0)
            return set()
        first = asyncio.FIRST_COMPLETED
        return (await asyncio.wait(self._running, timeout=wait, return_when=first))[0]

    def _put_back(self) -> None:
        """Queue the failed trials whose pause is over, before all others."""
        now = asyncio.get_running_loop().time()
        while self._later and self._later[0][0] <= now:
            _, number, cell = heapq.heappop(self._later)
            heapq.heappush(self._queue, (-math.inf, number, cell))

    async def _cancel(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._running.clear()

    def _trial(self, cell: Cell) -> Trial:
        return Trial(
            candidate=cell.candidate,
            task=cell.task,
            trial=cell.trial,
            attempt=self._wave.open[cell],
            split=self._wave.split,
            state=self._recorder.state.entries[cell.candidate].state,
        )

    def _take_all(self, tasks: set[asyncio.Task[Result]]) -> None:
        """Record what is done, also where one of it stops the run."""
        stop = None
        for task in tasks:
            try:
                self._take(self._running.pop(task), task.result())
            except StopRun as error:
                stop = error
        if stop is not None:
            raise stop

    def _take(self, trial: Trial, result: Result) -> None:
        fault = result.fault
        if fault is None or fault.blame not in AGAIN or trial.attempt >= RETRIES:
            if fault is not None:
                check_operator(self._recorder.state, trial, fault)
            self._recorder.outcome(trial, result)
            return
        self._recorder.failed(trial, result)
        wait = backoff(trial.attempt, self._rng, self._pause)
        when = asyncio.get_running_loop().time() + wait
        heapq.heappush(self._later, (when, len(self._later), trial.cell))


def longest_first(state: RunState, cell: Cell) -> float:
    """Longest first, in steps of a factor 2, within which candidates keep together.

    A worker that has a candidate ready is worth more than the last few percent of order.
    """
    return -math.floor(math.log2(max(state.pace.seconds(cell.task), 0.5)))
