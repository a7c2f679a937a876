"""Proposals and repairs: the view of the proposer, and the record of its answer."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from functools import cache
from itertools import count
from operator import itemgetter
from typing import Any

import numpy as np

from coevolve.core.outcomes import Missing
from coevolve.core.pool import Pool
from coevolve.errors import CoevolveError, StopRun, StoreError
from coevolve.formatting import visible
from coevolve.search.acceptance import Rules, accept, accept_repair, described
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

_SPARE = 30.0
"""The announced time limit is shorter than the real one by at most this many seconds."""
_LONGEST_NOTE = 10_000


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
        state: The run.
        journal: Its record, for files and traces.
        round: The round to propose for.
        briefing: The benchmark's text for proposers.
        seconds: How long the proposal may take.
    """
    scored = any(state.estimate(name) is not None for name in state.selector.candidates)
    best = state.selector.best(unfinished=state.rolling) if scored else None
    return View(
        round=round,
        seed=_seed(state.settings.seed, round),
        tasks=state.selector.pool.tasks,
        standings=_standings(state),
        best=best,
        parent=(best.better_start or best.candidate) if best else state.best_start,
        read=journal.get,
        trace=_trace(journal, state.events),
        briefing=briefing,
        pools=_pools(state.selector.pool),
        solvability=_solvability(state),
        seconds=seconds,
        disclosure=state.selector.protocol.disclosure(state.selector.draw_per),
    )


def _seed(seed: int, round: int) -> int:
    """A different seed for every round."""
    return int(np.random.SeedSequence([seed, round]).generate_state(1, np.uint64)[0] >> 1)


def _standings(state: RunState) -> tuple[Standing, ...]:
    """What is known of every candidate; deltas are against those of earlier rounds only."""
    made: list[Standing] = []
    best = [-math.inf]  # before each round
    for known in state.candidates.values():
        while len(best) <= known.candidate.round:
            best.append(max((s.estimate.value for s in made if s.estimate), default=-math.inf))
        made.append(_standing(state, known, best[known.candidate.round]))
    return tuple(made)


def _standing(state: RunState, known: CandidateState, before: float) -> Standing:
    evaluated = known.status == Status.EVALUATED
    outcomes: dict[str, float | Missing] = state.selector.scores(known.name) if evaluated else {}
    estimate = state.estimate(known.name)
    return Standing(
        candidate=known.candidate,
        status=known.status.value,
        reason=known.reason,
        estimate=estimate,
        outcomes=outcomes,
        delta=estimate.value - before if estimate is not None and math.isfinite(before) else None,
    )


def _trace(journal: Journal, until: int) -> Callable[[str, str], str | None]:
    """A function that finds traces; it reads the journal once, when it is first called."""

    @cache
    def addresses() -> dict[tuple[str, str], str]:
        rows = [
            (event["trial"], (event["candidate"], event["task"]), event["trace"])
            for event in journal.events(until=until)
            if event["type"] == "outcome" and "trace" in event and "split" not in event
        ]  # sorted by trial, because trials end in any order
        return {cell: address for _, cell, address in sorted(rows, key=itemgetter(0))}

    def trace(candidate: str, task: str) -> str | None:
        found = addresses().get((candidate, task))
        return None if found is None else journal.get(found).decode()

    return trace


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


def announced_seconds(seconds: float) -> float:
    """The time limit announced to a proposer, which leaves it time to submit what it has."""
    return seconds - min(_SPARE, 0.1 * seconds)


Ask = Callable[[View], Awaitable[object]]
Take = Callable[[Proposed, str], dict[str, Any]]


