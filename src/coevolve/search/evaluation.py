"""Trials on an executor: order, retries, controls, budget, and when to stop."""

import asyncio
import heapq
import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

from coevolve.core.outcomes import NO_USAGE, Missing, Usage
from coevolve.errors import EmptyRounds, StopRun, titled
from coevolve.search.attempts import Attempts
from coevolve.search.controls import WINDOW, Controls, blamed
from coevolve.search.run_state import RunRound, RunState, Status
from coevolve.search.trials import Blame, Cell, Fault, Result, Trial, error_in
from coevolve.search.wave import Wave

LOOK_SECONDS = 1.0
"""How often an executor whose capacity changes is asked whether it has grown."""
EMPTY_ROUNDS = 3
"""A run stops after this many rounds in a row without any candidate."""


def check_operator(state: RunState, trial: Trial, fault: Fault, trace: str | None = None) -> None:
    """Stop for a fault that only the operator can fix.

    An evaluator that fails on a starting harness is broken. If it fails only on a candidate, the
    candidate broke it. The `trace` has the traceback, if there is one.
    """
    start = state.candidates[trial.candidate].candidate.round == 0
    evaluator = fault.blame in (Blame.BENCHMARK, Blame.DOUBTFUL)
    if fault.blame == Blame.OPERATOR or (evaluator and start):
        where = f"candidate {trial.candidate!r}, task {trial.task!r}"
        why = titled(fault.kind, fault.reason).rstrip(".")
        raise StopRun(f"{where}: {why}. {fault.advice}".rstrip(), details=error_in(trace))


def to_rerun(state: RunState) -> list[str]:
    """Starting harnesses to run once more, because too many of their scores are missing.

    Nothing can be estimated without a score in every pool. If one rerun in this session was not
    enough, the run stops; when it is resumed, it tries again.
    """
    wave = state.wave
    if wave is None or wave.kind != "start":
        return []
    bare = wave.bare()
    if bare and wave.reopened_at > state.session_at:
        why = wave.why_missing(bare[0]).rstrip(".")
        raise StopRun(
            f"starting harness {bare[0]!r} has no score in some pool: {why}. Fix the cause, then "
            "resume the run."
        )
    return bare or [name for name in wave.thin() if name not in wave.again]


def check_alive(state: RunState, current: RunRound | None) -> None:
    """Stop if no trial of a round has a score, before the next round fails as well.

    Only a round that was evaluated in this session counts: when the run is resumed, it continues.
    """
    if current is None or current.told_at < state.session_at:
        return
    if 0 < current.trials == current.missing:
        scores = (
            score
            for name in current.names
            if state.candidates[name].status == Status.EVALUATED
            for score in state.selector.scores(name).values()
        )
        why = next((s.reason for s in scores if isinstance(s, Missing)), "").rstrip(".")
        raise StopRun(
            f"no trial of round {current.number} has a score: {why}. Fix the cause, then resume "
            "the run."
        )


def check_proposer(state: RunState) -> None:
    """Stop after several rounds without any candidate, unless the run is over and has some."""
    left = state.settings.rounds - len(state.rounds)
    if state.empty_rounds < EMPTY_ROUNDS or (left <= 0 and state.selector.candidates):
        return
    last = state.rounds[-1]
    reasons = [last.note, *(state.candidates[name].reason for name in last.names)]
    why = " ".join(dict.fromkeys(filter(None, reasons))).rstrip(".") or "nothing was proposed"
    rest = "1 round is left" if left == 1 else f"{left} rounds are left"
    then = rest if left else "no round is left; start a new run"
    raise EmptyRounds(
        f"{state.empty_rounds} rounds in a row had no candidate that could be evaluated. The last "
        f"round: {why}. Fix the proposer; {then}.",
        resumable=left > 0,
    )


Order = Callable[[RunState, Cell], float]
"""Which trials start first: those with the lowest number, then in the order they were asked."""


def longest_first(state: RunState, cell: Cell) -> float:
    """Longest first, in steps of a factor 2; within a step, trials of a candidate stay together.

    Reusing a worker that has a candidate ready saves more than a finer order would.
    """
    return -math.floor(math.log2(max(state.durations.expected(cell.task), 0.5)))


