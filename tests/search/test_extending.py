"""A run with new limits continues, and ends as one that had these limits from the start."""

from typing import Any

import pytest

from coevolve.core.outcomes import Usage
from coevolve.errors import EventError
from coevolve.search.budget import Budget
from coevolve.search.effects import apply, fold
from coevolve.search.journal import MemoryJournal, Recorder
from coevolve.search.run_state import RunState
from coevolve.search.trials import Result, Trial
from tests.effort import first
from tests.search.snapshots import snapshot
from tests.search.stubs import (
    POOL,
    TEST,
    StubExecutor,
    beginning,
    chance,
    cuts,
    go_on,
    opened,
    whole_run,
)

ALL = len(POOL) * 2
"""Trials of Phase 0."""


def extend(journal: MemoryJournal, *, rounds: int = 3, **caps: float) -> None:
    budget = Budget(**caps).to_json()  # type: ignore[arg-type]
    body = {"rounds": rounds, "budget": budget, "complete": True}
    Recorder(journal).record("extended", body)


def searched(state: RunState) -> dict[str, Any]:
    """What the search itself came to, without what was spent on more than one sealed test."""
    found, names = snapshot(state), [*state.selector.starts, *state.selector.candidates]
    return {
        **{key: found[key] for key in ("entries", "turns", "chosen", "ended")},
        "scores": {name: state.selector.scores(name) for name in names},
        "estimates": {name: str(state.selector.estimate(name)) for name in names},
    }


def test_a_run_that_ended_by_its_rounds_continues() -> None:
    journal = MemoryJournal()
    opened(journal, rounds=2)
    assert len(go_on(journal).rounds) == 2
    extend(journal, rounds=4)
    state = go_on(journal)
    assert searched(state) == searched(whole_run(rounds=4))


@pytest.mark.parametrize("protocol", ["task-coevolve", "joint"])
@pytest.mark.parametrize("test", first(1, [TEST, None]))
@pytest.mark.parametrize("trials", first(1, [1, 2]))
@pytest.mark.parametrize("share", [0.3, 0.9, 1.02, 1.3, 1.4, 1.77])
def test_trials_that_a_budget_cut_off_are_run_first(
    protocol: str, test: Any, trials: int, share: float
) -> None:
    """The cap falls into Phase 0, between rounds, or into a round."""
    journal, executor = MemoryJournal(), StubExecutor(faults=0.2)
    closing = 0 if test is None else 3 * len(TEST) * trials
    few = Budget(trials=int(share * ALL * trials) + closing)
    if share < 1:  # refused when a run is opened, so that only dollars can end Phase 0
        few = Budget(dollars=0.01 * few.trials)  # type: ignore[operator]
    opened(journal, protocol=protocol, test=test, trials=trials, budget=few)
    before = go_on(journal, executor)
    assert (before.ended or {})["why"].startswith("budget: ")
    extend(journal)
    state = go_on(journal, executor)
    alone = MemoryJournal()
    opened(alone, protocol=protocol, test=test, trials=trials)
    assert searched(state) == searched(go_on(alone, StubExecutor(faults=0.2)))
    assert state.test is None or len(state.test.starts) in (3, 4)
    assert snapshot(fold(journal.events())) == snapshot(state)


@pytest.mark.parametrize("cap", [{"trials": 75}, {"dollars": 0.2}, {"dollars": 0.6}])
def test_an_extended_run_can_be_resumed_from_every_event(cap: dict[str, float]) -> None:
    journal = MemoryJournal()
    opened(journal, rounds=2, candidates=1, budget=Budget(**cap))  # type: ignore[arg-type]
    go_on(journal)
    ended = sum(1 for _ in journal.events())
    extend(journal, rounds=2)
    expected = snapshot(go_on(journal))
    events = list(journal.events())
    for kept in cuts(events, since=ended + 1):
        part = beginning(journal, kept)
        assert snapshot(go_on(part)) == expected, events[kept - 1]


def test_outcomes_that_a_later_event_sums_up_need_not_be_read() -> None:
    journal = MemoryJournal()
    opened(journal, budget=Budget(trials=ALL + 3 * len(TEST) + 5))
    go_on(journal)
    extend(journal)
    state = go_on(journal)
    summed = [e for e in journal.events() if e["type"] not in ("outcome", "failed", "reopened")]
    assert snapshot(fold(summed)) == snapshot(state)


