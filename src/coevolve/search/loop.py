"""The loop: propose, check, ask, evaluate, tell, until rounds or a budget end it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine

import numpy as np

from coevolve.core.events import Event
from coevolve.errors import StopRun
from coevolve.search.ahead import cap_ahead
from coevolve.search.alarms import check_alive, check_proposer, wanting
from coevolve.search.choosing import choice_json
from coevolve.search.evaluating import Evaluation, Order, longest_first
from coevolve.search.parts import Executor, Journal
from coevolve.search.preparing import Preparation
from coevolve.search.proposal import Proposer
from coevolve.search.proposing import Proposing
from coevolve.search.recorder import Recorder
from coevolve.search.rules import Rules
from coevolve.search.state import RunState
from coevolve.search.steps import Step, accepted, broken, next_step, unready
from coevolve.search.wave import Wave


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
        self._proposing = Proposing(
            self._recorder, proposer, rules or Rules(), seconds=proposal_seconds, pause=pause
        )
        self._pause, self._order = pause, order
        self._rng = np.random.default_rng([self.state.settings.seed, self.state.sessions])
        self._proposal: asyncio.Task[None] | None = None
        self._evaluation: Evaluation | None = None
        self._empty = 0
        self._reopened = self._evaluated = False

    @property
    def state(self) -> RunState:
        """All that is known of the run."""
        return self._recorder.state

    @property
    def under_way(self) -> int:
        """Trials that run now."""
        return 0 if self._evaluation is None else self._evaluation.under_way

    async def run(self) -> RunState:
        """Go on to the end of the run.

        Raises:
            StopRun: The operator must act first; the run can be resumed then.
        """
        try:
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
        preparation = Preparation(self._recorder, self._executor, self._rng, self._pause)
        await preparation.run(unready(self.state))

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
            self._proposal = asyncio.create_task(self._propose_now(len(self.state.turns) + 1))
        self._evaluation = Evaluation(
            self._recorder,
            wave,
            self._executor,
            self._rng,
            self._pause,
            self._order,
            proposing=lambda: self._proposal is not None and not self._proposal.done(),
        )
        try:
            await self._evaluation.run()
        finally:
            self._evaluation = None
        self._evaluated = True
        if self.state.exhausted is not None:
            await self._drop_proposal()

    async def _tell(self) -> None:
        wave = self.state.wave
        again = wanting(wave, last=self._reopened) if wave and wave.kind == "start" else []
        if again:
            self._reopened = True
            self._recorder.record("reopened", {"candidates": again})
        else:
            self._recorder.told()

    def _may_overlap(self, wave: Wave) -> bool:
        """Whether the next round is to be proposed while this one is evaluated."""
        state = self.state
        if self._proposal is not None and self._proposal.done():
            self._proposal.result()
            self._proposal = None
        under_way = state.turn is not None and state.turn is state.turns[-1]
        more = len(state.turns) < state.settings.rounds and state.chosen is None
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
            await self._propose_now(len(self.state.turns) + 1)
        else:
            proposal, self._proposal = self._proposal, None
            await proposal

    def _propose_now(self, round: int) -> Coroutine[None, None, None]:
        return self._proposing.propose(round)

    async def _ask(self) -> None:
        self._empty = 0
        before = self.state.selector.event_count
        self.state.selector.ask(accepted(self.state))
        self._record_draws(before, final=False)

    async def _further(self) -> None:
        before = self.state.selector.event_count
        if self.state.selector.ask():
            self._record_draws(before, final=False)
            return
        evaluated, self._evaluated = self._evaluated, False
        if evaluated and self.state.turn is not None:
            check_alive(self.state, self.state.turn)
        self._record_settled()

    async def _settle(self) -> None:
        self._record_settled()
        self._empty += 1
        check_proposer(self.state, self._empty)

    async def _finish(self) -> None:
        before = self.state.selector.event_count
        if self.state.selector.candidates and self.state.selector.ask(final=True):
            self._record_draws(before, final=True)
        else:
            await self._choose()

    async def _choose(self) -> None:
        self._recorder.record("chosen", choice_json(self.state))

    async def _end(self) -> None:
        why = "finished" if self.state.exhausted is None else f"budget: {self.state.exhausted}"
        self._recorder.record("ended", {"why": why})

    def _record_draws(self, before: int, *, final: bool) -> None:
        drawn = list(self.state.selector.events_since(before))
        self._recorder.record("asked", {"events": drawn, "final": final})

    def _record_settled(self) -> None:
        if self.state.turn is not None:
            self._recorder.record("settled", {"round": self.state.turn.number})

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
