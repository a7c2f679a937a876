"""Checks, preparations and trials on an executor: order, retries, budget, and when to stop."""

import asyncio
import heapq
import math
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

import numpy as np

from coevolve.core.outcomes import Missing, Usage
from coevolve.errors import CoevolveError, StopRun, titled
from coevolve.search.budget import Spending, usage_row
from coevolve.search.candidate import Candidate
from coevolve.search.journal import Executor, Recorder, fault_json
from coevolve.search.run_state import CandidateState, RunState, Status
from coevolve.search.trials import Blame, Cell, Fault, Prepared, Result, Trial
from coevolve.search.wave import Wave

RETRIES = 2
"""How often a trial is tried again after a fault of the infrastructure."""

AGAIN = (Blame.INFRASTRUCTURE, Blame.DOUBTFUL)
"""The faults after which it is tried again."""

LONGEST = 60.0


def backoff(attempt: int, rng: np.random.Generator, pause: float = 1.0) -> float:
    """Seconds to wait after failed attempt 0, 1, ...: doubling, with full jitter.

    [Brooker 2015] M. Brooker, Exponential Backoff And Jitter, AWS Architecture Blog.

    >>> rng = np.random.default_rng(0)
    >>> [round(backoff(attempt, rng), 2) for attempt in range(3)]
    [0.64, 0.54, 0.16]
    """
    return float(rng.uniform(0, min(LONGEST, pause * 2**attempt)))


def cap_ahead(
    recorder: Recorder,
    capacity: int,
    under_way: int = 0,
    wave: Wave | None = None,
    *,
    proposal: bool = False,
    used: Usage | None = None,
) -> str | None:
    """The cap that one more trial, or one more proposal, might pass, if any.

    What is spent counts, with what was `used` and is not recorded yet; one more trial and those
    under way at the price of the dearest so far, a `proposal`, to be made or under way, likewise;
    and, once Phase 0 has shown what trials cost, what comes after the choice at the average price.
    """
    state = recorder.state
    spent = state.spending(recorder.journal.clock())
    if used is not None:
        tokens = used.tokens_in + used.tokens_out
        spent = spent.plus(1, Spending(tokens=tokens, dollars=used.dollars))
    ahead = spent.plus(1 + under_way, state.dearest)
    if proposal:
        dearest = Spending(tokens=state.proposals.tokens, dollars=state.proposals.dollars)
        ahead = ahead.plus(1, dearest)
    if wave is None or wave.kind == "round":
        ahead = ahead.plus(closing_trials(state), _average(state, capacity))
    budget = state.settings.budget
    return budget.reached(spent) or budget.exceeded(ahead)


def closing_trials(state: RunState) -> int:
    """Trials after the choice: the winner in full, and the sealed test with the starts."""
    rescored = len(state.selector.pool) if state.settings.rescore else 0
    tested = 0 if state.test is None else (len(state.starts) + 1) * len(state.test.pool)
    return (rescored + tested) * state.trials


def _average(state: RunState, capacity: int) -> Spending:
    """What a trial costs on average, and how long it keeps the run when several run at once."""
    spent, trials = state.evaluating, max(1, state.evaluating.trials)
    return Spending(
        trials=1,
        tokens=spent.tokens / trials,
        dollars=spent.dollars / trials,
        hours=spent.seconds / trials / capacity / 3600,
    )


EMPTY_ROUNDS = 3
"""Rounds in a row without any candidate after which a run stops and asks for help."""


def check_operator(state: RunState, trial: Trial, fault: Fault) -> None:
    """Stop for what only the operator can mend.

    An evaluator that breaks on a starting harness is broken itself; one that worked on these and
    breaks on a candidate was broken by the candidate.
    """
    start = state.candidates[trial.candidate].candidate.round == 0
    evaluator = fault.blame in (Blame.BENCHMARK, Blame.DOUBTFUL)
    if fault.blame == Blame.OPERATOR or (evaluator and start):
        where = f"candidate {trial.candidate!r}, task {trial.task!r}"
        why = titled(fault.kind, fault.reason).rstrip(".")
        raise StopRun(f"{where}: {why}. {fault.advice}".rstrip())


def wanting(state: RunState) -> list[str]:
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
            f"starting harness {bare[0]!r} has no score at all in some pool: {why}. Find out what "
            "is broken, then resume the run."
        )
    return bare or [name for name in wave.thin() if name not in wave.again]


def check_alive(state: RunState) -> None:
    """Stop when no trial of a round has a score, before the next round fails as well.

    Only a round that was evaluated in this session counts: when the run is resumed, it continues.
    """
    turn = state.current_round
    if turn and turn.told_at > state.session_at and 0 < turn.trials == turn.missing:
        raise StopRun(
            f"no trial of round {turn.number} has a score: {_why_missing(state, turn.names)}. "
            "Find out what is broken, then resume the run."
        )


def check_proposer(state: RunState) -> None:
    """Stop after several rounds without any candidate, unless a run with some is at its end."""
    over = len(state.rounds) >= state.settings.rounds and state.selector.candidates
    if state.empty_rounds < EMPTY_ROUNDS or over:
        return
    turn = state.rounds[-1]
    reasons = [turn.note, *(state.candidates[name].reason for name in turn.names)]
    why = " ".join(filter(None, reasons)).rstrip(".") or "nothing was proposed"
    left = state.settings.rounds - len(state.rounds)
    then = f"and {left} are left" if left else "all of them; begin a new run"
    raise StopRun(
        f"{state.empty_rounds} rounds in a row gave no candidate that could be evaluated. Of the "
        f"last one: {why}. Mend the proposer; these rounds are spent, {then}.",
        resumable=left > 0,
    )


def _why_missing(state: RunState, names: Iterable[str]) -> str:
    known = (name for name in names if state.candidates[name].status == Status.EVALUATED)
    scores = (score for name in known for score in state.selector.scores(name).values())
    return next((s.reason for s in scores if isinstance(s, Missing)), "").rstrip(".")


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

    async def run(self, entries: list[CandidateState]) -> None:
        """Make candidates ready, or as many as the budget allows."""
        try:
            async with asyncio.TaskGroup() as group:
                for entry in entries:
                    group.create_task(self._ready(entry))
        except* CoevolveError as errors:
            raise errors.exceptions[0] from None
        if self._spent is not None:
            self._recorder.exhausted(self._spent)

    async def _ready(self, entry: CandidateState) -> None:
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

    def _body(self, entry: CandidateState, prepared: Prepared) -> dict[str, object]:
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
                candidate = self._recorder.state.candidates[trial.candidate].candidate
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
            state=self._recorder.state.candidates[cell.candidate].state,
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
