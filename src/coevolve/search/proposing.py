"""Proposals and repairs: the proposer's view of the run, and what is recorded of its answer."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from functools import cache
from itertools import count
from operator import itemgetter
from typing import Any

import numpy as np

from coevolve.core.estimators import Estimate
from coevolve.core.outcomes import Missing
from coevolve.core.pool import Pool
from coevolve.errors import CoevolveError, NoOutcomeError, StopRun, StoreError
from coevolve.search.acceptance import Rules, accept, described, mended
from coevolve.search.candidate import plain
from coevolve.search.effects import fold
from coevolve.search.journal import Journal, Recorder
from coevolve.search.proposal import (
    Broken,
    Proposal,
    Proposed,
    Proposer,
    Repairer,
    Solvability,
    Standing,
    View,
    as_proposed,
)
from coevolve.search.retries import Retries
from coevolve.search.run_state import CandidateState, RunState, Status


def view_of(
    state: RunState,
    journal: Journal,
    round: int,
    *,
    briefing: str = "",
    seconds: float = math.inf,
) -> View:
    """What is known before a round is proposed; a snapshot that later events do not change.

    Args:
        state: The run as it is now.
        journal: Its record, for files and traces.
        round: The round to propose for.
        briefing: What the benchmark tells proposers.
        seconds: How long the proposal may take.
    """
    best = state.selector.best() if state.selector.candidates and _told(state) else None
    return View(
        round=round,
        seed=_seed(state.settings.seed, round),
        tasks=state.selector.pool.tasks,
        standings=_standings(state),
        best=best,
        parent=(best.better_start or best.candidate) if best else best_start(state),
        read=journal.get,
        trace=_trace(journal, state.events),
        briefing=briefing,
        pools=_pools(state.selector.pool),
        solvability=_solvability(state),
        seconds=seconds,
    )


def best_start(state: RunState) -> str:
    """The starting harness with the highest score, the first of equals and before any score."""
    known = {name: found for name in state.starts if (found := estimate_of(state, name))}
    return max(known, key=lambda name: known[name].value, default=state.starts[0])


def estimate_of(state: RunState, name: str) -> Estimate | None:
    """The estimate of a candidate's full-set score, if it has any outcome."""
    if state.candidates[name].status != Status.EVALUATED:
        return None
    try:
        return state.selector.estimate(name)
    except NoOutcomeError:
        return None


def _told(state: RunState) -> bool:
    return any(estimate_of(state, name) is not None for name in state.selector.candidates)


def _standings(state: RunState) -> tuple[Standing, ...]:
    """What is known of every candidate; deltas are against those of earlier rounds only."""
    made: list[Standing] = []
    best = [-math.inf]  # before each round
    for entry in state.candidates.values():
        while len(best) <= entry.candidate.round:
            best.append(_highest(made))
        made.append(_standing(state, entry, best[entry.candidate.round]))
    return tuple(made)


def _highest(standings: list[Standing]) -> float:
    return max((s.estimate.value for s in standings if s.estimate is not None), default=-math.inf)


def _pools(pool: Pool) -> dict[str, str]:
    if len(pool.names) < 2:
        return {}
    return {pool.tasks[i]: name for name in pool.names for i in pool.members(name)}


def _solvability(state: RunState) -> dict[str, Solvability]:
    history, tasks = state.selector.history(), state.selector.pool.tasks
    return {
        task: Solvability(mean=float(mean), candidates=int(count))
        for task, mean, count in zip(tasks, history.mean, history.count, strict=True)
        if count
    }


def _standing(state: RunState, entry: CandidateState, before: float) -> Standing:
    name, evaluated = entry.candidate.name, entry.status == Status.EVALUATED
    outcomes: dict[str, float | Missing] = state.selector.scores(name) if evaluated else {}
    pending = entry.status not in (Status.EVALUATED, Status.REFUSED)
    estimate = estimate_of(state, name)
    return Standing(
        candidate=entry.candidate,
        status="pending" if pending else entry.status.value,
        reason=entry.reason,
        estimate=estimate,
        outcomes=outcomes,
        delta=estimate.value - before if estimate is not None and math.isfinite(before) else None,
    )


def _seed(seed: int, round: int) -> int:
    """A seed of its own for every round."""
    return int(np.random.SeedSequence([seed, round]).generate_state(1, np.uint64)[0] >> 1)


def _trace(journal: Journal, until: int) -> Callable[[str, str], str | None]:
    """How to find traces; the journal is read once, when the first of them is asked for."""

    @cache
    def addresses() -> dict[tuple[str, str], str]:
        rows = [
            (event["trial"], (event["candidate"], event["task"]), event["trace"])
            for event in journal.events(until=until)
            if event["type"] == "outcome" and "trace" in event and "split" not in event
        ]  # whatever the order in which trials ended
        return {cell: address for _, cell, address in sorted(rows, key=itemgetter(0))}

    def trace(candidate: str, task: str) -> str | None:
        found = addresses().get((candidate, task))
        return None if found is None else journal.get(found).decode()

    return trace


Ask = Callable[[View], Awaitable[object]]
Take = Callable[[Proposed, str], dict[str, Any]]

_SPARE = 30.0
"""Seconds at most that a proposer is told less than it has."""
_LONGEST_NOTE = 10_000


