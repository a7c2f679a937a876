"""Evaluations on request join the journal, and have no effect on the search."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from coevolve.core.outcomes import Missing
from coevolve.errors import InputError, StateError
from coevolve.search.budget import Budget
from coevolve.search.effects import fold
from coevolve.search.journal import MemoryJournal
from coevolve.search.requesting import Requesting
from coevolve.search.run_state import RunState
from coevolve.search.trials import Blame, Fault, Result, Trial
from coevolve.store import RunStore
from tests.search.snapshots import snapshot
from tests.search.stubs import POOL, TEST, StubExecutor, beginning, cuts, go_on, opened

DOWN = Fault(blame=Blame.INFRASTRUCTURE, kind="outage", reason="no answer", shared=True)


def finished(**options: Any) -> tuple[MemoryJournal, RunState]:
    journal = MemoryJournal()
    opened(journal, **options)
    return journal, go_on(journal)


def request(
    journal: Any, *names: str, executor: StubExecutor | None = None, **what: Any
) -> RunState:
    requesting = Requesting(journal, executor or StubExecutor(), pause=0.001)
    asyncio.run(requesting.run(names, **what))
    return requesting.state


def without_scores(state: RunState) -> dict[str, Any]:
    """The search itself, without what was requested."""
    return {k: v for k, v in snapshot(state).items() if k not in ("rescored", "test")}


def test_a_candidate_gets_its_score_on_every_task_and_nothing_else_changes() -> None:
    journal, before = finished()
    executor = StubExecutor()
    state = request(journal, "r1-0", "r2-1", executor=executor)
    assert len(executor.ran) == 2 * len(POOL)
    assert {trial.split for trial in executor.ran} == {"rescore"}
    assert {trial.state for trial in executor.ran} == {
        before.candidates[name].state for name in ("r1-0", "r2-1")
    }
    assert state.rescored.estimate("r1-0").exact
    assert without_scores(state) == without_scores(before)
    assert state.spending().trials == before.spending().trials
    assert state.spending().hours == pytest.approx(before.spending().hours)
    assert state.requested_seconds > 0


def test_what_is_recorded_is_not_run_again() -> None:
    journal, _ = finished()
    request(journal, "r1-0")
    again = StubExecutor()
    request(journal, "r1-0", "r1-1", executor=again)
    assert {trial.candidate for trial in again.ran} == {"r1-1"}
    events = len(list(journal.events()))
    request(journal, "r1-0", "r1-1", executor=again)
    assert len(list(journal.events())) == events


def test_an_interrupted_request_continues_where_it_stopped() -> None:
    journal, before = finished()
    whole = request(journal, "r1-0", "r2-1")
    events = list(journal.events())
    for kept in cuts(events, since=before.events + 1):
        part, executor = beginning(journal, kept), StubExecutor()
        known = sum(event["type"] == "scored" for event in events[:kept])
        state = request(part, "r1-0", "r2-1", executor=executor)
        assert len(executor.ran) == 2 * len(POOL) - known
        for name in ("r1-0", "r2-1"):
            assert state.rescored.estimate(name) == whole.rescored.estimate(name)


def test_a_run_that_was_stopped_anywhere_ends_as_without_the_request() -> None:
    journal, expected = finished(rounds=2)
    events = list(journal.events())
    first = next(n for n, e in enumerate(events) if e["type"] == "told")
    for kept in cuts(events, since=first + 1):
        part = beginning(journal, kept)
        request(part, "plain")
        state = go_on(part)
        assert snapshot(state)["selector"] == snapshot(expected)["selector"]
        assert state.chosen == expected.chosen
        assert state.tally.ledger.trials == expected.tally.ledger.trials


def test_a_journal_on_disk_is_read_with_and_without_its_summaries(tmp_path: Path) -> None:
    def stop_later(trial: Trial) -> Result | None:
        if len(executor.ran) > 70:
            raise KeyboardInterrupt
        return None

    executor = StubExecutor(act=stop_later)
    with RunStore.create(tmp_path) as store:
        opened(store, rounds=2)
        with pytest.raises(KeyboardInterrupt):
            go_on(store, executor)
    with RunStore.open(tmp_path) as store:
        assert fold(store.skim()).wave is not None
        request(store, "plain", "terse")
    with RunStore.open(tmp_path) as store:
        request(store, "terse", split="test")
        state = go_on(store)
        assert state.rescored.estimate("plain").exact
        assert snapshot(fold(store.events())) == snapshot(state) == snapshot(fold(store.skim()))


def test_a_budget_that_is_spent_does_not_stop_a_request() -> None:
    journal, before = finished(budget=Budget(trials=80), test=None)
    assert before.exhausted == "trials"
    name = next(n for n, c in before.candidates.items() if c.status == "evaluated" and not c.start)
    state = request(journal, name)
    assert state.rescored.estimate(name).exact
    assert state.exhausted == "trials"


def test_missing_outcomes_are_run_again_on_the_next_request() -> None:
    journal, _ = finished()
    down = Result(fault=DOWN)
    executor = StubExecutor(act=lambda trial: down if "law-1" in trial.task else None)
    state = request(journal, "r1-0", executor=executor)
    done = state.requested["rescore"].wave.done
    gone = sorted(cell.task for cell, score in done.items() if isinstance(score, Missing))
    assert gone == ["law-1", "law-10", "law-11"]
    assert not state.rescored.estimate("r1-0").exact
    again = StubExecutor()
    state = request(journal, "r1-0", executor=again)
    assert sorted(trial.task for trial in again.ran) == gone
    assert state.rescored.estimate("r1-0").tasks == len(POOL)


def test_the_sealed_test_counts_the_candidates_it_was_used_for() -> None:
    journal, before = finished()
    assert before.chosen is not None
    winner = before.chosen["candidate"]
    assert before.tested == [winner]
    other = next(n for n in before.candidates if n not in (*before.starts, winner))
    state = request(journal, other, split="test")
    assert state.tested == [winner, other]
    assert state.test is not None
    assert state.test.estimate(other).tasks == len(TEST)


def test_what_cannot_be_requested_is_refused_and_leaves_no_event() -> None:
    def refuse(candidate: Any) -> Fault | None:
        bad = candidate.name == "r1-1"
        return Fault(blame=Blame.CANDIDATE, kind="check", reason="broken") if bad else None

    journal = MemoryJournal()
    opened(journal, test=None)
    go_on(journal, StubExecutor(refuse=refuse))
    events = len(list(journal.events()))
    for names, split, error, text in (
        (["r1-9"], "rescore", InputError, r"no candidate 'r1-9'. Did you mean 'r1-"),
        (["r1-1"], "rescore", StateError, "'r1-1' was refused"),
        (["r1-0", "r1-0"], "rescore", InputError, "'r1-0' is named twice"),
        (["r1-0"], "test", InputError, "no sealed test"),
    ):
        with pytest.raises(error, match=text):
            request(journal, *names, split=split)
    assert len(list(journal.events())) == events
