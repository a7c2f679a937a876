"""Past outcomes in runs that are extended: before their end, after it, and in between."""

from pathlib import Path

import pytest

from coevolve.errors import StateError
from coevolve.search.budget import Budget
from coevolve.search.effects import fold
from coevolve.search.journal import MemoryJournal, Recorder
from coevolve.search.loop import import_past
from tests.search.snapshots import snapshot
from tests.search.stubs import POOL, StubExecutor, beginning, cuts, go_on, opened
from tests.search.test_benchmark_version import OLD, session
from tests.search.test_extending import extend, searched
from tests.search.test_importing import begun, of_starts, past, phase_0

OTHERS = [
    (f"old-{n}", task, (n + at) % 2, 0) for n in range(3) for at, task in enumerate(POOL.tasks)
]


@pytest.mark.parametrize("protocol", ["task-coevolve", "joint"])
def test_results_imported_after_the_end_count_from_the_extension_on(
    tmp_path: Path, protocol: str
) -> None:
    journal, other = MemoryJournal(), MemoryJournal()
    results = past(tmp_path, *OTHERS, ("plain", POOL.tasks[0], 1, 5))
    for one in (journal, other):
        opened(one, rounds=1, protocol=protocol)
    before = searched(go_on(journal))
    go_on(other)
    done = import_past(Recorder(journal), results)
    assert (done.phase_0, done.observed) == (0, len(results))
    ended = fold(journal.events())
    assert searched(ended) == before
    assert ended.selector.observed == ()
    with pytest.raises(StateError, match="imported before"):
        import_past(Recorder(journal), results)
    extend(journal, rounds=2)
    extend(other, rounds=2)
    import_past(Recorder(other), results)
    state = go_on(journal)
    assert "past:old-1" in state.selector.observed
    assert searched(state) == searched(go_on(other))
    assert snapshot(fold(journal.events())) == snapshot(state)


def test_the_rest_of_a_phase_0_that_a_budget_cut_can_be_imported(tmp_path: Path) -> None:
    journal, executor = MemoryJournal(), StubExecutor(capacity=1)
    opened(journal, rounds=1, budget=Budget(dollars=0.1))
    cut = go_on(journal, executor).cut
    assert cut is not None
    assert cut.open
    ran = set(of_starts(executor))
    done = import_past(Recorder(journal), past(tmp_path, *phase_0("plain", "terse")))
    assert (done.phase_0, done.observed) == (len(cut.open), len(cut.done))
    executor.ran.clear()
    extend(journal, rounds=1)
    state = go_on(journal, executor)
    assert (state.ended or {})["why"] == "finished"
    assert ran
    assert of_starts(executor) == []
    assert snapshot(fold(journal.events())) == snapshot(state)


def test_a_run_with_history_is_extended_and_resumed_from_every_event(tmp_path: Path) -> None:
    journal = MemoryJournal()
    begun(past(tmp_path, *phase_0("plain"), *OTHERS), journal, rounds=1, candidates=1)
    go_on(journal)
    ended = len(list(journal.events()))
    import_past(Recorder(journal), past(tmp_path, ("new", POOL.tasks[1], 1, 0), name="b.csv"))
    extend(journal, rounds=2)
    expected = snapshot(go_on(journal))
    events = list(journal.events())
    for kept in cuts(events, since=ended + 2):
        assert snapshot(go_on(beginning(journal, kept))) == expected, events[kept - 1]


def test_history_of_a_run_without_a_fingerprint(tmp_path: Path) -> None:
    journal = MemoryJournal()
    begun(past(tmp_path, *phase_0("plain")), journal, rounds=1, candidates=1, test=None)
    assert go_on(journal).fingerprint is None
    extend(journal, rounds=2)
    state = session(journal, OLD)
    assert (state.fingerprint, state.changes) == (OLD, [])
    assert [one.phase_0 for one in state.past.imports] == [len(POOL)]