class Evaluation:
    """The trials of one wave, until all are recorded or a budget is spent.

    A trial of a candidate that fails for reasons of the infrastructure, in a way that a candidate
    may bring about, is repeated a minute after all others have ended, with those of its candidate
    alone. If it fails again, a control decides (`Controls`): a starting harness runs the task
    again that it had a score on. If it gets no answer either, the trial is missing; otherwise it
    counts as failed. If a starting harness gets no answer on any task, the service is down: the
    trial is repeated as soon as it is back.

    Args:
        attempts: Where trials run, and when they are repeated.
        wave: The trials.
        order: Which trials start first.
        proposing: Whether a proposal is under way.
        among: The trials to run, if not all of the wave.
    """

    def __init__(
        self,
        attempts: Attempts,
        wave: Wave,
        order: Order,
        proposing: Callable[[], bool],
        among: Collection[Cell] | None = None,
    ) -> None:
        self._attempts, self._recorder = attempts, attempts.recorder
        self._wave, self._proposing = wave, proposing
        state = self._recorder.state
        enough = attempts.retries.attempts
        rest = {c: tried for c, tried in wave.open.items() if among is None or c in among}
        fresh = [cell for cell, tried in rest.items() if tried < enough]
        self._queue = [(order(state, cell), n, cell) for n, cell in enumerate(fresh)]
        heapq.heapify(self._queue)
        self._again = [cell for cell, tried in rest.items() if tried >= enough]
        self._later: list[tuple[float, int, Cell]] = []
        self._running: dict[asyncio.Task[Result], Trial] = {}
        self._doubts: list[tuple[Trial, Result]] = []
        self._control = ""
        self._controls: Controls | None = None
        self._spent: str | None = None

    @property
    def under_way(self) -> int:
        """Trials that run now."""
        return len(self._running)

    async def run(self) -> None:
        """Evaluate everything, or as much as the budget allows."""
        try:
            await self._run_queue()
            while self._again and self._spent is None:
                await self._decide()
                await self._run_queue()
        finally:
            await self._cancel()
        if self._spent is not None:
            self._recorder.exhausted(self._spent)

    async def _run_queue(self) -> None:
        while self._goes_on():
            self._take_all(await self._finished())

    def _goes_on(self) -> bool:
        """Start what may start; False when there is nothing left to wait for."""
        self._refill()
        waiting = bool(self._later or self._beside()) and not self._spent
        return self._start() or waiting

    def _refill(self) -> None:
        """Add trials, where a search adds some while others run."""

    def _could_use_places(self) -> bool:
        """Whether there is something to start if the executor grows."""
        return bool(self._queue)

    def _beside(self) -> Collection[asyncio.Task[None]]:
        """What else runs, after which there may be more trials."""
        return ()

    def _start(self) -> bool:
        """Start as many trials as may run at once."""
        self._requeue()
        executor = self._attempts.executor
        while self._queue and len(self._running) < self._places() and not self._spent:
            self._spent = self._attempts.cap_ahead(
                self.under_way, proposal=self._proposing(), used=self._unrecorded()
            )
            if self._spent is None:
                trial = self._trial(heapq.heappop(self._queue)[-1])
                candidate = self._recorder.state.candidates[trial.candidate].candidate
                self._running[asyncio.create_task(executor.run(candidate, trial))] = trial
        return bool(self._running)

    def _unrecorded(self) -> Usage:
        """What trials in doubt and their controls have cost, which is recorded when they end."""
        controls = NO_USAGE if self._controls is None else self._controls.unrecorded
        return sum((result.usage for _, result in self._doubts), controls)

    def _requeue(self) -> None:
        """Queue the failed trials whose wait is over, before all others."""
        now = asyncio.get_running_loop().time()
        while self._later and self._later[0][0] <= now:
            _, number, cell = heapq.heappop(self._later)
            heapq.heappush(self._queue, (-math.inf, number, cell))

    def _places(self) -> int:
        """How many trials may run at once; one if a cap needs their cost and none is known yet."""
        if self._attempts.priced:
            spent = self._recorder.state.evaluating
            if not spent.trials + spent.failed_attempts:
                return 1
        return self._attempts.executor.capacity

    def _trial(self, cell: Cell) -> Trial:
        return Trial(
            candidate=cell.candidate,
            task=cell.task,
            trial=cell.trial,
            attempt=self._wave.open[cell],
            split=self._wave.split,
            state=self._recorder.state.candidates[cell.candidate].state,
        )

    async def _finished(self) -> list[asyncio.Task[Result]]:
        """The trials that are done, in the order they began.

        None when it is time to repeat a failed one, or something else has ended.
        """
        wait = None
        if self._later and not self._spent:
            wait = max(0.0, self._later[0][0] - asyncio.get_running_loop().time())
        others = () if self._spent else self._beside()
        waiting: list[asyncio.Task[Any]] = [*self._running, *others]
        if not waiting:
            await asyncio.sleep(wait or 0.0)
            return []
        elastic = getattr(self._attempts.executor, "elastic", False)
        if elastic and not self._spent and self._could_use_places():
            wait = LOOK_SECONDS if wait is None else min(wait, LOOK_SECONDS)
        first = asyncio.FIRST_COMPLETED
        done, _ = await asyncio.wait(waiting, timeout=wait, return_when=first)
        return [task for task in self._running if task in done]

    def _take_all(self, tasks: Iterable[asyncio.Task[Result]]) -> None:
        """Record all results, even if one of them stops the run."""
        stop = None
        for task in tasks:
            try:
                self._take(self._running.pop(task), task.result())
            except StopRun as error:
                stop = error
        if stop is not None:
            raise stop

    def _take(self, trial: Trial, result: Result) -> None:
        wait = self._attempts.wait(result.fault, trial.attempt)
        if wait is None and self._unexplained(trial, result):
            if self._control:
                assert result.fault is not None
                fault = blamed(result.fault, f"after {self._control} got an answer")
                self._recorder.outcome(trial, replace(result, fault=fault))
            elif trial.attempt + 1 < 2 * self._attempts.retries.attempts:
                self._recorder.failed(trial, result)
                self._again.append(trial.cell)
            else:
                self._doubts.append((trial, result))
            return
        if wait is None:
            if result.fault is not None:
                check_operator(self._recorder.state, trial, result.fault, result.trace)
            self._recorder.outcome(trial, result)
            return
        self._recorder.failed(trial, result)
        when = asyncio.get_running_loop().time() + wait
        heapq.heappush(self._later, (when, len(self._later), trial.cell))

    def _unexplained(self, trial: Trial, result: Result) -> bool:
        """Whether a control must decide; without any starting harness there is none."""
        if result.fault is None or not result.fault.unexplained:
            return False
        state = self._recorder.state
        return not state.candidates[trial.candidate].start and bool(state.starts)

    async def _decide(self) -> None:
        """Repeat the trials in doubt, one candidate at a time, and decide those that fail again.

        Nothing else runs then, and a rate limit that candidates have used up is over.
        """
        await asyncio.sleep(WINDOW * self._attempts.retries.pause)
        for name in dict.fromkeys(cell.candidate for cell in self._again):
            await self._repeat(cell for cell in self._again if cell.candidate == name)
            if self._doubts:
                await self._settle(Controls(self._attempts, self._doubts))
            if self._spent is not None:
                return
        self._again = []

    async def _repeat(self, cells: Iterable[Cell]) -> None:
        for cell in cells:
            heapq.heappush(self._queue, (0.0, len(self._queue), cell))
        await self._run_queue()

    async def _settle(self, controls: Controls) -> None:
        """Decide the trials in doubt of one candidate by controls.

        If the budget ends before, they stay open, and what they have cost is recorded.
        """
        doubts, self._controls = self._doubts, controls
        await controls.quiet()
        if not await controls.up():
            self._control = await controls.back()
            if self._control:
                self._doubts = []
                for trial, result in doubts:
                    self._recorder.failed(trial, controls.paid(result))
                await self._repeat(trial.cell for trial, _ in doubts)
                self._control = ""
        elif await controls.try_tasks():
            self._doubts = []
            for trial, result in doubts:
                fault = controls.verdict(trial, result)
                self._recorder.outcome(trial, controls.paid(replace(result, fault=fault)))
        self._spent = self._spent or controls.spent
        undecided, self._doubts, self._controls = self._doubts, [], None
        for trial, result in undecided:
            self._recorder.failed(trial, controls.paid(result))

    async def _cancel(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._running.clear()
