"""Events as lines of text."""

import asyncio

from coevolve.core.events import Event
from coevolve.formatting import CLIPPED
from coevolve.search.budget import Budget
from coevolve.search.candidate import Candidate
from coevolve.search.journal import MemoryJournal, Recorder
from coevolve.search.loop import Search
from coevolve.search.trials import Blame, Fault
from coevolve.views.event_lines import Narrator
from tests.search.stubs import StubExecutor, StubProposer, go_on, opened


def lines(**options: object) -> list[str]:
    """The lines of a whole run, without their times."""
    journal = MemoryJournal()
    opened(journal, **options)  # type: ignore[arg-type]
    found: list[str] = []

    def listen(event: Event) -> None:
        found.extend(line.partition("] ")[2] for line in narrator.lines(event))

    def refuse(candidate: Candidate) -> Fault | None:
        fault = Fault(blame=Blame.CANDIDATE, kind="import", reason="there is no function.")
        return fault if candidate.name == "r1-1" else None

    executor = StubExecutor(isolation_name="process", refuse=refuse)
    search = Search(journal, executor, StubProposer(), listen=listen, pause=0.001)
    narrator = Narrator(search.state)
    asyncio.run(search.run())
    return found


def test_a_run_in_lines() -> None:
    found = lines(rounds=1, rescore=True)
    assert found[0] == (
        "stub: 20 tasks and 6 sealed, 1 round of 2 candidates, protocol task-coevolve, "
        "3 workers, isolation process"
    )
    assert found[1].startswith("warning: candidates run as plain processes. They can read")
    assert found[2].startswith("phase 0 done: plain 0.")
    assert found[3] == "round 1 of 1: proposed r1-0, r1-1"
    assert found[4] == "r1-1 refused: check failed: there is no function."
    assert found[5].startswith("round 1 done: r1-0 ")
    assert "; best r1-0 " in found[5]
    assert found[6].startswith("chosen: r1-0 ")
    assert found[7].startswith("r1-0 on every validation task: 0.")
    assert found[8].startswith("sealed test: plain 0.")
    assert found[9] == "ended: finished"


def test_a_budget_that_ends_the_run() -> None:
    found = lines(budget=Budget(trials=62))
    (line,) = [line for line in found if line.startswith("budget of trials")]
    assert line.endswith("the next step may exceed it") or line.endswith("trials spent")
    assert found[-1] == "ended: budget: trials"


def test_new_limits_are_told_and_told_again_by_the_next_session() -> None:
    journal, found = MemoryJournal(), list[str]()
    opened(journal, rounds=1)
    go_on(journal)

    def listen(event: Event) -> None:
        found.extend(line.partition("] ")[2] for line in narrator.lines(event))

    recorder = Recorder(journal, listen)
    narrator = Narrator(recorder.state)
    budget = Budget(trials=1200, dollars=2)
    recorder.record("extended", {"rounds": 2, "budget": budget.to_json()})
    assert found == ["extended: 2 rounds, 1,200 trials, $2.00"]
    search = Search(journal, StubExecutor(), StubProposer(), listen=listen, pause=0.001)
    narrator = Narrator(search.state)
    asyncio.run(search.run())
    assert found[2] == "limits: 2 rounds, 1,200 trials, $2.00"


def test_marks_of_values_outside_the_scale_are_explained_once() -> None:
    journal = MemoryJournal()
    opened(journal)
    state = go_on(journal)
    narrator = Narrator(state)
    estimate = {"value": -0.4, "se": 0.2, "tasks": 3, "pool_size": 20, "note": ""}
    event = {"type": "chosen", "candidate": "r1-0", "estimate": estimate, "why": "", "clock": 3.0}
    lines = [*narrator.lines(event), *narrator.lines(event)]
    assert sum(CLIPPED in line for line in lines) == 1
