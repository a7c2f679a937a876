"""A candidate that fails its check is sent back for repair, once."""

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
class Repairing(StubProposer):
    """Slips in the second candidate of every round, and repairs it when asked."""

    sent_back: list[Broken] = field(default_factory=list)
    repaired: bytes = b"# repaired"

    async def propose(self, view: View, count: int) -> Sequence[Proposal]:
        made = list(await super().propose(view, count))
        source = made[1].files["harness.py"]
        made[1] = replace(made[1], files={"harness.py": source + SLIP}, kind="explore")
        return made

    async def repair(self, view: View, broken: Broken) -> Proposed:
        self.sent_back.append(broken)
        source = broken.proposal.files["harness.py"].replace(SLIP, self.repaired)
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


def test_a_repaired_candidate_is_evaluated_under_its_name() -> None:
    proposer = Repairing()
    state, journal, executor = run(proposer)
    assert [b.proposal.name for b in proposer.sent_back] == ["r1-1", "r2-1", "r3-1"]
    first = proposer.sent_back[0]
    assert first.error == "check failed: line 3 is no Python."
    assert (first.proposal.kind, first.proposal.hypothesis) == ("explore", "one more line helps")
    assert state.candidates["r1-1"].status == Status.EVALUATED
    files = state.candidates["r1-1"].candidate.files
    assert journal.get(files["harness.py"]).endswith(b"# repaired")
    assert "r1-1" in {trial.candidate for trial in executor.ran}


def test_repairs_are_paid_from_the_proposing_ledger_and_their_transcripts_kept() -> None:
    state, journal, _ = run(Repairing())
    assert state.proposing.tokens == 3 * 7
    assert journal.get(state.rounds[0].repairs["r1-1"]) == b"I see."


def test_a_second_slip_is_final() -> None:
    proposer = Repairing(repaired=b"# again a " + SLIP)
    state, _, executor = run(proposer)
    assert len(proposer.sent_back) == 3
    assert state.candidates["r1-1"].status == Status.REFUSED
    assert state.candidates["r1-1"].reason == "check failed: line 3 is no Python."
    assert "r1-1" not in {trial.candidate for trial in executor.ran}


@pytest.mark.parametrize(
    ("repaired", "note"), [(SLIP, "the files did not change."), (b"", "it is a copy of")]
)
def test_a_repair_that_changes_nothing_or_copies_is_refused(repaired: bytes, note: str) -> None:
    class Copying(Repairing):
        async def repair(self, view: View, broken: Broken) -> Proposed:
            made = await super().repair(view, broken)
            if repaired:
                return made
            files = view.files("r1-0")
            return replace(made, proposals=(replace(made.proposals[0], files=files),))

    state, journal, _ = run(Copying(repaired=repaired))
    assert state.candidates["r1-1"].status == Status.REFUSED
    event = next(event for event in journal.events() if event["type"] == "repaired")
    assert note in event["note"] + event["refused"]


def test_a_repaired_candidate_is_not_its_own_parent() -> None:
    class Named(Repairing):
        async def repair(self, view: View, broken: Broken) -> Proposed:
            made = await super().repair(view, broken)
            own = replace(made.proposals[0], parents=(broken.proposal.name, "plain"))
            return replace(made, proposals=(own,))

    state, _, _ = run(Named())
    assert state.candidates["r1-1"].candidate.parents == ("plain",)


def test_nothing_is_sent_back_without_the_setting() -> None:
    proposer = Repairing()
    state, _, _ = run(proposer, repair=False)
    assert proposer.sent_back == []
    assert state.candidates["r1-1"].reason == "check failed: line 3 is no Python."


def test_without_money_nothing_is_repaired() -> None:
    class Expensive(Repairing):
        async def propose(self, view: View, count: int) -> Proposed:  # type: ignore[override]
            made = await super().propose(view, count)
            return Proposed(proposals=tuple(made), usage=Usage(dollars=6.0))

    proposer = Expensive()
    state, journal, _ = run(proposer, budget=Budget(dollars=10))
    assert proposer.sent_back == []
    notes = [event["note"] for event in journal.events() if event["type"] == "repaired"]
    assert notes == ["the budget has no dollars left for a repair."]
    assert state.rounds[0].note == f"Repair of r1-1: {notes[0]}"
    assert state.ended is not None


def test_a_repair_that_raises_stops_the_run_and_is_requested_again() -> None:
    class Raising(Repairing):
        async def repair(self, view: View, broken: Broken) -> Proposed:
            raise ConnectionError("no line")

    journal = MemoryJournal()
    executor = MissingFiles(journal)
    opened(journal, repair=True)
    with pytest.raises(StopRun, match=r"failed 3 times in round 1: .*ConnectionError: no line"):
        go_on(journal, executor, Raising())
    assert snapshot(go_on(journal, executor, Repairing())) == snapshot(run(Repairing())[0])


def test_a_run_with_repairs_can_be_continued_from_every_event() -> None:
    state, journal, _ = run(Repairing(), rounds=2)
    events = list(journal.events())
    assert snapshot(fold(iter(events))) == snapshot(state)
    for kept in cuts(events):
        part = MemoryJournal()
        part._contents.update(journal._contents)
        for event in events[:kept]:
            body = {k: v for k, v in event.items() if k not in ("seq", "type", "seal")}
            part.append([(event["type"], body)])
        found = go_on(part, MissingFiles(part), Repairing())
        assert snapshot(found) == snapshot(state), events[kept - 1]
