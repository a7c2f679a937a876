"""The run of the soak: a world of scores and faults, and the program that works on a run in it.

Run as a program with the folder of a run, it continues that run to its end. It prints its progress
as lines of JSON: trials recorded so far, and megabytes in memory. `OUTAGES=1` in the environment
adds outages, which come and go with the clock.

The final outcome of a trial follows from its candidate and task alone, so two runs can be
compared. Most are answered at once. Some fail once or twice before they are answered, some are
lost to a fault that everybody shares, some to one that the candidate meets alone or with a
starting harness, and some fail by the candidate's own fault. An outage fails whatever is tried
while it lasts, except the last attempt at a trial; or it needs the operator and stops the run,
which has to be resumed.
"""

import asyncio
import json
import os
import random
import resource
import sys
import time
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from coevolve import Pool, Selector
from coevolve.core.events import Event
from coevolve.core.outcomes import Usage
from coevolve.errors import StopRun
from coevolve.search.budget import Settings
from coevolve.search.candidate import Candidate
from coevolve.search.journal import Journal
from coevolve.search.loop import Search, open_run
from coevolve.search.proposal import Proposal, View
from coevolve.search.retries import ATTEMPTS
from coevolve.search.trials import Blame, Fault, Prepared, Result, Trial
from coevolve.store import RunStore

STARTS = ("plain", "terse")
PER_ROUND = 6
FAILED_CONTROLS = 2 * 2 * ATTEMPTS
"""Attempts of controls that fail in an outage: all of the first two controls."""
STOPPED = 3
"""Exit status of the program when the run needs the operator."""

DOWN = Fault(
    blame=Blame.INFRASTRUCTURE, kind="ServiceUnavailable", reason="no answer", shared=True
)
ALONE = Fault(blame=Blame.INFRASTRUCTURE, kind="RateLimitError", reason="slow down")
OWN = Fault(blame=Blame.CANDIDATE, kind="time-limit", reason="ran longer than 60 s")
EXPIRED = Fault(
    blame=Blame.OPERATOR, kind="AuthenticationError", reason="the key has expired", advice="Wait."
)
FATES = (
    ("own fault", 0.02),
    ("lost", 0.01),
    ("lost alone", 0.002),
    ("late", 0.05),
    ("slow", 0.001),
)


