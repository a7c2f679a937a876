"""A small run without processes: an executor and a proposer that follow from hashes."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from coevolve.core.events import Event
from coevolve.core.outcomes import Usage
from coevolve.core.pool import Pool
from coevolve.core.selector import Selector
from coevolve.search.budget import Budget, Settings
from coevolve.search.candidate import Candidate
from coevolve.search.journal import Journal, MemoryJournal
from coevolve.search.loop import Search, open_run
from coevolve.search.proposal import Proposal, View
from coevolve.search.run_state import RunState
from coevolve.search.trials import Blame, Fault, Prepared, Result, Trial
from tests.effort import effort

POOL = Pool.grouped(
    {"law": [f"law-{i}" for i in range(12)], "s2d": [f"s2d-{i}" for i in range(8)]}
)
TEST = Pool([f"test-{i}" for i in range(6)])
STARTS = {"plain": {"harness.py": b"skill = 0.4"}, "terse": {"harness.py": b"skill = 0.5"}}


def chance(*parts: object) -> float:
    """A number in [0, 1) that follows from the parts."""
    digest = blake2b("/".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64


@dataclass
class StubExecutor:
    """Solves a task by chance, as likely as the candidate's file says; faults by chance too."""

    capacity: int = 3
    isolation_name: str = ""
    faults: float = 0.0
    act: Callable[[Trial], Result | None] = lambda trial: None
    refuse: Callable[[Candidate], Fault | None] = lambda candidate: None
    ran: list[Trial] = field(default_factory=list)
    most: int = 0
    now: int = 0
    closed: bool = False

    async def check(self, candidate: Candidate) -> Prepared:
        return Prepared(fault=self.refuse(candidate), trace=f'"{candidate.name} imported"')

    async def prepare(self, candidate: Candidate) -> Prepared:
        return Prepared(state=f'"{candidate.name} has learned"', usage=Usage(tokens_in=5))

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        self.ran.append(trial)
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.002 * chance("wait", *trial.cell, trial.attempt))
        self.now -= 1
        if (result := self.act(trial)) is not None:
            return result
        if chance("fault", *trial.cell, trial.attempt) < self.faults:
            blame = Blame.INFRASTRUCTURE
            return Result(
                fault=Fault(blame=blame, kind="sandbox", reason="did not start", shared=True)
            )
        solved = chance("solved", candidate.address, trial.task) < 0.5
        usage = Usage(tokens_in=100, tokens_out=10, dollars=0.01, seconds=0.5)
        return Result(score=float(solved), usage=usage, trace=f'"{trial.task}"')

    async def close(self) -> None:
        self.closed = True


@dataclass
class StubProposer:
    """Writes candidates that build on the best one so far."""

    seen: list[View] = field(default_factory=list)
    seconds: float = 0.001

    async def propose(self, view: View, count: int) -> Sequence[Proposal]:
        self.seen.append(view)
        await asyncio.sleep(self.seconds)
        parent = view.files(view.parent)["harness.py"]
        return [
            Proposal(
                files={"harness.py": parent + f"\n# {view.round}.{i}".encode()},
                name=f"r{view.round}-{i}",
                parents=(view.parent,),
                hypothesis="one more line helps",
            )
            for i in range(count)
        ]


def opened(
    journal: Journal,
    *,
    rounds: int = 3,
    candidates: int = 2,
    protocol: str = "task-coevolve",
    fraction: float = 0.4,
    trials: int = 1,
    overlap: bool = False,
    in_flight: int | None = None,
    rescore: bool = False,
    repair: bool = False,
    budget: Budget | None = None,
    test: Pool | None = TEST,
) -> None:
    """A run of the stub world, before its first session."""
    settings = Settings(
        rounds=rounds,
        candidates=candidates,
        seed=7,
        overlap=overlap,
        in_flight=in_flight,
        rescore=rescore,
        repair=repair,
        budget=budget or Budget(),
    )
    selector = Selector(POOL, protocol=protocol, fraction=fraction, seed=7, trials=trials)
    open_run(journal, name="stub", settings=settings, selector=selector, starts=STARTS, test=test)


def go_on(
    journal: Journal, executor: StubExecutor | None = None, proposer: StubProposer | None = None
) -> RunState:
    """Run to the end."""
    search = Search(journal, executor or StubExecutor(), proposer or StubProposer(), pause=0.001)
    return asyncio.run(search.run())


def beginning(journal: MemoryJournal, kept: int) -> MemoryJournal:
    """The first events of a journal, as if the run had been killed then."""
    part = MemoryJournal()
    part._contents.update(journal._contents)
    for event in journal.events(until=kept):
        body = {k: v for k, v in event.items() if k not in ("seq", "type", "seal")}
        part.append([(event["type"], body)])
    return part


def cuts(events: Sequence[Event], since: int = 1) -> list[int]:
    """How many events to keep: any number, or in `make test` a part of them.

    The part has a cut between every two types of event that follow each other, and every 29th.
    """
    every = range(since, len(events))
    pairs: dict[tuple[str, str], int] = {}
    for kept in every:
        pairs.setdefault((events[kept - 1]["type"], events[kept]["type"]), kept)
    return effort(sorted({*pairs.values(), *every[::29]}), [*every])


def whole_run(**options: object) -> RunState:
    """A whole run in memory."""
    journal = MemoryJournal()
    opened(journal, **options)  # type: ignore[arg-type]
    return go_on(journal)
