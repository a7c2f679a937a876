"""A search without rounds: candidates are proposed and evaluated side by side."""

import asyncio
import heapq
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import count

from coevolve.core.events import Event
from coevolve.errors import StopRun
from coevolve.search.attempts import Attempts
from coevolve.search.budget import Spending
from coevolve.search.evaluation import Evaluation, Order, check_alive, check_proposer
from coevolve.search.preparation import Preparation
from coevolve.search.proposing import Proposing
from coevolve.search.run_state import RunRound, RunState, Status, broken, ready, unready
from coevolve.search.wave import Wave


class RollingEvaluation(Evaluation):
    """Keeps the places of an executor busy until the search is over or a budget is spent.

    When a place is free and no trial waits for one, the selector is told the outcomes so far.
    Then it may draw further tasks for any candidate, and the proposer is asked for the next one,
    while at most `in_flight` candidates are under way and half of the last one's outcomes are
    known. One proposal is under way at a time: a
    second one would know nothing that the first did not know. Its candidates are checked and
    prepared beside the trials of others.

    Every decision follows from the state and from what is under way. An error of the proposer
    stops the run after the trials that were asked for.

    Args:
        attempts: Where trials run, and when they are repeated.
        proposing: Requests proposals and repairs.
        order: Which trials start first.
    """

    def __init__(self, attempts: Attempts, proposing: Proposing, order: Order) -> None:
        state = attempts.recorder.state
        wave = state.wave or Wave(kind="round", groups=(), rolling=True)
        own = replace(attempts, beside=self._candidate_costs)
        super().__init__(own, wave, order, proposing=lambda: False)
        self._requests, self._order = proposing, order
        self._preparing = replace(attempts, beside=self._trial_costs)
        self._numbers = count(len(self._queue))
        self._candidate: asyncio.Task[None] | None = None
        self._proposal = False
        self._begun = False
        self._error: Exception | None = None

    @property
    def _state(self) -> RunState:
        return self._recorder.state

    async def run(self) -> None:
        """Search, or as much as the budget allows.

        Raises:
            StopRun: The operator must act before the run can continue.
        """
        try:
            await super().run()
        finally:
            await self._drop_candidate()
        if self._error is not None:
            raise self._error

    def _could_use_places(self) -> bool:
        return True  # a place that is free asks for draws or a proposal

    def _beside(self) -> Collection[asyncio.Task[None]]:
        """The next candidate under way, unless trials in doubt must be repeated first."""
        return () if self._candidate is None or self._again else (self._candidate,)

    def _refill(self) -> None:
        """Draw tasks for candidates and begin a proposal, if places would be idle otherwise."""
        self._collect()
        if self._spent is not None or self._error is not None or self._again:
            return
        state = self._state
        if self._candidate is None:
            current = state.current_round
            if current is not None and not current.asked and (names := ready(state)):
                self._tell()
                self._ask(state.selector.plan(names))
            elif current is not None and (unready(state) or broken(state)):
                self._begin(propose=False)
            elif state.proposing_since is not None:
                self._propose()
        try:
            self._fill()
        except StopRun as error:
            self._error = error

    def _collect(self) -> None:
        """Note the end of the next candidate's preparation."""
        if self._candidate is not None and self._candidate.done():
            ended, self._candidate, self._begun = self._candidate, None, False
            error = ended.exception()
            if isinstance(error, Exception):
                self._error = self._error or error
            elif error is not None:
                raise error

    def _fill(self) -> None:
        """Decide what is next while a place is free."""
        if not self._idle():
            return
        wave = self._state.wave
        if not self._begun or wave is None or wave.has_news:
            self._begun = True
            self._look_further()
        state = self._state
        room = len(state.in_flight) + state.settings.candidates <= (state.settings.in_flight or 0)
        more = len(state.rounds) < state.settings.rounds
        if self._candidate is None and room and more and self._informed():
            self._propose()

    def _idle(self) -> bool:
        """Whether a place is free and no trial waits for one."""
        return not self._queue and len(self._running) < self._places()

    def _informed(self) -> bool:
        """Whether at least half of the outcomes of the last candidates are known.

        Otherwise a proposal would know nothing of the last one.
        """
        wave, rounds = self._state.wave, self._state.rounds
        if wave is None or not rounds:
            return True
        counts = [wave.progress(name) for name in rounds[-1].names if name in wave.cells]
        return all(2 * done >= asked for done, asked in counts)

    def _look_further(self) -> None:
        """Tell what is known, end rounds, and draw what the protocol allows now."""
        self._tell()
        draws = self._draws()
        if draws and draws[0]["kind"] == "again":
            self._ask(draws)
            draws = []
        for round in self._state.open_rounds:
            self._end_round(round)
        if final := self._final():
            draws = self._draws(final=True)
        if draws:
            self._ask(draws, final=final)

    def _draws(self, *, final: bool = False) -> list[Event]:
        selector = self._state.selector
        return selector.plan(candidates=selector.candidates, final=final)

    def _final(self) -> bool:
        """Whether no candidate is left to propose, and each has had its first look."""
        state = self._state
        over = len(state.rounds) >= state.settings.rounds and not state.open_rounds
        return over and self._candidate is None and state.proposing_since is None

    def _end_round(self, round: RunRound) -> None:
        """End a round if none of its candidates is under way."""
        state = self._state
        busy = set() if state.wave is None else state.wave.under_way
        status = {name: state.candidates[name].status for name in round.names}
        ended = (Status.REFUSED, Status.EVALUATED)
        if any(name in busy or found not in ended for name, found in status.items()):
            return
        check_alive(state, round)
        self._recorder.record("settled", {"round": round.number})
        check_proposer(state)

    def _tell(self) -> None:
        wave = self._state.wave
        if wave is not None and not wave.untouched:
            self._recorder.told()

    def _ask(self, draws: Sequence[Event], *, final: bool = False) -> None:
        """Record draws and queue their trials."""
        self._recorder.record("asked", {"events": draws, "final": final})
        self._begun = True
        state = self._state
        assert state.wave is not None
        self._wave = state.wave
        for name in dict.fromkeys(name for draw in draws for name in draw["candidates"]):
            for cell in state.wave.cells[name]:
                entry = (self._order(state, cell), next(self._numbers), cell)
                heapq.heappush(self._queue, entry)

    def _propose(self) -> None:
        """Begin a proposal if the budget covers it and all trials that were asked for."""
        wave = self._state.wave
        cap = self._attempts.cap_ahead(0 if wave is None else len(wave.open), proposal=True)
        if cap is None:
            self._tell()
            self._begin(propose=True)
        elif wave is None:
            self._spent = cap

    def _begin(self, *, propose: bool) -> None:
        self._proposal = propose
        if propose and self._state.proposing_since is None:
            # Before any other event, so that the proposer knows what was just told.
            self._recorder.record("proposing", {"round": len(self._state.rounds) + 1})
        self._candidate = asyncio.create_task(self._develop())

    async def _develop(self) -> None:
        """Propose candidates if that is next; check, repair and prepare them."""
        if self._proposal:
            await self._requests.propose(len(self._state.rounds) + 1)
            self._proposal = False
        while self._spent is None:
            if new := unready(self._state):
                self._spent = await Preparation(self._preparing).made_ready(new) or self._spent
            elif names := broken(self._state):
                await self._repair(names[0])
            else:
                return

    async def _repair(self, name: str) -> None:
        if cap := self._preparing.cap_ahead(proposal=True):
            self._requests.give_up(name, f"the budget has no {cap} left for a repair.")
            return
        self._proposal = True
        await self._requests.repair(name)
        self._proposal = False

    def _trial_costs(self) -> Spending:
        """The most that the trials and controls under way may cost."""
        ledger, controls = self._state.evaluating, int(self._controls is not None)
        running = Spending().plus(self.under_way, Spending.highest(ledger, trials=1))
        running = running.plus(controls, Spending.highest(ledger, trials=0))
        return running.plus(1, Spending.of_usage(self._unrecorded()))

    def _candidate_costs(self) -> Spending:
        """The most that the proposal or preparations under way may cost."""
        if self._candidate is None or self._candidate.done():
            return Spending()
        if self._proposal:
            return Spending.highest(self._state.proposing, trials=0)
        each = Spending.highest(self._state.evaluating, trials=0)
        return Spending().plus(len(unready(self._state)), each)

    async def _drop_candidate(self) -> None:
        """Give up a proposal or a preparation under way."""
        if self._candidate is not None:
            self._candidate.cancel()
            await asyncio.gather(self._candidate, return_exceptions=True)
            self._candidate = None
