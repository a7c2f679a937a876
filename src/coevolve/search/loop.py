"""The loop: propose, check, ask, evaluate, tell, until rounds or a budget end it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from enum import StrEnum
from typing import Any

import numpy as np

from coevolve.core.estimators import Estimate
from coevolve.core.events import Event
from coevolve.core.pool import Pool
from coevolve.core.selector import Selector
from coevolve.errors import ConfigError, NoOutcomeError, StopRun
from coevolve.search.acceptance import Rules, clean
from coevolve.search.budget import SCHEMA, Settings
from coevolve.search.candidate import Candidate, Files
from coevolve.search.evaluation import (
    Attempts,
    Evaluation,
    Order,
    Preparation,
    cap_ahead,
    check_alive,
    check_proposer,
    longest_first,
    to_rerun,
)
from coevolve.search.journal import Journal, Recorder
from coevolve.search.proposal import Proposer
from coevolve.search.proposing import Proposing
from coevolve.search.retries import Retries
from coevolve.search.run_state import CandidateState, RunState, Status
from coevolve.search.trials import Executor
from coevolve.search.wave import Wave


class Step(StrEnum):
    """What there is to do.

    >>> Step.ASK.value
    'ask'
    """

    PREPARE = "prepare"
    REPAIR = "repair"
    EVALUATE = "evaluate"
    TELL = "tell"
    PROPOSE = "propose"
    ASK = "ask"
    FURTHER = "further"
    SETTLE = "settle"
    FINISH = "finish"
    CHOOSE = "choose"
    END = "end"


def next_step(state: RunState) -> Step | None:
    """The next thing to do, or nothing when the run has ended."""
    if state.ended is not None:
        return None
    if state.wave is not None:
        return Step.TELL if state.wave.complete else Step.EVALUATE
    if state.chosen is not None:
        return Step.END
    if state.exhausted is not None:
        return Step.CHOOSE
    if _waiting(state, state.starts):
        return Step.PREPARE
    if state.finishing:
        return Step.FINISH
    return _in_round(state)


def _in_round(state: RunState) -> Step:
    turn = state.current_round
    if turn is None:
        return Step.FINISH if len(state.rounds) >= state.settings.rounds else Step.PROPOSE
    if turn.asked:
        return Step.FURTHER
    if _waiting(state, turn.names):
        return Step.PREPARE
    if broken(state):
        return Step.REPAIR
    return Step.ASK if accepted(state) else Step.SETTLE


def unready(state: RunState) -> list[CandidateState]:
    """The candidates that are still to be checked or prepared."""
    turn = state.current_round
    return _waiting(state, state.starts if turn is None else turn.names)


def accepted(state: RunState) -> list[str]:
    """The candidates of the round under way that can be evaluated."""
    return _in_turn(state, Status.READY)


def broken(state: RunState) -> list[str]:
    """The candidates of the round under way that are to be mended."""
    return _in_turn(state, Status.BROKEN)


def _in_turn(state: RunState, status: Status) -> list[str]:
    names = () if state.current_round is None else state.current_round.names
    return [name for name in names if state.candidates[name].status == status]


def _waiting(state: RunState, names: tuple[str, ...] | list[str]) -> list[CandidateState]:
    entries = [state.candidates[name] for name in names]
    return [e for e in entries if e.status in (Status.PROPOSED, Status.CHECKED)]


def choice_json(state: RunState) -> dict[str, Any]:
    """The winner with its estimate, or nobody and why."""
    try:
        choice = state.selector.best()
    except NoOutcomeError:
        return {"candidate": None, "why": "no candidate has an estimate"}
    return {
        "candidate": choice.candidate,
        "estimate": estimate_json(choice.estimate),
        "tied_with": list(choice.tied_with),
        "why": choice.why,
        "better_start": choice.better_start,
        "left_out": list(choice.left_out),
    }


def estimate_json(estimate: Estimate) -> dict[str, Any]:
    """An estimate as plain JSON."""
    return {
        "value": estimate.value,
        "se": estimate.se,
        "low": estimate.low,
        "high": estimate.high,
        "tasks": estimate.tasks,
        "drawn": estimate.drawn,
        "pool_size": estimate.pool_size,
        "method": estimate.method,
        "note": estimate.note,
    }


LEAST_STARTS = 2
_LONGER = 15.0
"""A proposer that could not work is asked again after waits this much longer than a trial's."""


