"""Past outcomes in a run: they stand for Phase 0, or inform the selector."""

from pathlib import Path
from typing import Any

import pytest

from coevolve.core.pool import Pool
from coevolve.core.selector import Selector
from coevolve.errors import ConfigError, HistoryError, StateError
from coevolve.past_results import PastResults, read_past
from coevolve.search.budget import Budget, Settings
from coevolve.search.candidate import Candidate
from coevolve.search.effects import fold
from coevolve.search.journal import MemoryJournal, Recorder
from coevolve.search.loop import import_past, open_run
from coevolve.search.past_outcomes import Importing
from coevolve.search.run_state import RunState
from coevolve.store import RunStore
from coevolve.views.outcome_rows import outcome_rows
from coevolve.views.report import report
from tests.search.snapshots import snapshot
from tests.search.stubs import (
    POOL,
    STARTS,
    TEST,
    StubExecutor,
    beginning,
    chance,
    cuts,
    go_on,
    opened,
)


def truth(name: str, task: str) -> float:
    """The score that the stub executor would give a starting harness."""
    return float(chance("solved", Candidate.of(STARTS[name], name=name).address, task) < 0.5)


def past(folder: Path, *rows: tuple[object, ...], name: str = "past.csv") -> PastResults:
    path = folder / name
    lines = [",".join(map(str, row)) for row in (("candidate", "task", "score", "trial"), *rows)]
    path.write_text("\n".join(lines) + "\n")
    return read_past(path)


def phase_0(*names: str, tasks: Any = POOL.tasks) -> list[tuple[object, ...]]:
    return [(name, task, truth(name, task), 0) for name in names for task in tasks]


def begun(results: PastResults, journal: MemoryJournal | None = None, **options: Any) -> RunState:
    journal = journal or MemoryJournal()
    opened(journal, **options)
    recorder = Recorder(journal)
    import_past(recorder, results)
    return recorder.state


def of_starts(executor: StubExecutor) -> list[tuple[str, str]]:
    return [
        (t.candidate, t.task) for t in executor.ran if t.candidate in STARTS and t.split != "test"
    ]


@pytest.mark.parametrize("protocol", ["task-coevolve", "joint", "adaptive", "full", "naive"])
def test_they_can_stand_for_all_of_phase_0(tmp_path: Path, protocol: str) -> None:
    evaluated = MemoryJournal()
    opened(evaluated, protocol=protocol)
    expected = go_on(evaluated)
    journal, executor = MemoryJournal(), StubExecutor()
    begun(past(tmp_path, *phase_0("plain", "terse")), journal, protocol=protocol)
    state = go_on(journal, executor)
    assert not of_starts(executor)
    assert state.selector.scores("plain") == expected.selector.scores("plain")
    for name in expected.candidates:
        assert state.estimate(name) == expected.estimate(name)
    assert state.chosen == expected.chosen
    spared = expected.evaluating.trials - state.evaluating.trials
    assert spared == 2 * len(POOL)
    assert report(state).left == 0.0


def test_what_is_missing_is_evaluated(tmp_path: Path) -> None:
    journal, executor = MemoryJournal(), StubExecutor()
    begun(past(tmp_path, *phase_0("plain"), *phase_0("terse", tasks=POOL.tasks[:5])), journal)
    state = go_on(journal, executor)
    assert sorted(of_starts(executor)) == sorted(("terse", task) for task in POOL.tasks[5:])
    assert state.selector.scores("terse") == {t: truth("terse", t) for t in POOL.tasks}


def test_other_candidates_inform_the_history_and_are_not_those_of_the_run(
    tmp_path: Path,
) -> None:
    journal = MemoryJournal()
    rows = [("r1-0", task, 0, 0) for task in POOL.tasks[:3]]
    before = begun(past(tmp_path, *rows, *phase_0("plain", "terse")), journal).selector
    assert before.observed == ("past:r1-0",)
    assert before.history().count.tolist() == [1, 1, 1, *[0] * (len(POOL) - 3)]
    state = go_on(journal)
    assert "r1-0" in state.selector.candidates
    assert state.selector.observed == ("past:r1-0",)
    assert state.selector.estimate("r1-0").observed == 0