def chance(*parts: object) -> float:
    """A number in [0, 1) that follows from the parts."""
    digest = blake2b("/".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64


def fate(candidate: str, task: str) -> str:
    """What becomes of a trial: one of `FATES`, or "" if it is answered at once."""
    drawn = chance("fate", candidate, task)
    for name, share in FATES:
        if drawn < share:
            return name
        drawn -= share
    return ""


class Outages:
    """The service is down, or the key expired, now and then for a short while.

    Args:
        seed: Decides when; each session has its own.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._now: Fault | None = None
        self._until = time.monotonic() + self._random.expovariate(1)

    def fault(self) -> Fault | None:
        """The fault of this moment, if any."""
        if time.monotonic() >= self._until:
            if self._now is None:
                self._now = EXPIRED if self._random.random() < 0.1 else DOWN
                self._until = time.monotonic() + self._random.uniform(0.01, 0.2)
            else:
                self._now = None
                self._until = time.monotonic() + self._random.expovariate(1)
        return self._now


class SoakExecutor:
    """Runs trials of the soak's world in the engine's own process.

    Args:
        outages: When nothing is answered; none if left out.
    """

    capacity = 8

    def __init__(self, outages: Outages | None = None) -> None:
        self._outages = outages
        self._candidate, self._controls = "", 0
        self.tasks: Sequence[str] = ()

    async def check(self, candidate: Candidate) -> Prepared:
        return Prepared(usage=Usage(seconds=0.01))

    async def prepare(self, candidate: Candidate) -> Prepared:
        return Prepared(usage=Usage(tokens_in=50, dollars=0.001))

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        usage = _usage(trial)
        if candidate.round == 0 and self._candidate:
            if self._down(trial.task):
                return Result(fault=DOWN, usage=usage)
            return Result(score=1.0, usage=usage)
        if candidate.round > 0 and candidate.name != self._candidate:
            self._candidate, self._controls = candidate.name, 0
        last = trial.attempt % ATTEMPTS == ATTEMPTS - 1
        down = self._outages.fault() if self._outages is not None and not last else None
        found = fate(trial.candidate, trial.task)
        if found == "slow":
            await asyncio.sleep(0.05 * chance("wait", *trial.cell))
        if down is not None:
            return Result(fault=down, usage=usage)
        if found == "own fault":
            return Result(fault=OWN, usage=usage)
        if found == "lost":
            return Result(fault=DOWN, usage=usage)
        if found == "lost alone":
            return Result(fault=ALONE, usage=usage)
        if found == "late" and not last and chance("late", *trial.cell, trial.attempt) < 0.7:
            return Result(fault=ALONE, usage=usage)
        skill = 0.3 + 0.4 * chance("skill", candidate.address)
        return Result(score=float(chance("solved", *trial.cell) < skill), usage=usage)

    def _down(self, task: str) -> bool:
        """Whether a control gets no answer: at first for some candidates, on one task for others.

        It follows from the candidate that is in doubt, so that a run ends as one that was killed.
        """
        self._controls += 1
        if chance("outage", self._candidate) < 0.3:
            return self._controls <= FAILED_CONTROLS
        lost = [t for t in self.tasks if fate(self._candidate, t) == "lost alone"]
        return task == min(lost, key=lambda t: chance("broken", t))

    async def close(self) -> None:
        pass


def _usage(trial: Trial) -> Usage:
    """What an attempt costs; no two attempts cost the same."""
    drawn = chance("usage", *trial.cell, trial.attempt)
    return Usage(
        tokens_in=int(1_000 * drawn),
        tokens_out=int(100 * drawn),
        dollars=0.01 * drawn,
        seconds=20 * chance("seconds", trial.task),
    )


class SoakProposer:
    """Writes candidates that build on the best one so far, so that a difference would spread."""

    async def propose(self, view: View, count: int) -> Sequence[Proposal]:
        await asyncio.sleep(0.02)
        return [
            Proposal(
                files={"harness.py": f"# {view.parent} {view.seed} {place}\n".encode()},
                name=f"r{view.round}-{place}",
                parents=(view.parent,),
            )
            for place in range(count)
        ]


def create(folder: Path, *, candidates: int, tasks: int, seed: int) -> None:
    """Open a run with every candidate on every task; the starting harnesses count."""
    with RunStore.create(folder) as store:
        _open(store, candidates, tasks, seed)


def _open(journal: Journal, candidates: int, tasks: int, seed: int) -> None:
    open_run(
        journal,
        name="soak",
        settings=Settings(
            rounds=(candidates - len(STARTS)) // PER_ROUND, candidates=PER_ROUND, seed=seed
        ),
        selector=Selector(
            Pool([f"task-{i:04d}" for i in range(tasks)]), protocol="full", fraction=1, seed=seed
        ),
        starts={name: {"harness.py": f"# {name}\n".encode()} for name in STARTS},
    )


def megabytes() -> float:
    """What this process has in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def main(folder: Path) -> int:
    """Continue a run to its end, or until it needs the operator."""
    with RunStore.open(folder) as store:
        session = store.count
        outages = Outages(session) if os.environ.get("OUTAGES") else None
        trials = 0

        def listen(event: Event) -> None:
            nonlocal trials
            trials += event["type"] == "outcome"
            if event["type"] == "outcome" and trials % 100 == 0:
                print(json.dumps({"trials": trials, "MB": megabytes()}), flush=True)

        executor = SoakExecutor(outages)
        search = Search(store, executor, SoakProposer(), listen=listen, pause=0.02)
        executor.tasks = search.state.selector.pool.tasks
        trials = search.state.evaluating.trials
        print(json.dumps({"trials": trials, "MB": megabytes()}), flush=True)
        try:
            asyncio.run(search.run())
        except StopRun:
            return STOPPED
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
