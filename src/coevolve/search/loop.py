"""The loop: propose, check, ask, evaluate, tell, until rounds or a budget end it."""

import asyncio
from collections.abc import Awaitable, Callable

import numpy as np

from coevolve.core.events import Event
from coevolve.errors import StopRun
from coevolve.search.accepting import accept, as_proposed
from coevolve.search.ahead import cap_ahead
from coevolve.search.budget import usage_row
from coevolve.search.choosing import choice_json
from coevolve.search.evaluating import Evaluation, Order, longest_first
from coevolve.search.folding import fold
from coevolve.search.parts import Executor, Journal
from coevolve.search.preparing import make_ready
from coevolve.search.proposing import Proposed, Proposer, View
from coevolve.search.recorder import Recorder
from coevolve.search.state import RunState
from coevolve.search.steps import Step, accepted, check_starts, next_step, unready
from coevolve.search.view import view_of

EMPTY_ROUNDS = 3
"""Rounds in a row without any candidate after which a run stops and asks for help."""


class Search:
    """A run under way: takes up a journal where it is and goes on to the end.

    Args:
        journal: The record of the run, with at least the event "opened".
        executor: Where trials run.
        proposer: Who writes candidates.
        listen: Called with every event after it had its effect.
        pause: Seconds of the first wait before a failed trial is tried again.
        order: Which trials of a wave start first.
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
    ) -> None:
        self._recorder = Recorder(journal, listen)
        self._executor, self._proposer = executor, proposer
        self._pause, self._order = pause, order
        self._rng = np.random.default_rng([self.state.settings.seed, self.state.sessions])
        self._proposal: asyncio.Task[None] | None = None
        self._evaluation: Evaluation | None = None
        self._empty = 0

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
            self._recorder.record("session", {"capacity": self._executor.capacity})
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
            await self._executor.close()
        return self.state

    def _do(self, step: Step) -> Awaitable[None]:
        acts: dict[Step, Callable[[], Awaitable[None]]] = {
            Step.PREPARE: self._prepare,
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
        if spent := cap_ahead(self._recorder, self._executor.capacity):
            self._recorder.exhausted(spent)
            return
        entries = unready(self.state)
        await make_ready(self._recorder, entries, self._executor, self._rng, self._pause)
        check_starts(self.state)

    async def _evaluate(self) -> None:
        wave = self.state.wave
        if wave is None:
            raise StopRun("there is nothing to evaluate.")
        if self._may_overlap():
            self._proposal = asyncio.create_task(self._propose_now(len(self.state.turns) + 1))
        self._evaluation = Evaluation(
            self._recorder, wave, self._executor, self._rng, self._pause, self._order
        )
        try:
            await self._evaluation.run()
        finally:
            self._evaluation = None

    async def _tell(self) -> None:
        self._recorder.told()

    def _may_overlap(self) -> bool:
        """Whether the next round is to be proposed while this one is evaluated."""
        state = self.state
        if self._proposal is not None and self._proposal.done():
            self._proposal.result()
            self._proposal = None
        under_way = state.turn is not None and state.turn is state.turns[-1]
        more = len(state.turns) < state.settings.rounds and state.chosen is None
        wanted = state.settings.overlap and self._proposal is None and under_way and more
        return wanted and not cap_ahead(self._recorder, self._executor.capacity)

    async def _propose(self) -> None:
        if spent := cap_ahead(self._recorder, self._executor.capacity):
            self._recorder.exhausted(spent)
            return
        if self._proposal is None:
            await self._propose_now(len(self.state.turns) + 1)
        else:
            proposal, self._proposal = self._proposal, None
            await proposal

    async def _propose_now(self, round: int) -> None:
        view = self._view(round)
        note = ""
        try:
            handed = await self._proposer.propose(view, self.state.settings.candidates)
            proposed = as_proposed(handed)
        except StopRun:
            raise
        except Exception as error:
            proposed, note = Proposed(proposals=()), f"{type(error).__name__}: {error}"
        journal, most = self._recorder.journal, self.state.settings.candidates
        rows, notes = accept(self.state, journal, round, proposed.proposals[:most])
        if len(proposed.proposals) > most:
            notes.append(f"{len(proposed.proposals)} were proposed, {most} were asked for.")
        text = proposed.transcript
        self._recorder.record(
            "proposed",
            {
                "round": round,
                "candidates": rows,
                "usage": usage_row(proposed.usage),
                "transcript": None if text is None else journal.put(text.encode()),
                "note": " ".join(filter(None, [note, *notes])),
            },
        )

    def _view(self, round: int) -> View:
        """What is known when a proposal begins, the same after an interruption."""
        journal, since = self._recorder.journal, self.state.proposing_since
        if since is None:
            self._recorder.record("proposing", {"round": round})
            return view_of(self.state, journal, round)
        return view_of(fold(journal.skim(since + 1)), journal, round)

    async def _ask(self) -> None:
        self._empty = 0
        before = self.state.selector.event_count
        self.state.selector.ask(accepted(self.state))
        self._record_draws(before, final=False)

    async def _further(self) -> None:
        before = self.state.selector.event_count
        if self.state.selector.ask():
            self._record_draws(before, final=False)
        else:
            self._record_settled()

    async def _settle(self) -> None:
        self._record_settled()
        self._empty += 1
        if self._empty == EMPTY_ROUNDS:
            raise StopRun(
                f"{EMPTY_ROUNDS} rounds in a row gave no candidate that could be evaluated, the "
                f"last one: {self._why_empty()} Mend the proposer, then resume the run."
            )

    def _why_empty(self) -> str:
        turn = self.state.turns[-1]
        reasons = [self.state.entries[name].reason for name in turn.names]
        return " ".join(filter(None, [turn.note, *reasons])) or "nothing was proposed."

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

    async def _drop_proposal(self) -> None:
        if self._proposal is not None:
            self._proposal.cancel()
            await asyncio.gather(self._proposal, return_exceptions=True)
            self._proposal = None
