"""A run of four tasks whose numbers can be computed by hand.

Phase 0: "plain" solves a and b, "terse" solves a. Round 1: "r1-0" solves everything; "r1-1" fails
everything, and its trial on b has no score. The protocol runs every task.
"""

import asyncio
from collections.abc import Sequence

from coevolve.core.outcomes import Usage
from coevolve.core.pool import Pool
from coevolve.core.selector import Selector
from coevolve.search.budget import Budget, Settings
from coevolve.search.journal import MemoryJournal
from coevolve.search.loop import Search, open_run
from coevolve.search.proposal import Proposal, Proposed, View
from coevolve.search.trials import Blame, Fault, Result, Trial
from tests.search.stubs import StubExecutor

TASKS = ("a", "b", "c", "d")
SOLVED = {"plain": "ab", "terse": "a", "r1-0": "abcd", "r1-1": ""}
USAGE = Usage(tokens_in=100, tokens_out=20, dollars=0.25, seconds=2.0)
LOST = Fault(blame=Blame.INFRASTRUCTURE, kind="sandbox", reason="did not start", shared=True)
LATE = Fault(blame=Blame.CANDIDATE, kind="time-limit", reason="ran longer than 60 s")


def act(trial: Trial) -> Result:
    """The result of a trial: solved, failed, late (scored 0), or lost after two retries."""
    if (trial.candidate, trial.task) == ("r1-1", "b"):
        return Result(fault=LOST, usage=Usage(seconds=0.5))
    if (trial.candidate, trial.task) == ("r1-1", "c"):
        return Result(fault=LATE, usage=USAGE)
    return Result(score=float(trial.task in SOLVED[trial.candidate]), usage=USAGE)


class Writer:
    """Writes one candidate from each starting harness."""

    async def propose(self, view: View, count: int) -> Proposed:
        made = [
            Proposal(files={"harness.py": b"x = 1"}, name="r1-0", parents=("plain",)),
            Proposal(files={"harness.py": b"x = 2"}, name="r1-1", parents=("terse", "plain")),
        ]
        usage = Usage(tokens_in=1000, tokens_out=200, dollars=1.0, seconds=9.0)
        return Proposed(proposals=tuple(made), notes=("two ideas",), usage=usage)


def written(rounds: int = 1, trials: int = 1, tasks: Sequence[str] = TASKS) -> MemoryJournal:
    """The journal of the run, which has ended; the sealed test is task "z"."""
    journal = MemoryJournal()
    settings = Settings(rounds=rounds, candidates=2, seed=7, budget=Budget(trials=100))
    open_run(
        journal,
        name="small",
        settings=settings,
        selector=Selector(Pool(tasks), protocol="full", seed=7, trials=trials),
        starts={"plain": {"harness.py": b"x = -1"}, "terse": {"harness.py": b"x = 0"}},
        test=Pool(["z"]),
    )
    executor = StubExecutor(capacity=1, act=act)
    asyncio.run(Search(journal, executor, Writer(), pause=0.0).run())
    return journal
