"""A benchmark whose trials do nothing, so that what is measured is the engine."""

from collections.abc import Sequence
from typing import Literal
from zlib import crc32

from coevolve import Pool, Selector
from coevolve.executors.isolation import Harness
from coevolve.search.budget import Settings
from coevolve.search.candidate import Candidate
from coevolve.search.journal import Journal
from coevolve.search.loop import open_run
from coevolve.search.proposal import Proposal, View
from coevolve.search.trials import Prepared, Result, Trial

CODE = "def answer(task):\n    return 1.0\n"

Work = Literal["nothing", "call", "fresh"]


class NoOp:
    """Trials that score 1.

    Args:
        work: "nothing" leaves the candidate alone, "call" calls a function of it, "fresh" starts a
            new sandbox for every call.
    """

    def __init__(self, work: Work) -> None:
        self._work = work

    def check(self, harness: Harness) -> None:
        pass

    def prepare(self, harness: Harness) -> object:
        return None

    def run(self, harness: Harness, task: str, trial: int) -> float:
        if self._work == "nothing":
            return 1.0
        if self._work == "fresh":
            harness.close()
        return float(harness.call("answer", task, returns=float))


class InstantExecutor:
    """Trials that are over at once, in the engine's own process."""

    capacity = 2

    async def check(self, candidate: Candidate) -> Prepared:
        return Prepared()

    async def prepare(self, candidate: Candidate) -> Prepared:
        return Prepared()

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        return Result(score=float(crc32(f"{trial.candidate} {trial.task}".encode()) % 2))

    async def close(self) -> None:
        pass


class Copier:
    """Writes candidates that differ by a comment."""

    async def propose(self, view: View, count: int) -> Sequence[Proposal]:
        return [
            Proposal(files=files(f"{view.round}.{i}"), name=f"r{view.round}-{i}")
            for i in range(count)
        ]


def files(comment: str) -> dict[str, bytes]:
    """The files of a candidate."""
    return {"harness.py": f"# {comment}\n{CODE}".encode()}


def opened(journal: Journal, *, tasks: int, rounds: int, candidates: int, fraction: float) -> None:
    """Open a run of no-op trials; with fraction 1, of every candidate on every task."""
    open_run(
        journal,
        name="no-op",
        settings=Settings(rounds=rounds, candidates=candidates),
        selector=Selector(
            Pool([f"task-{i:04d}" for i in range(tasks)]),
            protocol="full" if fraction == 1 else "task-coevolve",
            fraction=fraction,
        ),
        starts={name: files(name) for name in ("plain", "terse")},
    )
