"""The loop: propose, check, ask, evaluate, tell, until the rounds or a budget are used up."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from coevolve.core.events import Event
from coevolve.core.outcomes import Usage
from coevolve.core.pool import UNIT_SCALE, Pool
from coevolve.core.selector import Selector
from coevolve.errors import ConfigError, NoOutcomeError, StopRun
from coevolve.past_results.result_rows import PastResults
from coevolve.search.acceptance import Rules, clean
from coevolve.search.attempts import Attempts, cap_ahead
from coevolve.search.benchmark_version import settle_version
from coevolve.search.budget import SCHEMA, Settings
from coevolve.search.candidate import Candidate, Files
from coevolve.search.evaluation import (
    Evaluation,
    Order,
    check_alive,
    check_proposer,
    longest_first,
    to_rerun,
)
from coevolve.search.journal import Journal, Recorder
from coevolve.search.past_outcomes import Import, Importing, given_outcomes
from coevolve.search.preparation import Preparation
from coevolve.search.proposal import Proposer
from coevolve.search.proposing import Proposing
from coevolve.search.retries import Retries
from coevolve.search.rolling import RollingEvaluation
from coevolve.search.run_state import RunState, broken, ready, unready
from coevolve.search.trials import Cell, Executor
from coevolve.search.wave import Wave

_LONGER = 15.0
"""How much longer the waits are between attempts at a proposal than at a trial."""


def open_run(
    journal: Journal,
    *,
    name: str,
    settings: Settings,
    selector: Selector,
    starts: Mapping[str, Files],
    test: Pool | None = None,
    config: Mapping[str, Any] | None = None,
    imports: Sequence[Mapping[str, Any]] = (),
    probe: Usage | None = None,
) -> None:
    """Record the first event of a run, and its past outcomes with it.

    Args:
        journal: A journal without any event.
        name: Name of the run.
        settings: How it searches.
        selector: A new selector over the validation tasks.
        starts: Files of the starting harnesses by name, one or more.
        test: The sealed test tasks, scored once at the end, if there are any.
        config: The configuration the run was started with, as plain JSON.
        imports: Bodies of events "imported", if the run begins with past outcomes.
        probe: What a request to the proposer's model cost that showed that it answers.
    """
    check_opening(settings, selector, starts, test, imports)
    candidates = []
    for start, files in starts.items():
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
    paid = [] if probe is None else [("probed", {"usage": probe.row})]
    journal.append([("opened", body), *(("imported", event) for event in imports), *paid])


def _check_different(starts: Mapping[str, Files]) -> None:
    """Refuse two starting harnesses with the same files: both would be paid for."""
    known: dict[str, str] = {}
    for start, files in starts.items():
        twin = known.setdefault(Candidate.of(files, name=start).address, start)
        if twin != start:
            raise ConfigError(
                f"the starting harnesses {twin!r} and {start!r} have the same files; change one "
                "of them, or leave it out."
            )


def import_past(recorder: Recorder, results: PastResults, *, skip_unknown: bool = False) -> Import:
    """Record past outcomes in a run, as one event.

    Outcomes of starting harnesses stand for trials of Phase 0 that have no outcome yet. All others
    inform the history of the tasks and the joint model. If the run has ended, they do so when it
    is extended; its choice stays as it is.

    Args:
        recorder: The run.
        results: The past results.
        skip_unknown: Whether to leave out rows of tasks that the run does not have.

    Raises:
        HistoryError: A task is unknown, or an outcome differs from what was imported before.
        StateError: The same contents were imported before.
    """
    state = recorder.state
    importing = Importing(
        pool=state.selector.pool,
        test=None if state.test is None else state.test.pool,
        starts=state.starts,
        trials=state.trials,
        past=state.past,
        open=_open_in_phase_0(state),
    )
    recorder.record("imported", importing.event(results, skip_unknown=skip_unknown))
    return state.past.imports[-1]


def _open_in_phase_0(state: RunState) -> Collection[Cell] | None:
    """The trials of Phase 0 that past outcomes may stand for; None if all."""
    if state.selector.starts:
        return ()
    if state.ended is None and state.exhausted is not None:
        return ()
    wave = state.wave if state.ended is None else state.cut
    return None if wave is None else wave.open


def check_opening(
    settings: Settings,
    selector: Selector,
    starts: Mapping[str, Files],
    test: Pool | None,
    imports: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Refuse what no run can be opened with, so that a caller creates no folder for it.

    Raises:
        ConfigError: There is no starting harness, one has an invalid name, two are the same,
            tasks have ids
            that are not text or scores on another scale, or the cap on trials is too small for
            Phase 0 and the sealed test.
    """
    if not starts:
        raise ConfigError(
            "a search needs a starting harness, got none; Phase 0 learns from its outcomes how "
            "hard the tasks are."
        )
    for start in starts:
        if clean(start) != start:
            raise ConfigError(
                f"{start!r} is not a valid name of a starting harness; use letters, digits, "
                "'-', '_', '.' and '+'."
            )
    _check_different(starts)
    rule = selector.protocol
    if settings.in_flight is not None and getattr(rule.allocation, "needs_rounds", False):
        raise ConfigError(
            f"protocol {rule.name!r} decides among the candidates of a round, and in_flight = "
            f"{settings.in_flight} has no rounds; leave in_flight out, or use another protocol."
        )
    for pool in (selector.pool, *([] if test is None else [test])):
        if pool.scale != UNIT_SCALE or set(map(type, pool.tasks)) != {str}:
            raise ConfigError(
                "a run needs text as ids of tasks and scores from 0 to 1; other ids and scales "
                f"are for a Selector in a loop of your own, got {pool!r}."
            )
    trials = selector.events[0]["trials"]
    needed = len(starts) * len(selector.pool) * trials
    needed += 0 if test is None else (len(starts) + 1) * len(test) * trials
    needed -= sum(map(given_outcomes, imports))
    cap = settings.budget.trials
    if cap is not None and cap < needed:
        raise ConfigError(
            f"a budget of {cap:,} trials is too small; Phase 0 and the sealed test need "
            f"{needed:,}. Raise it or leave it out."
        )


