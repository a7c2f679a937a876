"""A soak of the engine: 400,000 trials with kills, faults and outages, resumed to the same end.

Run as `make bench-soak` or `python benchmarks/soak.py`; it takes ten to fifteen minutes. `--quick`
tries it with 4,000 trials and records nothing; `--seed` changes where the kills and outages fall.

The same run is made twice, with the journal on disk: 200 candidates on each of 2,000 tasks. One
is left alone. The other is killed (SIGKILL) again and again, at random numbers of trials and while
it resumes, and has outages of its service on top of the faults that both meet (soak_run.py). Then
both journals are read, and the run that was disturbed must have the same scores, draws, estimates
and choice. Every ledger must be the exact sum of its events.
"""

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import record
from soak_run import STOPPED, create

from coevolve.search.budget import Ledger
from coevolve.search.effects import fold
from coevolve.search.run_state import RunState
from coevolve.store import RunStore

PROGRAM = Path(__file__).with_name("soak_run.py")
SIZES = {False: (200, 2_000, 60), True: (20, 200, 8)}
"""Candidates, tasks and kills, without `--quick` and with it."""


@dataclass
class Drive:
    """How a run was brought to its end: sessions, kills, and its memory on the way."""

    trials: int
    sessions: int = 0
    kills: int = 0
    stops: int = 0
    seconds: float = 0.0
    memory: dict[int, float] = field(default_factory=dict)

    def note(self, progress: dict[str, Any]) -> None:
        """Note the least memory in each tenth, which leaves out what a wave needs for itself."""
        tenth = 10 * progress["trials"] // self.trials
        self.memory[tenth] = min(progress["MB"], self.memory.get(tenth, math.inf))