def test_further_trials_of_a_start_are_observed(tmp_path: Path) -> None:
    extra = [("plain", POOL.tasks[0], 0, trial) for trial in (1, 2)]
    journal = MemoryJournal()
    state = begun(past(tmp_path, *phase_0("plain"), *extra), journal)
    (done,) = state.past.imports
    assert (done.phase_0, done.observed) == (len(POOL), 2)
    assert go_on(journal).selector.scores("plain")[POOL.tasks[0]] == truth("plain", POOL.tasks[0])


def test_several_trials_are_given_by_their_numbers(tmp_path: Path) -> None:
    rows = [("plain", task, 1, trial) for task in POOL.tasks for trial in (1, 2)]
    journal, executor = MemoryJournal(), StubExecutor()
    begun(past(tmp_path, *rows), journal, trials=2)
    state = go_on(journal, executor)
    assert {name for name, _ in of_starts(executor)} == {"terse"}
    assert set(state.selector.scores("plain").values()) == {1.0}


def test_a_run_that_is_cut_anywhere_ends_the_same(tmp_path: Path) -> None:
    results = past(tmp_path, *phase_0("plain", tasks=POOL.tasks[:7]), ("old", "law-1", 1, 0))
    journal = MemoryJournal()
    begun(results, journal, rounds=2)
    expected = snapshot(go_on(journal))
    events = list(journal.events())
    assert snapshot(fold(iter(events))) == expected
    for kept in cuts(events, since=2):
        assert snapshot(go_on(beginning(journal, kept))) == expected


def test_they_may_come_in_the_middle_of_phase_0(tmp_path: Path) -> None:
    whole = MemoryJournal()
    opened(whole)
    go_on(whole)
    events = list(whole.events())
    begin = next(at for at, event in enumerate(events) if event["type"] == "outcome")
    with RunStore.create(tmp_path / "run") as store:
        opened(store)
        for event in events[1 : begin + 6]:
            body = {
                k: v for k, v in event.items() if k not in ("seq", "type", "seal", "at", "clock")
            }
            for content in whole._contents.values():
                store.put(content)
            store.append([(event["type"], body)])
        recorder = Recorder(store)
        done = import_past(recorder, past(tmp_path, *phase_0("plain", "terse")))
        assert done.phase_0 == 2 * len(POOL) - 6
        assert done.observed == 6
        assert recorder.state.wave is not None
        assert recorder.state.wave.complete
        executor = StubExecutor()
        state = go_on(store, executor)
        assert not of_starts(executor)
        assert snapshot(fold(store.skim())) == snapshot(fold(store.events())) == snapshot(state)


def test_after_phase_0_they_are_only_observed(tmp_path: Path) -> None:
    whole = MemoryJournal()
    opened(whole, protocol="joint")
    go_on(whole)
    at = next(e["seq"] for e in whole.events() if e["type"] == "asked")
    journal = beginning(whole, at)
    recorder = Recorder(journal)
    done = import_past(recorder, past(tmp_path, *phase_0("plain"), ("old", "law-1", 1, 0)))
    assert (done.phase_0, done.observed) == (0, len(POOL) + 1)
    state = go_on(journal)
    assert state.ended is not None
    assert snapshot(fold(journal.events())) == snapshot(state)


def test_the_same_contents_are_refused(tmp_path: Path) -> None:
    journal = MemoryJournal()
    state = begun(past(tmp_path, ("old", "law-1", 1, 0)), journal)
    again = past(tmp_path, ("old", "law-1", 1, 0), name="copy.csv")
    with pytest.raises(StateError, match=r"imported before, as 'past\.csv' \(event 1\); nothing"):
        import_past(Recorder(journal), again)
    assert len(list(journal.events())) == state.events