def test_a_run_that_has_not_ended_only_gets_the_limits() -> None:
    journal = MemoryJournal()
    opened(journal, rounds=1)
    extend(journal, rounds=3)
    assert snapshot(go_on(journal)) == snapshot(whole_run(rounds=3))


def test_only_a_new_winner_is_scored_again_on_what_was_sealed() -> None:
    journal, executor = MemoryJournal(), StubExecutor()
    opened(journal, rounds=1, rescore=True)
    go_on(journal, executor)
    first = {t.candidate for t in executor.ran if t.split == "test"}
    executor.ran.clear()
    extend(journal, rounds=6)
    state = go_on(journal, executor)
    winner = (state.chosen or {})["candidate"]
    for split in ("test", "rescore"):
        again = {t.candidate for t in executor.ran if t.split == split}
        assert again == ({winner} - first)


def test_a_sealed_test_that_has_run_takes_nothing_from_a_new_cap() -> None:
    """After Phase 0 and a first sealed test, only that of a new winner needs trials."""
    journal, executor = MemoryJournal(), StubExecutor(capacity=1)
    opened(journal, rounds=1, candidates=1)
    spent = go_on(journal, executor).evaluating.trials
    executor.ran.clear()
    cap = spent + 9 + len(TEST)  # a round has 9 trials at most
    extend(journal, rounds=2, trials=cap)
    state = go_on(journal, executor)
    assert any(t.split == "validation" for t in executor.ran)
    assert (state.ended or {})["why"] == "finished"
    assert state.evaluating.trials <= cap


def dear(split: str) -> StubExecutor:
    """Trials of a split cost more than those before it, so that a budget ends within it."""

    def act(trial: Trial) -> Result | None:
        if trial.split != split:
            return None
        solved = chance("solved", trial.candidate, trial.task) < 0.5
        return Result(score=float(solved), usage=Usage(dollars=0.05))

    return StubExecutor(capacity=1, act=act)


@pytest.mark.parametrize(("split", "dollars"), [("test", 1.0), ("test", 1.25), ("rescore", 1.1)])
def test_a_sealed_test_and_a_rescoring_that_a_budget_cut_are_completed(
    split: str, dollars: float
) -> None:
    journal, executor = MemoryJournal(), dear(split)
    opened(journal, rounds=1, candidates=1, rescore=True, budget=Budget(dollars=dollars))
    before = go_on(journal, executor)
    assert (before.ended or {})["why"] == "budget: dollars"
    ended = before.events
    assert any(trial.split == split for trial in executor.ran)
    extend(journal, rounds=1)
    state, whole = go_on(journal, executor), MemoryJournal()
    opened(whole, rounds=1, candidates=1, rescore=True)
    alone = go_on(whole, dear(split))
    for found, expected in ((state.test, alone.test), (state.rescored, alone.rescored)):
        assert found is not None
        assert expected is not None
        assert {n: found.scores(n) for n in found.starts} == {
            n: expected.scores(n) for n in expected.starts
        }
    cells = [(trial.split, *trial.cell) for trial in executor.ran]
    assert len(cells) == len(set(cells)), "a trial was paid twice"
    assert state.evaluating.trials == alone.evaluating.trials
    assert snapshot(fold(journal.events())) == snapshot(state)
    for kept in cuts(list(journal.events()), since=ended + 1):
        assert snapshot(go_on(beginning(journal, kept), dear(split))) == snapshot(state)


def test_an_extension_by_an_earlier_version_left_a_cut_test_as_it_was() -> None:
    journal = MemoryJournal()
    opened(journal, rounds=1, candidates=1, budget=Budget(dollars=1.0))
    go_on(journal, dear("test"))
    body = {"rounds": 1, "budget": Budget().to_json()}
    Recorder(journal).record("extended", body)
    executor = dear("test")
    state = go_on(journal, executor)
    assert executor.ran == []
    assert (state.ended or {})["why"] == "finished"


def test_an_event_that_does_not_fit_says_what_to_do() -> None:
    journal = MemoryJournal()
    opened(journal)
    state = fold(journal.events())
    stamps = {"seq": 1, "at": 0.0, "clock": 0.0}
    for event, why in (
        ({"type": "checked", "candidate": "nobody"}, r"'nobody' is missing"),
        ({"type": "asked", "events": [{"seq": 1}], "final": False}, "is not an event"),
        ({"type": "danced"}, "has the unknown type 'danced'"),
    ):
        with pytest.raises(EventError, match=f"{why}.*run `coevolve doctor`"):
            apply(state, {**stamps, **event})
