"""The settings of `adaptive`, compared by whole searches on tables of harnesses and by replays.

Run as `make bench-allocation`; it takes a quarter of an hour on two cores. Every search is the
real loop with 20 rounds of 3 candidates, on the table of service-desk and on synthetic tables with
50 validation tasks, where the offline proposer's expectations are wrong. Every setting has the
same seeds. Replays are of the real matrices of `matrices.py`, and are left out where there are
none. `--quick` makes few searches and records nothing.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import record
from matrices import matrices, points

from coevolve.analysis import replay
from coevolve.core.allocation import AdaptiveShare
from coevolve.core.protocols import SearchProtocol, protocol, register
from coevolve.tables.harness_table import HarnessTable
from coevolve.tables.synthetic_table import synthetic_table
from coevolve.tables.table_search import ProposerName, SearchSetting, TableSearches
from coevolve.tables.table_space import STAGES

TABLE = Path(__file__).parent / "tables" / "service-desk.npz"
ALLOCATIONS = (
    AdaptiveShare(),
    AdaptiveShare(first_look=0.25),
    AdaptiveShare(reserve=0.0),
    AdaptiveShare(reserve=0.2),
    AdaptiveShare(reserve=0.4),
    AdaptiveShare(batch=0.5, contenders=2, reserve=0.4),
)
"""The default, which the others are compared with, its neighbours, and an earlier default."""

REAL, SYNTHETIC = "service-desk", "synthetic"
WORLDS = range(1, 7)
PROPOSERS: Sequence[ProposerName] = ("offline", "mutation")
FRACTIONS = (0.2, 0.07)
SEEDS = 60
"""Searches of each setting, proposer and fraction, on service-desk and over all worlds."""

REPLAYED = range(7_000, 7_012)
"""Seeds of the replays of each series."""


class Job(NamedTuple):
    """A search: `world` is 0 on service-desk, else the seed of a synthetic table."""

    allocation: AdaptiveShare
    world: int
    proposer: ProposerName
    fraction: float
    seed: int


def rule(allocation: AdaptiveShare) -> SearchProtocol:
    """The protocol with an allocation."""
    return replace(
        protocol("adaptive"), name=f"adaptive, {shown(allocation)}", allocation=allocation
    )


def shown(allocation: AdaptiveShare) -> str:
    """The settings of an allocation."""
    return (
        f"{allocation.first_look:g} / {allocation.reserve:g} / {allocation.batch:g} / "
        f"{allocation.contenders}"
    )


@cache
def searches(world: int, proposer: ProposerName) -> TableSearches:
    """The searches on a table."""
    table = synthetic_table(world, validation=50, stages=STAGES) if world else None
    return TableSearches(table or HarnessTable.read(TABLE), proposer)


def searched(job: Job) -> float:
    """The true validation score of a winner."""
    made = rule(job.allocation)
    register(made)
    setting = SearchSetting(protocol=made.name, fraction=job.fraction)
    return searches(job.world, job.proposer).search(setting, job.seed).validation


def jobs(seeds: int) -> list[Job]:
    """All searches, those on one table together."""
    made = []
    for proposer, fraction, world in product(PROPOSERS, FRACTIONS, (0, *WORLDS)):
        numbers = range(seeds if not world else -(-seeds // len(WORLDS)))
        made += [
            Job(one, world, proposer, fraction, n) for n, one in product(numbers, ALLOCATIONS)
        ]
    return made


def rows(
    found: Mapping[Job, float], regrets: Mapping[tuple[str, float], str]
) -> list[dict[str, Any]]:
    """The winners of every setting, and their differences from the default with equal seeds."""
    made = []
    for allocation in ALLOCATIONS:
        row: dict[str, Any] = {"first look / reserve / batch / contenders": shown(allocation)}
        differences = []
        for table, proposer, fraction in product((REAL, SYNTHETIC), PROPOSERS, FRACTIONS):
            mine = [
                (100 * value, 100 * found[job._replace(allocation=ALLOCATIONS[0])])
                for job, value in found.items()
                if job.allocation == allocation
                and (job.world == 0) == (table == REAL)
                and (job.proposer, job.fraction) == (proposer, fraction)
            ]
            row[f"{table}, {proposer}, {fraction:.0%}"] = f"{np.mean([m for m, _ in mine]):.1f}"
            differences.append(np.array([m - other for m, other in mine]))
        errors = [d.std(ddof=1) / np.sqrt(len(d)) for d in differences]
        mean = np.mean([d.mean() for d in differences])
        error = np.sqrt(np.square(errors).sum()) / len(errors)
        row["difference"] = "" if allocation == ALLOCATIONS[0] else f"{mean:+.1f} ± {error:.1f}"
        for fraction in FRACTIONS:
            regret = regrets.get((rule(allocation).name, fraction), "-")
            row[f"regret in replays, {fraction:.0%}"] = regret
        made.append(row)
    return made


def replayed(workers: int) -> dict[tuple[str, float], str]:
    """Mean regret in replays of the real matrices in points, with standard errors over seeds."""
    real = matrices()
    if not real:
        return {}
    rules = [rule(allocation) for allocation in ALLOCATIONS]
    found = replay(real, protocols=rules, fractions=FRACTIONS, seeds=REPLAYED, workers=workers)
    regrets = {}
    for one, fraction in product(rules, FRACTIONS):
        regret = found.overall(one.name, fraction).means["regret"]
        regrets[one.name, fraction] = f"{points(regret.mean)} ± {points(regret.se_seeds)}"
    return regrets


def main() -> None:
    """Search, replay, show and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()
    todo = jobs(2 if options.quick else SEEDS)
    with ProcessPoolExecutor(options.workers) as pool:
        found = dict(zip(todo, pool.map(searched, todo, chunksize=14), strict=True))
    regrets = {} if options.quick else replayed(options.workers)
    made = rows(found, regrets)
    record.show("winners on all validation tasks; regret in replays", made)
    if not options.quick:
        record.save("allocation", {"settings": made})


if __name__ == "__main__":
    main()
