"""The view of a run that a proposer gets."""

import math
from collections.abc import Callable
from functools import cache
from operator import itemgetter

import numpy as np

from coevolve.core.estimate import Estimate
from coevolve.core.outcomes import Missing
from coevolve.core.pool import Pool
from coevolve.errors import NoOutcomeError
from coevolve.search.entry import Entry, Status
from coevolve.search.parts import Journal
from coevolve.search.proposal import Solvability, Standing, View
from coevolve.search.state import RunState


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
    if state.entries[name].status != Status.EVALUATED:
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
    for entry in state.entries.values():
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


def _standing(state: RunState, entry: Entry, before: float) -> Standing:
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
