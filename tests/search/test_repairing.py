"""A candidate that fails its check goes back to its proposer, once."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from coevolve.core.outcomes import Usage
from coevolve.errors import StopRun
from coevolve.search.budget import Budget
from coevolve.search.candidate import Candidate
from coevolve.search.effects import fold
from coevolve.search.journal import MemoryJournal
from coevolve.search.proposal import Broken, Proposal, Proposed, View
from coevolve.search.run_state import RunState, Status
from coevolve.search.trials import Blame, Fault
from tests.search.snapshots import snapshot
from tests.search.stubs import StubExecutor, StubProposer, cuts, go_on, opened

SLIP = b"syntax error"


@dataclass
class Mending(StubProposer):
    """Slips in the second candidate of every round, and mends it when told."""

    given_back: list[Broken] = field(default_factory=list)
    mended: bytes = b"# mended"

    async def propose(self, view: View, count: int) -> Sequence[Proposal]:
        made = list(await super().propose(view, count))
        source = made[1].files["harness.py"]
        made[1] = replace(made[1], files={"harness.py": source + SLIP}, kind="explore")
        return made

    async def repair(self, view: View, broken: Broken) -> Proposed:
        self.given_back.append(broken)
        source = broken.proposal.files["harness.py"].replace(SLIP, self.mended)
        return Proposed(
            proposals=(replace(broken.proposal, files={"harness.py": source}),),
            usage=Usage(tokens_in=7),
            transcript="I see.",
        )


class MissingFiles(StubExecutor):
    """Refuses by the files of a candidate, as a check does."""

    def __init__(self, journal: MemoryJournal, blame: Blame = Blame.CANDIDATE) -> None:
        def refuse(candidate: Candidate) -> Fault | None:
            source = journal.get(candidate.files["harness.py"])
            if SLIP not in source:
                return None
            return Fault(blame=blame, kind="check", reason="line 3 is no Python.")

        super().__init__(refuse=refuse)


def run(
    proposer: StubProposer,
    *,
    rounds: int = 3,
    repair: bool = True,
    budget: Budget | None = None,
) -> tuple[RunState, MemoryJournal, StubExecutor]:
    journal = MemoryJournal()
    executor = MissingFiles(journal)
    opened(journal, rounds=rounds, repair=repair, budget=budget)
    return go_on(journal, executor, proposer), journal, executor


def test_a_mended_candidate_is_evaluated_under_its_name() -> None:
    proposer = Mending()
    state, journal, executor = run(proposer)
    assert [b.proposal.name for b in proposer.given_back] == ["r1-1", "r2-1", "r3-1"]
    first = proposer.given_back[0]
    assert first.error == "check failed: line 3 is no Python."
    assert (first.proposal.kind, first.proposal.hypothesis) == ("explore", "one more line helps")
    assert state.candidates["r1-1"].status == Status.EVALUATED
    files = state.candidates["r1-1"].candidate.files
    assert journal.get(files["harness.py"]).endswith(b"# mended")
    assert "r1-1" in {trial.candidate for trial in executor.ran}


def test_mending_is_paid_from_the_proposing_ledger_and_its_transcript_kept() -> None:
    state, journal, _ = run(Mending())
    assert state.proposing.tokens == 3 * 7
    assert journal.get(state.rounds[0].repairs["r1-1"]) == b"I see."


def test_a_second_slip_is_final() -> None:
    proposer = Mending(mended=b"# again a " + SLIP)
    state, _, executor = run(proposer)
    assert len(proposer.given_back) == 3
    assert state.candidates["r1-1"].status == Status.REFUSED
    assert state.candidates["r1-1"].reason == "check failed: line 3 is no Python."
    assert "r1-1" not in {trial.candidate for trial in executor.ran}


@pytest.mark.parametrize(
    ("mended", "note"), [(SLIP, "the files came back as they were."), (b"", "its files are those")]
)
def test_what_comes_back_unmended_or_as_a_copy_is_refused(mended: bytes, note: str) -> None:
    class Copying(Mending):
        async def repair(self, view: View, broken: Broken) -> Proposed:
            made = await super().repair(view, broken)
            if mended:
                return made
            files = view.files("r1-0")
            return replace(made, proposals=(replace(made.proposals[0], files=files),))

    state, journal, _ = run(Copying(mended=mended))
    assert state.candidates["r1-1"].status == Status.REFUSED
    event = next(event for event in journal.events() if event["type"] == "repaired")
    assert note in event["note"] + event["refused"]


def test_a_mended_candidate_is_not_its_own_parent() -> None:
    class Named(Mending):
        async def repair(self, view: View, broken: Broken) -> Proposed:
            made = await super().repair(view, broken)
            own = replace(made.proposals[0], parents=(broken.proposal.name, "plain"))
            return replace(made, proposals=(own,))

    state, _, _ = run(Named())
    assert state.candidates["r1-1"].candidate.parents == ("plain",)


def test_nothing_goes_back_without_a_proposer_that_mends() -> None:
    proposer = Mending()
    state, _, _ = run(proposer, repair=False)
    assert proposer.given_back == []
    assert state.candidates["r1-1"].reason == "check failed: line 3 is no Python."


def test_without_money_nothing_is_mended() -> None:
    class Dear(Mending):
        async def propose(self, view: View, count: int) -> Proposed:  # type: ignore[override]
            made = await super().propose(view, count)
            return Proposed(proposals=tuple(made), usage=Usage(dollars=6.0))

    proposer = Dear()
    state, journal, _ = run(proposer, budget=Budget(dollars=10))
    assert proposer.given_back == []
    notes = [event["note"] for event in journal.events() if event["type"] == "repaired"]
    assert notes == ["the budget has no dollars left to mend it."]
    assert state.rounds[0].note == f"Mending r1-1: {notes[0]}"
    assert state.ended is not None


def test_a_repair_that_raises_stops_the_run_and_is_asked_for_again() -> None:
    class Raising(Mending):
        async def repair(self, view: View, broken: Broken) -> Proposed:
            raise ConnectionError("no line")

    journal = MemoryJournal()
    executor = MissingFiles(journal)
    opened(journal, repair=True)
    with pytest.raises(StopRun, match=r"failed 3 times in round 1: .*ConnectionError: no line"):
        go_on(journal, executor, Raising())
    assert snapshot(go_on(journal, executor, Mending())) == snapshot(run(Mending())[0])


def test_a_run_with_repairs_can_be_gone_on_with_from_every_event() -> None:
    state, journal, _ = run(Mending(), rounds=2)
    events = list(journal.events())
    assert snapshot(fold(iter(events))) == snapshot(state)
    for kept in cuts(events):
        part = MemoryJournal()
        part._contents.update(journal._contents)
        for event in events[:kept]:
            body = {k: v for k, v in event.items() if k not in ("seq", "type", "seal")}
            part.append([(event["type"], body)])
        found = go_on(part, MissingFiles(part), Mending())
        assert snapshot(found) == snapshot(state), events[kept - 1]
