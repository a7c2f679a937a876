"""Runs of the engine in folders, made in a moment, whose tables can be worked out by hand.

A harness has a skill, and solves the tasks of each pool whose number is below it. There are 5
and 10 validation tasks, and 4 and 8 of the sealed test. The starting harnesses have the skills 1
and 2, the candidates of round r the skills r + 1 and r + 2.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coevolve.core.outcomes import Usage
from coevolve.core.pool import Pool
from coevolve.core.protocols import SearchProtocol
from coevolve.core.selector import Selector
from coevolve.search.budget import Settings
from coevolve.search.candidate import Candidate
from coevolve.search.loop import Search, open_run
from coevolve.search.proposal import Proposal, Proposed, View
from coevolve.search.trials import Blame, Fault, Prepared, Result, Trial
from coevolve.store import RunStore

POOL = Pool.grouped({"uspto": [f"u{n}" for n in range(5)], "law": [f"l{n}" for n in range(10)]})
TEST = Pool.grouped({"uspto": [f"U{n}" for n in range(4)], "law": [f"L{n}" for n in range(8)]})
STARTS = {"zero-shot": {"harness.py": b"1"}, "few-shot": {"harness.py": b"2"}}
TRIAL = Usage(tokens_in=100, tokens_out=10, dollars=0.01, seconds=36.0)
PREPARING = Usage(tokens_in=50, tokens_out=5, dollars=0.005, seconds=3.6)
PROPOSING = Usage(tokens_in=7_000, tokens_out=700, dollars=0.5, seconds=360.0)


@dataclass
class SkillExecutor:
    """Solves the tasks whose number is below the skill; the first attempt of some tasks fails."""

    store: RunStore
    fails: frozenset[str] = frozenset()
    capacity: int = 1

    async def check(self, candidate: Candidate) -> Prepared:
        return Prepared()

    async def prepare(self, candidate: Candidate) -> Prepared:
        return Prepared(usage=PREPARING)

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        if trial.task in self.fails and not trial.attempt:
            blame = Blame.INFRASTRUCTURE
            fault = Fault(blame=blame, kind="sandbox", reason="did not start", shared=True)
            return Result(fault=fault, usage=TRIAL)
        skill = int(self.store.get(candidate.files["harness.py"]).split()[0])
        return Result(score=float(int(trial.task[1:]) < skill), usage=TRIAL)

    async def close(self) -> None: ...


class SkillProposer:
    """Proposes the skills r + 1 and r + 2 in round r."""

    async def propose(self, view: View, count: int) -> Proposed:
        proposals = (
            Proposal(
                files={"harness.py": f"{view.round + 1 + index} # {view.round}".encode()},
                name=f"r{view.round}-{index}",
            )
            for index in range(count)
        )
        return Proposed(proposals=tuple(proposals), usage=PROPOSING)


def make_run(
    folder: Path,
    protocol: str | SearchProtocol,
    *,
    seed: int = 0,
    fraction: float = 0.2,
    rounds: int = 3,
    model: str = "openai/gpt-5.6-luna",
    test: Pool | None = TEST,
    pool: Pool = POOL,
    rescore: bool = False,
    fails: frozenset[str] = frozenset(),
    starts: dict[str, dict[str, bytes]] = STARTS,
    ended: bool = True,
) -> Path:
    """A run in a folder, which has ended unless it shall not begin."""
    config: dict[str, Any] = {
        "run": {"name": folder.name, "seed": seed},
        "search": {"protocol": str(protocol)},
        "benchmark": {"kind": "skills"},
        "proposer": {"kind": "skills"},
        "model": {"name": model, "price_in": 1.0},
    }
    settings = Settings(rounds=rounds, candidates=2, seed=seed, rescore=rescore)
    selector = Selector(pool, protocol=protocol, fraction=fraction, seed=seed)
    with RunStore.create(folder) as store:
        open_run(
            store,
            name=folder.name,
            settings=settings,
            selector=selector,
            starts=starts,
            test=test,
            config=config,
        )
        if ended:
            executor = SkillExecutor(store, fails)
            asyncio.run(Search(store, executor, SkillProposer(), pause=0.001).run())
    return folder