@contextmanager
def started(folder: Path, *, outages: bool) -> Iterator[subprocess.Popen[str]]:
    """A process that continues a run; killed at the end, if it still lives."""
    environment = {**os.environ, "OUTAGES": "1" if outages else ""}
    command = [sys.executable, str(PROGRAM), str(folder)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


def progress(process: subprocess.Popen[str], drive: Drive) -> Iterator[int]:
    """The trials recorded so far, whenever the process reports them."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.endswith("\n"):  # a killed process may leave half a line
            report = json.loads(line)
            drive.note(report)
            yield report["trials"]


def left_alone(folder: Path, trials: int) -> Drive:
    """Run to the end in one session."""
    drive = Drive(trials=trials, sessions=1)
    begin = time.perf_counter()
    with started(folder, outages=False) as process:
        for _ in progress(process, drive):
            pass
    _expect(process.returncode == 0, f"the run that was left alone exited {process.returncode}")
    drive.seconds = time.perf_counter() - begin
    return drive


def disturbed(folder: Path, trials: int, kills: int, chance: random.Random) -> Drive:
    """Run to the end with kills and outages.

    A session is killed when a random number of trials is recorded, up to 50 ms later. One session
    of six is killed within its first second instead, while it starts and resumes.
    """
    drive = Drive(trials=trials)
    begin = time.perf_counter()
    points = sorted(chance.sample(range(1, trials), kills))
    code = STOPPED
    while code != 0:
        drive.sessions += 1
        with started(folder, outages=True) as process:
            if points and chance.random() < 1 / 6:
                time.sleep(chance.random())
            else:
                for seen in progress(process, drive):
                    if points and seen >= points[0]:
                        points = [point for point in points if point > seen]
                        time.sleep(0.05 * chance.random())
                        break
        code = process.returncode
        drive.kills += code == -signal.SIGKILL
        drive.stops += code == STOPPED
        _expect(
            code in (0, STOPPED, -signal.SIGKILL), f"session {drive.sessions} exited with {code}"
        )
    drive.seconds = time.perf_counter() - begin
    return drive


@dataclass
class Sums:
    """What the events of a journal say, counted one by one without the engine's own sums."""

    evaluating: Ledger = field(default_factory=Ledger)
    proposing: Ledger = field(default_factory=Ledger)
    cells: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    missing: int = 0
    zeros: int = 0

    @classmethod
    def of(cls, folder: Path) -> "Sums":
        """The sums of every event, each checked against its seal."""
        sums = cls()
        with RunStore.read(folder) as store:
            for event in store.events():
                kind = event["type"]
                if kind == "outcome":
                    sums.evaluating.spend(event["usage"], trials=1)
                    sums.cells[event["candidate"], event["task"], event["trial"]] += 1
                    sums.missing += event["score"] is None
                    sums.zeros += event["score"] is not None and "fault" in event
                elif kind == "failed":
                    sums.evaluating.spend(event["usage"], failed_attempts=1)
                elif kind in ("checked", "prepared"):
                    sums.evaluating.spend(event["usage"])
                elif kind == "proposed":
                    sums.proposing.spend(event["usage"])
        return sums


def ended(folder: Path) -> RunState:
    """The state of a run, which must have ended."""
    with RunStore.read(folder) as store:
        state = fold(store.skim())
    _expect(state.ended == {"why": "finished"}, f"the run ended with {state.ended!r}")
    return state


def exact(folder: Path, state: RunState, trials: int) -> Sums:
    """Check the ledgers and counts of a run against its events, one by one."""
    sums = Sums.of(folder)
    _expect(
        sums.evaluating == state.evaluating, "the ledger of evaluating differs from its events"
    )
    _expect(sums.proposing == state.proposing, "the ledger of proposing differs from its events")
    _expect(len(sums.cells) == trials, f"{len(sums.cells):,} of {trials:,} trials have an outcome")
    _expect(max(sums.cells.values()) == 1, "a trial was recorded twice")
    _expect(sums.missing == sum(state.tally.missing.values()), "missing trials were miscounted")
    _expect(sums.zeros == sum(state.tally.zeros.values()), "failed trials were miscounted")
    return sums


def same_end(alone: RunState, shaken: RunState) -> None:
    """Check that both runs ended the same."""
    # The seal of a selector stands for all its events: draws, probabilities and scores.
    _expect(alone.selector._log.seal == shaken.selector._log.seal, "the draws or scores differ")
    _expect(alone.chosen == shaken.chosen, "the choices differ")
    names = list(alone.candidates)
    _expect(names == list(shaken.candidates), "the candidates differ")
    for name in names:
        _expect(alone.estimate(name) == shaken.estimate(name), f"the estimates of {name} differ")
    for field_name in ("missing", "zeros", "failures"):
        same = getattr(alone.tally, field_name) == getattr(shaken.tally, field_name)
        _expect(same, f"the counts of {field_name} differ")


def row(run: str, drive: Drive, sums: Sums) -> dict[str, Any]:
    """What a run went through."""
    return {
        "run": run,
        "trials": f"{sums.evaluating.trials:,}",
        "failed attempts": f"{sums.evaluating.failed_attempts:,}",
        "missing": f"{sums.missing:,}",
        "sessions": drive.sessions,
        "killed": drive.kills,
        "stopped": drive.stops,
        "seconds": f"{drive.seconds:.0f}",
    }


def _expect(held: bool, otherwise: str) -> None:
    if not held:
        raise SystemExit(f"The soak failed: {otherwise}.")


def main() -> None:
    """Run both, compare, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="4,000 trials, nothing recorded")
    parser.add_argument("--seed", type=int, default=16, help="where kills and outages fall")
    options = parser.parse_args()
    candidates, tasks, kills = SIZES[options.quick]
    trials = candidates * tasks
    with tempfile.TemporaryDirectory() as name:
        alone, shaken = Path(name) / "alone", Path(name) / "shaken"
        for folder in (alone, shaken):
            create(folder, candidates=candidates, tasks=tasks, seed=7)
        drives = {
            "left alone": left_alone(alone, trials),
            "disturbed": disturbed(shaken, trials, kills, random.Random(options.seed)),
        }
        states = [ended(folder) for folder in (alone, shaken)]
        sums = [
            exact(folder, state, trials)
            for folder, state in zip((alone, shaken), states, strict=True)
        ]
    same_end(*states)
    runs = [row(run, drives[run], found) for run, found in zip(drives, sums, strict=True)]
    memory = [
        {"trials": f"{10 * tenth} to {10 * tenth + 10}%"}
        | {f"least MB, {run}": f"{drive.memory[tenth]:.0f}" for run, drive in drives.items()}
        for tenth in range(10)
    ]
    record.show("The same run, left alone and disturbed, ended the same", runs)
    record.show("Memory on the way", memory)
    if not options.quick:
        record.save("soak", {"runs": runs, "memory": memory})


if __name__ == "__main__":
    main()