class Proposing:
    """Requests proposals and repairs, and records them.

    If a proposer takes longer than `seconds`, or than the hours of the budget, its round has no
    candidate. If it raises an error or returns something invalid, it is asked again, by the rule
    `retries`. Then the run stops; when it is resumed, the same round is proposed again.
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
        """Request candidates for a round."""
        recorder, most = self._recorder, self._recorder.state.settings.candidates
        if recorder.state.proposing_since is None:
            recorder.record("proposing", {"round": round})

        def ask(view: View) -> Awaitable[object]:
            return self._proposer.propose(view, most)

        def take(proposed: Proposed, note: str) -> dict[str, Any]:
            accepted, notes = accept(
                recorder.state, recorder.journal, round, proposed.proposals, self._rules, most
            )
            rows = [known.to_json() for known in accepted]
            return {"round": round, "candidates": rows, **self._answer(proposed, note, *notes)}

        recorder.record("proposed", await self._asked(round, ask, take))

    async def repair(self, name: str) -> None:
        """Request the repair of a candidate that failed its check; refuse it if there is none."""
        recorder, proposer = self._recorder, self._proposer
        if not isinstance(proposer, Repairer):
            self.give_up(name, "")
            return
        known = recorder.state.candidates[name]
        before = known.candidate
        broken = Broken(proposal=Proposal.of(before, recorder.journal.get), error=known.reason)

        def ask(view: View) -> Awaitable[object]:
            return proposer.repair(view, broken)

        def take(proposed: Proposed, note: str) -> dict[str, Any]:
            after, why = accept_repair(
                recorder.state, recorder.journal, before, proposed, self._rules
            )
            return self._repair(name, after, proposed, note, why)

        recorder.record("repaired", await self._asked(before.round, ask, take))

    def give_up(self, name: str, why: str) -> None:
        """Record that a candidate is not repaired."""
        self._recorder.record("repaired", self._repair(name, None, Proposed(proposals=()), why))

    def _repair(
        self, name: str, after: CandidateState | None, proposed: Proposed, *notes: str
    ) -> dict[str, Any]:
        """The body of the event "repaired"; `after` is None if there was no repair."""
        row = {"candidate": None, "refused": "", "leaks": []} if after is None else after.to_json()
        to = row.pop("candidate")
        return {"candidate": name, "to": to, **row, **self._answer(proposed, *notes)}

    def _answer(self, proposed: Proposed, *notes: str) -> dict[str, Any]:
        """Cost, transcript and notes of an answer; the transcript is stored."""
        text = proposed.transcript
        kept = None if text is None else self._recorder.journal.put(text.encode(errors="replace"))
        return {
            "usage": proposed.usage.row,
            "transcript": kept,
            "note": visible(" ".join(filter(None, [*proposed.notes, *notes])), _LONGEST_NOTE),
        }

    async def _asked(self, round: int, ask: Ask, take: Take) -> dict[str, Any]:
        """The body of the event that records the answer of a proposer."""
        for attempt in count():
            try:
                return take(*await self._in_time(round, ask))
            except (StopRun, StoreError):  # a further answer would cost money and be lost as well
                raise
            except (Exception, SystemExit) as error:
                wait = self._retries.wait(attempt, self._rng, getattr(error, "retry_after", None))
                if wait is None:
                    why = described(error).rstrip(".")
                    raise StopRun(
                        f"the proposer failed {attempt + 1} times in round {round}: {why}. Fix it "
                        "and resume the run; nothing is lost, and the round is proposed again."
                    ) from error
                passing = isinstance(error, CoevolveError)
            await asyncio.sleep(wait if passing else 0.0)  # a service may recover; a bug will not
        raise AssertionError("there is a last attempt")

    async def _in_time(self, round: int, ask: Ask) -> tuple[Proposed, str]:
        """The answer of a proposer, and a note if it took too long."""
        seconds = self._limit()
        view = self._view(round, announced_seconds(seconds))
        deadline = asyncio.timeout(seconds if math.isfinite(seconds) else None)
        try:
            async with deadline:
                return as_proposed(await ask(view)), ""
        except TimeoutError:
            if not deadline.expired():
                raise
            return Proposed(proposals=()), f"the proposer took longer than {seconds:,.0f} s."

    def _limit(self) -> float:
        """The seconds a proposal may take."""
        hours = self._recorder.state.settings.budget.hours
        left = math.inf if hours is None else 3600 * hours - self._recorder.journal.clock()
        return max(0.0, min(self._seconds, left))

    def _view(self, round: int, seconds: float) -> View:
        """What is known when a proposal begins, the same after an interruption."""
        journal, state = self._recorder.journal, self._recorder.state
        since = state.proposing_since
        if since is not None and since + 1 < state.events:  # more has happened since then
            state = fold(journal.skim(since + 1))
        return view_of(state, journal, round, briefing=self._rules.briefing, seconds=seconds)