class Search:
    """A running search, which continues from the state of its journal to the end.

    Args:
        journal: The record of the run, with at least the event "opened".
        executor: Where trials run.
        proposer: Writes candidates.
        listen: Called with every event after it was applied.
        pause: Upper limit in seconds of the first wait before a failed trial is retried.
        order: Which trials of a wave start first.
        proposal_seconds: How long a proposal may take.
        rules: The briefing of the proposer, and the scan of what it writes.
        fingerprint: A hash of each part of the benchmark; None if it has none.
        accept_change: Whether to continue if the fingerprint is not that of the last session.
        state: The state of the journal's run, if it is known.
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
        fingerprint: Mapping[str, str] | None = None,
        accept_change: bool = False,
        state: RunState | None = None,
    ) -> None:
        self._recorder = Recorder(journal, listen, state=state)
        self._fingerprint, self._accept_change = fingerprint, accept_change
        self._executor, self._proposer, self._order = executor, proposer, order
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
        self._proposal: asyncio.Task[None] | None = None
        self._evaluation: Evaluation | None = None

    @property
    def state(self) -> RunState:
        """The state of the run."""
        return self._recorder.state

    @property
    def under_way(self) -> int:
        """Trials that run now."""
        return 0 if self._evaluation is None else self._evaluation.under_way

    async def run(self) -> RunState:
        """Continue to the end of the run.

        After an error it may be called again, if the executor can still be used: the journal has
        everything that is in the state.

        Raises:
            StopRun: The operator must act before the run can continue.
            ChangedBenchmarkError: The benchmark has changed, and the change is not accepted.
        """
        try:
            self._recorder.catch_up()
            if self.state.ended is None:
                if self._fingerprint is not None:
                    accept = self._accept_change
                    settle_version(self._recorder, self._fingerprint, accept=accept)
                isolation = getattr(self._executor, "isolation_name", "")
                body = {"capacity": self._executor.capacity, "isolation": isolation}
                self._recorder.record("session", body)
            while (step := self._next()) is not None:
                await step()
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

    def _next(self) -> Callable[[], Awaitable[None]] | None:
        """The next step, which depends on the state alone; None when the run has ended."""
        state = self.state
        if state.ended is not None:
            return None
        if state.rolling and self._searching():
            return self._finish if state.searched else self._search
        if state.wave is not None:
            return self._tell if state.wave.complete else self._evaluate
        if state.chosen is not None:
            return self._end
        if state.exhausted is not None:
            return self._choose
        if unready(state):
            return self._prepare
        if state.finishing:
            return self._finish
        if state.current_round is not None:
            return self._next_in_round()
        return self._finish if len(state.rounds) >= state.settings.rounds else self._propose

    def _searching(self) -> bool:
        """Whether the run is between Phase 0 and the choice."""
        state = self.state
        over = state.chosen is not None or state.exhausted is not None
        in_phase_0 = state.wave is not None and state.wave.kind == "start"
        return bool(state.selector.starts) and not over and not in_phase_0

    async def _search(self) -> None:
        """Search without rounds, until everything is told or a budget is spent."""
        rolling = RollingEvaluation(self._attempts, self._proposing, self._order)
        self._evaluation = rolling
        try:
            await rolling.run()
        finally:
            self._evaluation = None

    def _next_in_round(self) -> Callable[[], Awaitable[None]]:
        state = self.state
        if state.current_round is not None and state.current_round.asked:
            return self._ask_further
        if broken(state):
            return self._repair
        return self._ask if ready(state) else self._settle

    async def _prepare(self) -> None:
        await Preparation(self._attempts).run(unready(self.state))

    async def _propose(self) -> None:
        if self._proposal is not None:
            proposal, self._proposal = self._proposal, None
            await proposal
        elif cap := self._cap_ahead():
            self._recorder.exhausted(cap)
        else:
            await self._proposing.propose(len(self.state.rounds) + 1)

    async def _repair(self) -> None:
        for name in broken(self.state):
            if cap := self._cap_ahead():
                self._proposing.give_up(name, f"the budget has no {cap} left for a repair.")
            else:
                await self._proposing.repair(name)

    async def _ask(self) -> None:
        self._record_draws(self.state.selector.plan(ready(self.state)))

    async def _ask_further(self) -> None:
        if draws := self.state.selector.plan():
            self._record_draws(draws)
        else:
            check_alive(self.state, self.state.current_round)
            self._record_settled()

    async def _settle(self) -> None:
        self._record_settled()
        check_proposer(self.state)

    async def _evaluate(self) -> None:
        wave = self.state.wave
        if wave is None:
            raise StopRun("there is nothing to evaluate.")
        if self._may_overlap(wave):
            proposal = self._proposing.propose(len(self.state.rounds) + 1)
            self._proposal = asyncio.create_task(proposal)
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
        if again := to_rerun(self.state):
            self._recorder.record("reopened", {"candidates": again})
        else:
            self._recorder.told()

    async def _finish(self) -> None:
        selector = self.state.selector
        if draws := selector.plan(final=True) if selector.candidates else []:
            self._record_draws(draws, final=True)
        else:
            await self._choose()

    async def _choose(self) -> None:
        try:
            choice = self.state.selector.best().to_json()
        except NoOutcomeError:
            choice = {"candidate": None, "why": "no candidate has an estimate"}
        self._recorder.record("chosen", choice)

    async def _end(self) -> None:
        why = "finished" if self.state.exhausted is None else f"budget: {self.state.exhausted}"
        self._recorder.record("ended", {"why": why})

    def _may_overlap(self, wave: Wave) -> bool:
        """Whether to propose the next round while this one is evaluated."""
        state = self.state
        if self._proposal is not None and self._proposal.done():
            self._proposal.result()
            self._proposal = None
        last = state.current_round is not None and state.current_round is state.rounds[-1]
        more = len(state.rounds) < state.settings.rounds and state.chosen is None
        wanted = state.settings.overlap and self._proposal is None and last and more
        return wanted and not self._cap_ahead(len(wave.open))

    def _cap_ahead(self, trials: int = 0) -> str | None:
        """The cap that one more proposal might exceed after `trials` more trials, if any."""
        return cap_ahead(self._recorder, self._executor.capacity, trials, proposal=True)

    def _record_draws(self, draws: list[Event], *, final: bool = False) -> None:
        self._recorder.record("asked", {"events": draws, "final": final})

    def _record_settled(self) -> None:
        if self.state.current_round is not None:
            self._recorder.record("settled", {"round": self.state.current_round.number})

    async def _close(self) -> None:
        """Close the executor, and the proposer if it can be closed."""
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
