"""Best of n: the control without feedback."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from coevolve.benchmarks.textclass.blocks import TextBlocks
from coevolve.core.outcomes import Usage
from coevolve.proposers.best_of_n import best_of_n
from coevolve.proposers.offline import OfflineProposer
from coevolve.search.journal import MemoryJournal
from coevolve.search.proposal import Broken, Proposal, Proposed, Repairer, View
from tests.proposers.views import view as make_view
from tests.search.stubs import StubExecutor, go_on, opened


@dataclass
class Spy:
    """Proposes files that follow from the seed of the view, and remembers what it saw."""

    kinds: int = 1_000_000
    seen: list[View] = field(default_factory=list)

    async def propose(self, view: View, count: int) -> Proposed:
        self.seen.append(view)
        names = [f"c{(view.seed + i) % self.kinds}" for i in range(count)]
        made = tuple(Proposal(files={"harness.py": n.encode()}, name=n) for n in names)
        return Proposed(proposals=made, usage=Usage(tokens_in=10), transcript="thought")


class Mending(Spy):
    async def repair(self, view: View, broken: Broken) -> Sequence[Proposal]:
        self.seen.append(view)
        return [broken.proposal]


def searched(spy: Spy, rounds: int = 4) -> list[View]:
    journal = MemoryJournal()
    opened(journal, rounds=rounds)
    go_on(journal, StubExecutor(), best_of_n(spy))  # type: ignore[arg-type]
    return spy.seen


def test_every_round_looks_like_the_first_and_shows_no_outcome() -> None:
    views = searched(Spy())
    for view in views:
        assert view.round == 1
        assert [s.candidate.name for s in view.standings] == ["plain", "terse"]
        assert all(s.estimate is None and not s.outcomes for s in view.standings)
        assert (view.best, dict(view.solvability)) == (None, {})
        assert view.trace("plain", view.tasks[0]) is None
    assert len({view.seed for view in views}) == len(views)


def test_the_parent_is_the_best_starting_harness() -> None:
    first, *rest = searched(Spy())
    assert first.parent in ("plain", "terse")
    assert {view.parent for view in rest} == {first.parent}


def test_copies_of_earlier_candidates_are_asked_for_again() -> None:
    journal, spy = MemoryJournal(), Spy(kinds=9)
    opened(journal, rounds=3)
    state = go_on(journal, StubExecutor(), best_of_n(spy))  # type: ignore[arg-type]
    made = [entry.candidate.address for entry in state.candidates.values()]
    assert len(made) == len(set(made))
    assert len(state.selector.candidates) >= 5
    assert state.proposing.tokens == 10 * len(spy.seen)


def test_it_mends_where_the_inner_proposer_does() -> None:
    assert not isinstance(best_of_n(Spy()), Repairer)
    mending = best_of_n(Mending())
    assert isinstance(mending, Repairer)


def test_closing_it_closes_the_inner_one() -> None:
    class Open(Spy):
        closed = False

        async def close(self) -> None:
            self.closed = True

    spy = Open()
    asyncio.run(best_of_n(spy).close())
    assert spy.closed


def test_nothing_is_asked_again_that_would_not_come_in_time() -> None:
    class Slow(Spy):
        async def propose(self, view: View, count: int) -> Proposed:
            await asyncio.sleep(0.3)
            copy = Proposal(files={"harness.py": b"0"}, name="copy")
            return replace(await super().propose(view, count), proposals=(copy,))

    start = make_view(candidates={"plain": {"harness.py": b"0"}}, parent="plain")
    hurried, patient = Slow(), Slow()
    for slow, seconds in ((hurried, 0.5), (patient, 60.0)):
        asyncio.run(best_of_n(slow).propose(replace(start, seconds=seconds), 1))
    assert len(hurried.seen) == 1
    assert len(patient.seen) == 4
    assert patient.seen[-1].seconds < 59.5  # it is told what is left


def test_the_offline_proposer_draws_new_candidates_every_round() -> None:
    journal = MemoryJournal()
    opened(journal, rounds=6)
    offline = best_of_n(OfflineProposer(TextBlocks(), independent=True))
    state = go_on(journal, StubExecutor(), offline)  # type: ignore[arg-type]
    assert len(state.selector.candidates) == 12
    made = {entry.candidate.address for entry in state.candidates.values()}
    assert len(made) == 14


def test_what_was_paid_for_is_kept_when_a_later_attempt_fails() -> None:
    class Failing(Spy):
        async def propose(self, view: View, count: int) -> Proposed:
            if self.seen:
                raise OSError("the agent is gone")
            made = await super().propose(view, count)
            return replace(made, proposals=made.proposals[:1] * 2)

    start = make_view(candidates={"plain": {"harness.py": b"0"}}, parent="plain")
    made = asyncio.run(best_of_n(Failing()).propose(start, 2))
    assert len(made.proposals) == 1
    assert made.usage.tokens_in == 10
    assert made.notes[0] == "1 of 2 were copies of earlier candidates."
    assert "OSError: the agent is gone." in made.notes[1]


def test_fewer_than_asked_for_is_an_answer() -> None:
    class Sparing(Spy):
        async def propose(self, view: View, count: int) -> Proposed:
            made = await super().propose(view, count)
            return replace(made, proposals=made.proposals[:1])

    spy = Sparing()
    start = make_view(candidates={"plain": {"harness.py": b"0"}}, parent="plain")
    assert len(asyncio.run(best_of_n(spy).propose(start, 2)).proposals) == 1
    assert len(spy.seen) == 1


def test_a_candidate_that_is_none_is_left_to_the_engine() -> None:
    class Odd(Spy):
        async def propose(self, view: View, count: int) -> Proposed:
            made = await super().propose(view, count)
            odd = Proposal(files={"../x": b"1"}, name="odd")
            return replace(made, proposals=(odd, *made.proposals))

    journal = MemoryJournal()
    opened(journal, rounds=1)
    state = go_on(journal, StubExecutor(), best_of_n(Odd()))  # type: ignore[arg-type]
    assert "'../x'" in state.rounds[0].note
    assert len(state.rounds[0].names) == 1
