"""The view of a run that a proposer gets."""

from collections.abc import Callable
from functools import cache

import numpy as np

from coevolve.core.estimate import Estimate
from coevolve.core.outcomes import Missing
from coevolve.errors import NoOutcomeError
from coevolve.search.entry import Entry, Status
from coevolve.search.parts import Journal
from coevolve.search.proposing import Standing, View
from coevolve.search.state import RunState


def view_of(state: RunState, journal: Journal, round: int) -> View:
    """What is known before a round is proposed; a snapshot that later events do not change."""
    best = state.selector.best() if state.selector.candidates and _told(state) else None
    return View(
        round=round,
        seed=_seed(state.settings.seed, round),
        tasks=state.selector.pool.tasks,
        standings=tuple(_standing(state, entry) for entry in state.entries.values()),
        best=best,
        parent=(best.better_start or best.candidate) if best else best_start(state),
        read=journal.get,
        trace=_trace(journal, state.events),
    )


def best_start(state: RunState) -> str:
    """The starting harness with the highest score, the first of equals."""
    return max(state.starts, key=lambda name: state.selector.estimate(name).value)


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


def _standing(state: RunState, entry: Entry) -> Standing:
    name, evaluated = entry.candidate.name, entry.status == Status.EVALUATED
    outcomes: dict[str, float | Missing] = state.selector.scores(name) if evaluated else {}
    pending = entry.status not in (Status.EVALUATED, Status.REFUSED)
    return Standing(
        candidate=entry.candidate,
        status="pending" if pending else entry.status.value,
        reason=entry.reason,
        estimate=estimate_of(state, name),
        outcomes=outcomes,
    )


def _seed(seed: int, round: int) -> int:
    """A seed of its own for every round."""
    return int(np.random.SeedSequence([seed, round]).generate_state(1, np.uint64)[0] >> 1)


def _trace(journal: Journal, until: int) -> Callable[[str, str], str | None]:
    """How to find traces; the journal is read once, when the first of them is asked for."""

    @cache
    def addresses() -> dict[tuple[str, str], str]:
        return {
            (event["candidate"], event["task"]): event["trace"]
            for event in journal.events(until=until)
            if event["type"] == "outcome" and "trace" in event
        }

    def trace(candidate: str, task: str) -> str | None:
        found = addresses().get((candidate, task))
        return None if found is None else journal.get(found).decode()

    return trace