class Proposing:
    """Has candidates proposed and mended, and records them.

    A proposer that takes longer than `seconds`, or than the budget has hours, costs a round. One
    that raises, or hands over rubbish, is asked again at most twice, after a pause if it could not
    reach what it needs; then the run stops, and resumed it has the same round proposed.
    """

    def __init__(
        self,
        recorder: Recorder,
        proposer: Proposer,
        rules: Rules,
        *,
        seconds: float,
        retries: Retries,
        rng: np.random.Generator,
    ) -> None:
        self._recorder, self._proposer = recorder, proposer
        self._rules, self._seconds = rules, seconds
        self._retries, self._rng = retries, rng

    async def propose(self, round: int) -> None:
        """Have candidates proposed for a round."""
        recorder, most = self._recorder, self._recorder.state.settings.candidates
        if recorder.state.proposing_since is None:
            recorder.record("proposing", {"round": round})

        def ask(view: View) -> Awaitable[object]:
            return self._proposer.propose(view, most)

        def take(proposed: Proposed, note: str) -> dict[str, Any]:
            rows, notes = accept(
                recorder.state, recorder.journal, round, proposed.proposals, self._rules, most
            )
            return {"round": round, "candidates": rows, **self._said(proposed, note, *notes)}

        recorder.record("proposed", await self._asked(round, ask, take))

    async def repair(self, name: str) -> None:
        """Have a candidate mended that failed its check; without an answer it stays refused."""
        recorder, proposer = self._recorder, self._proposer
        if not isinstance(proposer, Repairer):
            self.give_up(name, "")
            return
        entry = recorder.state.candidates[name]
        before = entry.candidate
        broken = Broken(proposal=Proposal.of(before, recorder.journal.get), error=entry.reason)

        def take(proposed: Proposed, note: str) -> dict[str, Any]:
            row, why = mended(recorder.state, recorder.journal, before, proposed, self._rules)
            return {"candidate": name, **(row or _AS_IT_WAS), **self._said(proposed, note, why)}

        def ask(view: View) -> Awaitable[object]:
            return proposer.repair(view, broken)

        recorder.record("repaired", await self._asked(before.round, ask, take))

    def give_up(self, name: str, why: str) -> None:
        """Record that a candidate is not mended."""
        said = self._said(Proposed(proposals=()), why)
        self._recorder.record("repaired", {"candidate": name, **_AS_IT_WAS, **said})

    async def _asked(self, round: int, ask: Ask, take: Take) -> dict[str, Any]:
        """What is made of a proposer's answer."""
        for attempt in count():
            try:
                return take(*await self._answer(round, ask))
            except (StopRun, StoreError):  # another answer would be paid for, and lost as well
                raise
            except (Exception, SystemExit) as error:
                wait = self._retries.wait(attempt, self._rng, getattr(error, "retry_after", None))
                if wait is None:
                    raise StopRun(_broken(round, attempt + 1, error)) from error
                passing = isinstance(error, CoevolveError)
            await asyncio.sleep(wait if passing else 0.0)  # a service comes back; a bug stays
        raise AssertionError("there is a last attempt")

    async def _answer(self, round: int, ask: Ask) -> tuple[Proposed, str]:
        """What a proposer answers, and a note if it took too long."""
        seconds = self._limit()
        view = self._view(round, told(seconds))
        deadline = asyncio.timeout(seconds if math.isfinite(seconds) else None)
        try:
            async with deadline:
                return as_proposed(await ask(view)), ""
        except TimeoutError:
            if not deadline.expired():
                raise
            return Proposed(proposals=()), _late(seconds)

    def _view(self, round: int, seconds: float) -> View:
        """What is known when a proposal begins, the same after an interruption."""
        journal, since = self._recorder.journal, self._recorder.state.proposing_since
        state = self._recorder.state if since is None else fold(journal.skim(since + 1))
        return view_of(state, journal, round, briefing=self._rules.briefing, seconds=seconds)

    def _said(self, proposed: Proposed, *notes: str) -> dict[str, Any]:
        """What an answer cost and said; its transcript is kept."""
        text = proposed.transcript
        kept = None if text is None else self._recorder.journal.put(text.encode(errors="replace"))
        return {
            "usage": proposed.usage.row,
            "transcript": kept,
            "note": plain(" ".join(filter(None, [*proposed.notes, *notes])), _LONGEST_NOTE),
        }

    def _limit(self) -> float:
        """The seconds a proposal may take."""
        hours = self._recorder.state.settings.budget.hours
        left = math.inf if hours is None else 3600 * hours - self._recorder.journal.clock()
        return max(0.0, min(self._seconds, left))


def told(seconds: float) -> float:
    """The seconds a proposer is told that it has, so that it hands over what it has in time."""
    return seconds - min(_SPARE, 0.1 * seconds)


_AS_IT_WAS: dict[str, Any] = {"to": None, "refused": "", "leaks": []}


def _broken(round: int, attempts: int, error: BaseException) -> str:
    why = described(error).rstrip(".")
    return (
        f"the proposer failed {attempts} times in round {round}: {why}. Fix it and resume the "
        "run; nothing is lost, and the round is proposed again."
    )


def _late(seconds: float) -> str:
    return f"the proposer took longer than {seconds:,.0f} s."