def test_known_outcomes_are_left_out_and_changed_ones_refused(tmp_path: Path) -> None:
    journal = MemoryJournal()
    rows = [("old", "law-1", 1, 0), ("plain", "law-1", 0, 0)]
    begun(past(tmp_path, *rows), journal)
    recorder = Recorder(journal)
    more = past(tmp_path, *rows, ("old", "law-2", 0, 0), name="more.csv")
    done = import_past(recorder, more)
    assert (done.phase_0, done.observed, done.known) == (0, 1, 2)
    for row in (("old", "law-1", 0, 0), ("plain", "law-1", 1, 0)):
        with pytest.raises(HistoryError, match=r"row 2, column 'score': it is \d, but an earlier"):
            import_past(recorder, past(tmp_path, row, name="changed.csv"))
    with pytest.raises(StateError, match="nothing to import: its 2 outcomes are known"):
        import_past(recorder, past(tmp_path, *reversed(rows), name="turned.csv"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("candidate,task,score\n", "it has no rows"),
        ("candidate,task,score\nold,law-1,\n", "no row has a score"),
        ("candidate,task,score,split\nold,law-1,1,test\n", "no row is of the split 'validation'"),
        ("candidate,task,score\nold,other,1\n", "no row has a task of the run"),
        ("candidate,task,score\nold,law-2,1\n", "its outcome is known"),
    ],
)
def test_a_file_without_anything_to_import_says_why(tmp_path: Path, text: str, why: str) -> None:
    journal = MemoryJournal()
    state = begun(past(tmp_path, ("old", "law-2", 1, 0)), journal)
    (tmp_path / "empty.csv").write_text(text)
    with pytest.raises(StateError, match=f"nothing to import: {why}"):
        import_past(Recorder(journal), read_past(tmp_path / "empty.csv"), skip_unknown=True)
    assert len(list(journal.events())) == state.events


def test_unknown_tasks_are_named_or_left_out(tmp_path: Path) -> None:
    journal = MemoryJournal()
    opened(journal)
    recorder = Recorder(journal)
    results = past(
        tmp_path, ("old", "law-1", 1, 0), ("old", "low-2", 1, 0), ("old", "test-0", 1, 0)
    )
    with pytest.raises(HistoryError, match=r"row 3, column 'task': the run has no task 'low-2'"):
        import_past(recorder, results)
    sealed = past(tmp_path, ("old", "test-0", 1, 0), name="sealed.csv")
    with pytest.raises(HistoryError, match="'test-0' is a task of the sealed test"):
        import_past(recorder, sealed)
    assert len(list(journal.events())) == 1
    done = import_past(recorder, results, skip_unknown=True)
    assert (done.rows, done.observed, done.left_out) == (3, 1, 2)


def test_a_budget_need_not_pay_for_what_is_given(tmp_path: Path) -> None:
    importing = Importing(pool=POOL, test=TEST, starts=list(STARTS), trials=1)
    event = importing.event(past(tmp_path, *phase_0("plain", "terse")))
    few = Settings(rounds=1, budget=Budget(trials=3 * len(TEST) + 9))
    options: dict[str, Any] = {"name": "x", "settings": few, "starts": STARTS, "test": TEST}
    with pytest.raises(ConfigError, match="is too small"):
        open_run(MemoryJournal(), selector=Selector(POOL), **options)
    journal = MemoryJournal()
    open_run(journal, selector=Selector(POOL), **options, imports=[event])
    state = go_on(journal)
    assert state.ended is not None
    assert state.evaluating.trials <= 3 * len(TEST) + 9


def test_they_are_exported_with_their_file(tmp_path: Path) -> None:
    path = tmp_path / "past.csv"
    path.write_text("candidate,task,score,cost\nplain,law-0,1,0.5\nold,law-0,0,2\n")
    journal = MemoryJournal()
    begun(read_past(path), journal)
    (row,) = outcome_rows(journal.events())
    found = (row.candidate, row.task, row.pool, row.score, row.dollars, row.imported)
    assert found == ("plain", "law-0", "law", 1.0, 0.5, "past.csv")


class TestOneStartingHarness:
    @pytest.mark.parametrize(
        "protocol",
        ["task-coevolve", "joint", "adaptive", "cost-aware", "full", "naive", "random-estimate"],
    )
    def test_a_run_goes_through_every_phase(self, protocol: str) -> None:
        journal = MemoryJournal()
        open_run(
            journal,
            name="one",
            settings=Settings(rounds=2, candidates=2),
            selector=Selector(POOL, protocol=protocol, fraction=0.4),
            starts={"plain": STARTS["plain"]},
            test=TEST,
        )
        state = go_on(journal, StubExecutor(faults=0.2))
        assert state.ended is not None
        assert state.selector.starts == ("plain",)
        assert state.chosen is not None
        assert state.chosen["candidate"] in state.selector.candidates
        assert report(state).candidate("plain").test is not None
        assert snapshot(fold(journal.events())) == snapshot(state)

    def test_none_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="a search needs a starting harness, got none"):
            open_run(
                MemoryJournal(),
                name="none",
                settings=Settings(rounds=1),
                selector=Selector(Pool(["a"])),
                starts={},
            )
