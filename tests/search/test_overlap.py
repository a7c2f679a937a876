"""Proposing while evaluating, under caps."""

import asyncio
from collections import Counter

import pytest

from coevolve.core.outcomes import Usage
from coevolve.search.budget import Budget
from coevolve.search.journal import MemoryJournal
from coevolve.search.proposal import Proposed, View
from coevolve.search.trials import Result, Trial
from tests.search.stubs import STARTS, TEST, StubExecutor, StubProposer, go_on, opened


class Expensive(StubProposer):
    """Takes four dollars for a proposal, and longer than a round of trials."""

    async def propose(self, view: View, count: int) -> Proposed:  # type: ignore[override]
        made = await super().propose(view, count)
        await asyncio.sleep(0.3 if view.round > 1 else 0.0)
        return Proposed(proposals=tuple(made), usage=Usage(dollars=4.0))


@pytest.mark.parametrize(("price", "cap"), [(0.1, 15.5), (0.2, 16.0)])
def test_a_proposal_under_way_counts_and_ends_with_the_search(price: float, cap: float) -> None:
    def act(trial: Trial) -> Result:
        cost = price if trial.candidate.startswith("r") else 0.1
        return Result(score=1.0, usage=Usage(dollars=cost))

    journal = MemoryJournal()
    opened(journal, rounds=9, overlap=True, budget=Budget(dollars=cap))
    state = go_on(journal, StubExecutor(act=act), Expensive())
    assert state.spending().dollars <= cap
    events = list(journal.events())
    kinds = [event["type"] for event in events]
    assert Counter(kinds)["exhausted"] == 1
    assert "proposed" not in kinds[kinds.index("chosen") :]
    tested = [e for e in events if e["type"] == "outcome" and e.get("split") == "test"]
    assert len(tested) == (len(STARTS) + 1) * len(TEST)


def test_a_view_and_a_report_have_one_word_for_a_candidate_under_way() -> None:
    journal, proposer = MemoryJournal(), StubProposer()
    opened(journal, rounds=2, overlap=True)
    go_on(journal, proposer=proposer)
    assert {s.status for s in proposer.seen[1].standings if s.candidate.round == 1} == {"ready"}