def open_run(
    journal: Journal,
    *,
    name: str,
    settings: Settings,
    selector: Selector,
    starts: Mapping[str, Files],
    test: Pool | None = None,
    config: Mapping[str, Any] | None = None,
) -> None:
    """Record the first event of a run.

    Args:
        journal: A journal without any event.
        name: Name of the run.
        settings: How it searches.
        selector: A new selector over the validation tasks.
        starts: Files of the starting harnesses by name, two or more.
        test: The sealed test tasks, scored once at the end, if there are any.
        config: The configuration the run was started with, as plain JSON.
    """
    if len(starts) < LEAST_STARTS:
        raise ConfigError(
            f"a search needs two or more starting harnesses, got {len(starts)}: Phase 0 learns "
            "from them which tasks tell harnesses apart."
        )
    _check_budget(settings, selector, len(starts), test)
    candidates = []
    for start, files in starts.items():
        if clean(start) != start:
            raise ConfigError(f"a starting harness cannot be called {start!r}; use letters, -.")
        candidates.append(Candidate.of(files, name=start))
        for content in files.values():
            journal.put(content, durable=True)
    body = {
        "schema": SCHEMA,
        "name": name,
        "settings": settings.to_json(),
        "selector": selector.events[0],
        "starts": [candidate.to_json() for candidate in candidates],
        "test": None if test is None else test.to_json(),
        "config": dict(config or {}),
    }
    journal.append([("opened", body)])


def _check_budget(settings: Settings, selector: Selector, starts: int, test: Pool | None) -> None:
    """Refuse a cap on trials that cannot even pay for Phase 0 and the test."""
    trials = selector.events[0]["trials"]
    needed = starts * len(selector.pool) * trials
    needed += 0 if test is None else (starts + 1) * len(test) * trials
    cap = settings.budget.trials
    if cap is not None and cap < needed:
        raise ConfigError(
            f"a budget of {cap:,} trials is too small: Phase 0 and the sealed test alone take "
            f"{needed:,}."
        )


