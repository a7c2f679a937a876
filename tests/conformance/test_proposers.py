"""What every proposer promises the engine."""

from typing import Any

import pytest

from coevolve.proposers import FunctionProposer, Scripted
from coevolve.search.proposal import Broken, Proposal, Proposed, View
from coevolve.testing import assert_proposer, check_proposer, sample_views


def child(view: View, count: int) -> list[dict[str, Any]]:
    body = view.files(view.parent)["harness.py"].decode()
    return [
        {
            "name": f"r{view.round}-{index}",
            "files": {"harness.py": f"# {view.round} {index}\n{body}"},
            "parents": [view.parent],
        }
        for index in range(count)
    ]


def test_proposers_conform() -> None:
    assert_proposer(FunctionProposer(child))
    new = [Proposal(name=name, files={"harness.py": b""}) for name in "abcd"]
    assert_proposer(Scripted(new))
    assert {one.kind for one in check_proposer(FunctionProposer(child))} == {"passed"}


class Repairing:
    """A proposer that repairs, and can be closed once."""

    def __init__(self, repairs: int = 1) -> None:
        self.repairs, self.open = repairs, True

    async def propose(self, view: View, count: int) -> Proposed:
        return Proposed(proposals=())

    async def repair(self, view: View, broken: Broken) -> list[Proposal]:
        return [broken.proposal] * self.repairs

    async def close(self) -> None:
        assert self.open, "already closed"
        self.open = False


def test_repair_and_closing_are_tried() -> None:
    found = {one.about: one for one in check_proposer(Repairing())}
    assert found["round 1"].kind == "noted"
    assert found["repair"].kind == "passed"
    assert "already closed" in found["close"].detail
    found = {one.about: one for one in check_proposer(Repairing(2))}
    assert found["repair"].detail == "2 proposals for one broken candidate"


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda view, count: 3, "return a list of Proposal"),
        (lambda view, count: child(view, count + 1), "3 proposals, but was asked for 2"),
        (lambda view, count: [{**child(view, 1)[0], "parents": ["uper"]}], "mean 'upper'"),
        (lambda view, count: dict[str, int]()["x"], "KeyError: 'x'"),
        (lambda view, count: [{"name": "x", "files": {"../x": ""}}], "'../x'"),
    ],
)
def test_what_the_engine_cannot_rely_on_is_found(made: Any, message: str) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_proposer(FunctionProposer(made))
    assert message in str(caught.value)


def test_copies_are_noted() -> None:
    def copies(view: View, count: int) -> list[dict[str, Any]]:
        return [{"name": "same", "files": view.files(view.parent)}]

    notes = [one.detail for one in check_proposer(FunctionProposer(copies)) if one.kind == "noted"]
    assert notes[0].startswith("'same' is a copy of ")


def test_the_sample_views_hold_what_real_ones_hold() -> None:
    first, second = sample_views()
    assert [standing.candidate.name for standing in first.standings] == ["upper", "same"]
    assert all(standing.estimate is not None for standing in second.standings)
    assert second.best is not None
    assert second.best.candidate == "title"
    assert "answer(task)" in second.briefing
    assert second.trace("title", second.tasks[0]) is not None


def test_sample_views_of_other_starting_harnesses() -> None:
    starts = {"one": {"harness.py": b"LINES = 1\n"}, "two": {"harness.py": b"LINES = 2\n"}}
    first, second = sample_views(starts)
    assert {
        one.candidate.name: first.files(one.candidate.name) for one in first.standings
    } == starts
    assert second.standing("title").candidate.parents == (first.parent,)
