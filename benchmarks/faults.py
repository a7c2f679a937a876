"""What faults of the infrastructure do to estimates: whole runs through the engine.

Run as `make bench` or `python benchmarks/faults.py`; it takes about two minutes. `--quick` tries
it on few worlds and records nothing.

Every row: 200 synthetic worlds of 89 tasks, two starting harnesses on all tasks and 4 rounds of 3
candidates on 20%, so 2,400 intervals of candidates. A share of all attempts fails for no reason
of the candidate's; a trial is tried again twice, then it is missing. The same worlds, candidates
and outcomes are met at every rate.
"""

import argparse
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import record
import virtual_time

from coevolve import Pool, Selector
from coevolve.benchmarks.synthetic import SyntheticWorld
from coevolve.benchmarks.synthetic.synthetic_benchmark import (
    FILE,
    SyntheticBenchmark,
    SyntheticProposer,
    read_harness,
)
from coevolve.executors.in_process import InProcessExecutor
from coevolve.search.budget import Settings
from coevolve.search.journal import MemoryJournal
from coevolve.search.loop import Search, open_run
from coevolve.search.retries import ATTEMPTS
from coevolve.search.run_state import RunState
from coevolve.testing.fault_injection import FaultyExecutor

TASKS, ROUNDS, CANDIDATES, FRACTION = 89, 4, 3, 0.2
OUTCOMES = {"noisy": 0.7, "sharp": 3.0}
RATES = (0.0, 0.2, 0.7)


class Checked(NamedTuple):
    """An estimate against the truth."""

    error: float
    se: float | None
    held: bool | None
    asked: int
    missing: int


class Ran(NamedTuple):
    """What a run gave."""

    candidates: list[Checked]
    starts: list[Checked]
    failed_attempts: int
    attempts: int
    rerun: int


def run(seed: int, *, sharpness: float, rate: float) -> Ran:
    """One run, with faults at this rate."""
    world = SyntheticWorld(pools={"all": TASKS}, sharpness=sharpness, seed=seed)
    journal, state = virtual_time.run(lambda clock: _search(world, rate, clock))
    ledger = state.evaluating
    missing = sum(state.tally.missing.values())
    return Ran(
        candidates=[_checked(world, journal, state, n) for n in state.selector.candidates],
        starts=[_checked(world, journal, state, n) for n in state.selector.starts],
        # The last attempt of a missing trial failed too.
        failed_attempts=ledger.failed_attempts + missing,
        attempts=ledger.failed_attempts + ledger.trials,
        rerun=ledger.trials,
    )


async def _search(
    world: SyntheticWorld, rate: float, clock: virtual_time.Clock
) -> tuple[MemoryJournal, RunState]:
    journal, benchmark = MemoryJournal(clock), SyntheticBenchmark(world)
    open_run(
        journal,
        name="faults",
        settings=Settings(rounds=ROUNDS, candidates=CANDIDATES, seed=world.seed),
        selector=Selector(
            Pool(world.pool.tasks), fraction=FRACTION, seed=world.seed, draw_per="candidate"
        ),
        starts=benchmark.starts,
    )
    inline = InProcessExecutor(benchmark, contents=journal)
    faulty = FaultyExecutor(inline, rate=rate, seed=world.seed)
    return journal, await Search(journal, faulty, SyntheticProposer(world)).run()


def _checked(world: SyntheticWorld, journal: MemoryJournal, state: RunState, name: str) -> Checked:
    entry, estimate = state.candidates[name], state.selector.estimate(name)
    truth = world.score(read_harness(journal.get(entry.candidate.files[FILE]), world))
    held = None
    if estimate.low is not None and estimate.high is not None:
        held = estimate.low - 1e-12 <= truth <= estimate.high + 1e-12
    return Checked(
        error=estimate.value - truth,
        se=estimate.se,
        held=held,
        asked=len(state.selector.scores(name)),
        missing=state.tally.missing.get(name, 0),
    )


def rows(ran: Iterable[Ran], outcomes: str, rate: float) -> dict[str, Any]:
    """One row of the table."""
    runs = list(ran)
    found = [checked for one in runs for checked in one.candidates]
    starts = [checked for one in runs for checked in one.starts]
    every = found + starts
    held = [checked.held for checked in found if checked.held is not None]
    first = [checked.held for checked in starts if checked.held is not None]
    claimed = [checked.se for checked in found if checked.se is not None]
    return {
        "outcomes": outcomes,
        "faults %": f"{100 * rate:g}",
        "attempts that failed %": _percent(
            sum(one.failed_attempts for one in runs), sum(one.attempts for one in runs)
        ),
        "missing %": _percent(sum(c.missing for c in every), sum(one.rerun for one in runs)),
        "expected %": f"{100 * rate**ATTEMPTS:.1f}",
        "intervals": len(held),
        "coverage %": _percent(sum(held), len(held)),
        "of starting harnesses %": _percent(sum(first), len(first)),
        "error": f"{np.sqrt(np.mean([c.error**2 for c in found])):.3f}",
        "claimed": f"{np.sqrt(np.mean(np.square(claimed))):.3f}",
        "bias": f"{np.mean([c.error for c in found]):+.3f}",
    }


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"


def main() -> None:
    """Run, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few worlds, nothing recorded")
    quick = parser.parse_args().quick
    seeds = range(8 if quick else 200)
    table = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for outcomes, sharpness in OUTCOMES.items():
            for rate in RATES:
                one = partial(run, sharpness=sharpness, rate=rate)
                table.append(rows(pool.map(one, seeds, chunksize=4), outcomes, rate))
    record.show("Faults of the infrastructure", table)
    if not quick:
        record.save("faults", {"faults": table})


if __name__ == "__main__":
    main()