class Search:
    """A run under way: takes up a journal where it is and goes on to the end.

    Args:
        journal: The record of the run, with at least the event "opened".
        executor: Where trials run.
        proposer: Who writes candidates.
        listen: Called with every event after it had its effect.
        pause: Seconds of the first wait before a failed trial is tried again.
        order: Which trials of a wave start first.
        proposal_seconds: How long a proposal may take.
        rules: What the proposer is told, and what may not be in what it writes.
    """

    def __init__(
        self,
        journal: Journal,
        executor: Executor,
        proposer: Proposer,
        *,
        listen: Callable[[Event], None] = lambda event: None,
        pause: float = 1.0,
        order: Order = longest_first,
        proposal_seconds: float = 3600.0,
        rules: Rules | None = None,
    ) -> None:
        self._recorder = Recorder(journal, listen)
        self._executor, self._proposer = executor, proposer
        rng = np.random.default_rng([self.state.settings.seed, self.state.sessions])
        self._proposing = Proposing(
            self._recorder,
            proposer,
            rules or Rules(),
            seconds=proposal_seconds,
            retries=Retries(pause=_LONGER * pause),
            rng=rng,
        )
        self._attempts = Attempts(
            recorder=self._recorder, executor=executor, retries=Retries(pause=pause), rng=rng
        )
        self._order = order
        self._proposal: asyncio.Task[None] | None = None
        self._evaluation: Evaluation | None = None

    @property
    def state(self) -> RunState:
        """All that is known of the run."""
        return self._recorder.state

    @property
    def under_way(self) -> int:
        """Trials that run now."""
        return 0 if self._evaluation is None else self._evaluation.under_way

    async def run(self) -> RunState:
        """Continue to the end of the run.

        After an error it may be called again: nothing is in the state that is not in the
        journal.

        Raises:
            StopRun: The operator must act first; the run can be resumed then.
        """
        try:
            self._recorder.catch_up()
            if self.state.ended is None:
                self._recorder.record(
                    "session",
                    {
                        "capacity": self._executor.capacity,
                        "isolation": getattr(self._executor, "isolation_name", ""),
                    },
                )
            while (step := next_step(self.state)) is not None:
                await self._do(step)
        except asyncio.CancelledError:
            self._recorder.record("stopped", {"why": "interrupted"})
            raise
        except StopRun as stop:
            self._recorder.record("stopped", {"why": str(stop)})
            raise
        finally:
            await self._drop_proposal()
            await self._close()
        return self.state

    def _do(self, step: Step) -> Awaitable[None]:
        acts: dict[Step, Callable[[], Awaitable[None]]] = {
            Step.PREPARE: self._prepare,
            Step.REPAIR: self._repair,
            Step.EVALUATE: self._evaluate,
            Step.TELL: self._tell,
            Step.PROPOSE: self._propose,
            Step.ASK: self._ask,
            Step.FURTHER: self._further,
            Step.SETTLE: self._settle,
            Step.FINISH: self._finish,
            Step.CHOOSE: self._choose,
            Step.END: self._end,
        }
        return acts[step]()

    async def _prepare(self) -> None:
        await Preparation(self._attempts).run(unready(self.state))

    async def _repair(self) -> None:
        for name in broken(self.state):
            if cap := self._too_dear():
                self._proposing.give_up(name, f"the budget has no {cap} left to mend it.")
            else:
                await self._proposing.repair(name)

    async def _evaluate(self) -> None:
        wave = self.state.wave
        if wave is None:
            raise StopRun("there is nothing to evaluate.")
        if self._may_overlap(wave):
            self._proposal = asyncio.create_task(self._propose_now(len(self.state.rounds) + 1))
        self._evaluation = Evaluation(
            self._attempts,
            wave,
            self._order,
            proposing=lambda: self._proposal is not None and not self._proposal.done(),
        )
        try:
            await self._evaluation.run()
        finally:
            self._evaluation = None
        if self.state.exhausted is not None:
            await self._drop_proposal()

    async def _tell(self) -> None:
        again = to_rerun(self.state)
        if again:
            self._recorder.record("reopened", {"candidates": again})
        else:
            self._recorder.told()

    def _may_overlap(self, wave: Wave) -> bool:
        """Whether the next round is to be proposed while this one is evaluated."""
        state = self.state
        if self._proposal is not None and self._proposal.done():
            self._proposal.result()
            self._proposal = None
        under_way = state.current_round is not None and state.current_round is state.rounds[-1]
        more = len(state.rounds) < state.settings.rounds and state.chosen is None
        wanted = state.settings.overlap and self._proposal is None and under_way and more
        return wanted and not self._too_dear(len(wave.open))

    def _too_dear(self, trials: int = 0) -> str | None:
        """The cap that one more proposal might pass, if any, after so many trials."""
        return cap_ahead(self._recorder, self._executor.capacity, trials, proposal=True)

    async def _propose(self) -> None:
        if self._proposal is None and (spent := self._too_dear()):
            self._recorder.exhausted(spent)
            return
        if self._proposal is None:
            await self._propose_now(len(self.state.rounds) + 1)
        else:
            proposal, self._proposal = self._proposal, None
            await proposal

    def _propose_now(self, round: int) -> Coroutine[None, None, None]:
        return self._proposing.propose(round)

    async def _ask(self) -> None:
        self._record_draws(self.state.selector.plan(accepted(self.state)))

    async def _further(self) -> None:
        if draws := self.state.selector.plan():
            self._record_draws(draws)
        else:
            check_alive(self.state)
            self._record_settled()

    async def _settle(self) -> None:
        self._record_settled()
        check_proposer(self.state)

    async def _finish(self) -> None:
        selector = self.state.selector
        if draws := selector.plan(final=True) if selector.candidates else []:
            self._record_draws(draws, final=True)
        else:
            await self._choose()

    async def _choose(self) -> None:
        self._recorder.record("chosen", choice_json(self.state))

    async def _end(self) -> None:
        why = "finished" if self.state.exhausted is None else f"budget: {self.state.exhausted}"
        self._recorder.record("ended", {"why": why})

    def _record_draws(self, draws: list[Event], *, final: bool = False) -> None:
        self._recorder.record("asked", {"events": draws, "final": final})

    def _record_settled(self) -> None:
        if self.state.current_round is not None:
            self._recorder.record("settled", {"round": self.state.current_round.number})

    async def _close(self) -> None:
        """End the executor, and a proposer that keeps something open."""
        try:
            if (close := getattr(self._proposer, "close", None)) is not None:
                await close()
        finally:
            await self._executor.close()

    async def _drop_proposal(self) -> None:
        if self._proposal is not None:
            self._proposal.cancel()
            await asyncio.gather(self._proposal, return_exceptions=True)
            self._proposal = None
