"""A benchmark that has changed since trials were scored stops the run, or is recorded."""

import asyncio

import pytest

from coevolve.errors import ChangedBenchmarkError
from coevolve.search.benchmark_version import mixture
from coevolve.search.effects import fold
from coevolve.search.journal import MemoryJournal, Recorder
from coevolve.search.loop import Search
from coevolve.search.run_state import RunState
from coevolve.views.event_lines import Narrator
from tests.search.stubs import StubExecutor, StubProposer, beginning, cuts, go_on, opened

OLD = {"benchmark.py": "1", "data/x.jsonl": "2"}
NEW = {"benchmark.py": "3", "data/x.jsonl": "2", "judge.py": "4"}


def session(journal: MemoryJournal, parts: dict[str, str], *, accept: bool = False) -> RunState:
    search = Search(
        journal,
        StubExecutor(),
        StubProposer(),
        pause=0.001,
        fingerprint=parts,
        accept_change=accept,
    )
    return asyncio.run(search.run())


def extended() -> MemoryJournal:
    """A run of one round that ended and got another one."""
    journal = MemoryJournal()
    opened(journal, rounds=1, candidates=1, test=None)
    session(journal, OLD)
    state = Recorder(journal).state
    body = {"rounds": 2, "budget": state.settings.budget.to_json(), "complete": True}
    Recorder(journal).record("extended", body)
    return journal


def test_a_change_stops_the_run_and_is_named() -> None:
    journal = extended()
    count = len(list(journal.events()))
    with pytest.raises(ChangedBenchmarkError) as caught:
        session(journal, NEW)
    assert "benchmark.py: changed\n  judge.py: new\n" in str(caught.value)
    assert "--accept-change" in str(caught.value)
    assert len(list(journal.events())) == count
    assert mixture(session(journal, OLD)) == ""


def test_an_accepted_change_is_recorded_and_estimates_say_so() -> None:
    journal = extended()
    state = session(journal, NEW, accept=True)
    expected = (
        "scores mix 2 versions of the benchmark: benchmark.py, judge.py changed after round 1 "
    )
    assert mixture(state).startswith(expected)
    assert mixture(fold(journal.events())) == mixture(state)
    count = sum(event["type"] == "fingerprinted" for event in journal.events())
    assert count == 2
    events = list(journal.events())
    for kept in cuts(events):
        part = beginning(journal, kept)
        before = fold(part.events())
        again = session(part, NEW if before.changes else OLD, accept=True)
        assert again.fingerprint == (NEW if before.changes else OLD)
        assert again.changes == before.changes


def test_before_the_first_score_a_change_needs_no_decision() -> None:
    journal = MemoryJournal()
    opened(journal, rounds=1, candidates=1, test=None)
    Recorder(journal).record("fingerprinted", {"parts": OLD, "changed": []})
    state = session(journal, NEW)
    assert state.fingerprint == NEW
    assert mixture(state) == ""


def test_a_run_of_an_earlier_version_gets_a_fingerprint_with_a_note() -> None:
    journal = MemoryJournal()
    opened(journal, rounds=1, candidates=1, test=None)
    go_on(journal)
    body = {"rounds": 2, "budget": fold(journal.events()).settings.budget.to_json()}
    Recorder(journal).record("extended", body)
    before = fold(journal.events())
    assert before.fingerprint is None
    lines: list[str] = []
    narrator = Narrator(before)
    recorder = Recorder(journal, lambda event: lines.extend(narrator.lines(event)))
    narrator.state = recorder.state
    recorder.record("fingerprinted", {"parts": OLD, "changed": []})
    assert "an earlier version began this run without a fingerprint" in lines[0]
    assert session(journal, OLD).fingerprint == OLD
