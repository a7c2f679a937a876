"""What the engine makes of a proposer's answer, and what it tells a proposer of its time."""

import asyncio
from dataclasses import replace

import pytest

from coevolve.errors import StoreError
from coevolve.search.journal import MemoryJournal
from coevolve.search.loop import Search
from coevolve.search.proposal import Proposal, Proposed, View
from coevolve.search.proposing import view_of
from coevolve.search.run_state import RunState
from coevolve.search.trials import Result, Trial
from tests.search.stubs import StubExecutor, StubProposer, go_on, opened

TALK = "\x1b[2J\x9b31mred\u202e\ud800"


def searched(
    proposer: StubProposer, journal: MemoryJournal | None = None, seconds: float = 60.0
) -> RunState:
    journal = journal or MemoryJournal()
    opened(journal, rounds=1)
    search = Search(journal, StubExecutor(), proposer, proposal_seconds=seconds)
    return asyncio.run(search.run())


def test_a_proposer_is_told_less_time_than_it_has_so_that_it_can_submit() -> None:
    proposer = StubProposer()
    searched(proposer, seconds=60.0)
    searched(proposer, seconds=3600.0)
    short, long = (view.seconds for view in proposer.seen)
    assert 0 < short <= 54
    assert 3500 < long <= 3570


class Talkative(StubProposer):
    """Says what no terminal should obey, and too much of it."""

    async def propose(self, view: View, count: int) -> Proposed:  # type: ignore[override]
        made = list(await super().propose(view, count))
        words = (TALK, "a\nb", "x" * 500, *map(str, range(50)))
        made[0] = replace(made[0], hypothesis=TALK + 100_000 * "so", components=words)
        return Proposed(proposals=tuple(made), notes=(TALK, "y" * 100_000))


def test_what_a_proposer_says_is_fit_to_be_shown() -> None:
    state = searched(Talkative())
    candidate = state.candidates["r1-0"].candidate
    assert len(candidate.hypothesis) <= 4_000
    assert len(candidate.components) <= 20
    assert max(map(len, candidate.components)) <= 80
    assert len(state.rounds[0].note) <= 10_000
    shown = [candidate.hypothesis, state.rounds[0].note, *candidate.components]
    assert all(text.isprintable() for text in shown)
    assert state.candidates["r1-1"].candidate.hypothesis == "one more line helps"


class Full(MemoryJournal):
    """A disk without room for what is proposed."""

    def put(self, data: bytes, *, durable: bool = False) -> str:
        if b"# 1." in data:
            raise StoreError("the disk is full.")
        return super().put(data, durable=durable)


def test_an_answer_that_cannot_be_kept_is_not_asked_for_again() -> None:
    proposer = StubProposer()
    with pytest.raises(StoreError, match="disk is full"):
        searched(proposer, Full())
    assert len(proposer.seen) == 1


def test_a_proposal_without_files_is_a_note() -> None:
    class Empty(StubProposer):
        async def propose(self, view: View, count: int) -> Proposed:  # type: ignore[override]
            return Proposed(proposals=(Proposal(files={}, name="nothing"),))

    state = searched(Empty())
    assert state.rounds[0].note == "candidate 'nothing' has no files."


def test_no_view_has_traces_of_the_sealed_test() -> None:
    journal = MemoryJournal()
    opened(journal, rounds=1)
    state = go_on(journal)
    view = view_of(state, journal, 2)
    assert view.trace("plain", view.tasks[0]) is not None
    assert state.test is not None
    assert all(view.trace("plain", task) is None for task in state.test.pool.tasks)


def test_of_several_trials_the_last_is_shown_whatever_ended_first() -> None:
    journal = MemoryJournal()
    opened(journal, rounds=1, trials=2)
    state = go_on(journal, StubExecutor(act=in_order))
    view = view_of(state, journal, 2)
    assert {view.trace("plain", task) for task in view.tasks} == {"1"}


def in_order(trial: Trial) -> Result:
    return Result(score=1.0, trace=str(trial.trial))
