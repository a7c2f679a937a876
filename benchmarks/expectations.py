"""What the offline proposer expects of its building blocks, measured on three tables of harnesses.

Run as `make bench-expectations`; it takes about ten minutes on two cores. Three questions:

- What does a block add to the score on the validation tasks of a set? A linear model of the scores
  of all harnesses of a table, with the average of each slot at zero. Free answers, which lack some
  slots, are compared with the same harness that chooses a label. The averages over the sets,
  rounded to a hundredth, are `EXPECTED` in `coevolve.benchmarks.textclass.blocks.text_blocks`;
  blocks that are in no table keep older estimates, which come from service-desk.
- Do such expectations carry over? The correlation of expected and true scores on each set, with
  expectations from all sets, from the two others, and from one.
- What are they worth to a search? Whole searches with expectations from all sets, from the two
  others, and without these: the second is what a new set can hope for, except that the slots and
  the first recipes of the proposer were chosen on these sets.

`--quick` makes few searches and records nothing.
"""

import argparse
import os
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import record

from coevolve.benchmarks.textclass.blocks.text_blocks import EXPECTED
from coevolve.proposers.offline import OfflineProposer
from coevolve.proposers.offline.building_blocks import BuildingBlocks
from coevolve.proposers.offline.restricted_blocks import RestrictedBlocks
from coevolve.tables.harness_table import HarnessTable
from coevolve.tables.search_series import Average
from coevolve.tables.table_search import SearchSetting, TableSearches

TABLES = Path(__file__).parent / "tables"
SETS = ("service-desk", "s2d", "law")
SLOTS = ("like", "select", "ask", "shortlist", "trust")
"""The slots in which blocks of the tables differ by more than chance."""
TOGETHER = "ask:standardised and examples"
FREE = "ask:free"
SOURCES = ("all sets", "the other sets", "none")
PROTOCOLS = (("full", 1.0), ("adaptive", 0.2), ("adaptive", 0.07))
SEEDS = 60

type Gains = Mapping[str, float]


@cache
def table(name: str) -> HarnessTable:
    """The table of a set."""
    return HarnessTable.read(TABLES / f"{name}.npz")


def measured(name: str) -> Gains:
    """The gain of every block on the validation tasks, the average of each slot being zero."""
    rows = [(key, row) for key, row in table(name).keys.items() if ":" in key]
    free = [(key, row) for key, row in rows if FREE in key.split()]
    rows = [(key, row) for key, row in rows if FREE not in key.split()]
    parts = sorted({part for key, _ in rows for part in key.split() if _slot(part) in SLOTS})
    names = [*parts, TOGETHER]
    has = np.array([[float(name in _features(key)) for name in names] for key, _ in rows])
    scores = np.array([table(name).validation[row] for _, row in rows])
    slack = np.eye(len(names))  # blocks of a slot sum to one: only their differences are known
    found = np.linalg.solve(has.T @ has + slack, has.T @ (scores - scores.mean()))
    gains = dict(zip(names, found.tolist(), strict=True))
    for slot in SLOTS:
        blocks = [part for part in parts if _slot(part) == slot]
        mean = float(np.mean([gains[part] for part in blocks]))
        gains |= {part: gains[part] - mean for part in blocks}
    return {**gains, **_of_free_answers(name, free, gains["ask:choose"])}


def _of_free_answers(name: str, free: Sequence[tuple[str, int]], choose: float) -> Gains:
    """The gain of free answers, from the harnesses that are equal but choose from all labels."""
    if not free:
        return {}
    chosen = {
        _shared(key): row
        for key, row in table(name).keys.items()
        if {"ask:choose", "shortlist:all"} <= set(key.split())
    }
    pairs = [(row, chosen[_shared(key)]) for key, row in free]
    scores = table(name).validation
    return {FREE: choose + float(np.mean([scores[one] - scores[other] for one, other in pairs]))}


def _shared(key: str) -> frozenset[str]:
    """The components that free and chosen answers can share."""
    apart = ("ask", "parse", "shortlist", "repeat")
    return frozenset(part for part in key.split() if _slot(part) not in apart)


def _slot(part: str) -> str:
    return part.partition(":")[0]


def _features(components: str | Collection[str]) -> set[str]:
    """The components of a harness, and whether it has standardised scores after examples."""
    parts = set(components.split() if isinstance(components, str) else components)
    shown = any(_slot(part) == "select" and part != "select:none" for part in parts)
    return parts | {TOGETHER} if shown and "ask:standardised" in parts else parts


def averaged(names: Sequence[str]) -> Gains:
    """The mean gains over the sets that have a block, rounded as in the building blocks."""
    each = [measured(name) for name in names]
    parts = sorted({part for gains in each for part in gains})
    means = {part: np.mean([gains[part] for gains in each if part in gains]) for part in parts}
    return {part: round(float(mean), 2) + 0.0 for part, mean in means.items()}


def completed(gains: Gains) -> Gains:
    """With the expectations of blocks that are not measured here."""
    return {**{part: gain for part, gain in EXPECTED.items() if part not in gains}, **gains}


def expected(gains: Gains, components: str | Collection[str]) -> float:
    """The gain that is expected of a harness."""
    return sum(gains.get(part, 0.0) for part in _features(components))


def correlation(gains: Gains, name: str) -> str:
    """The correlation of expected and true validation scores over all harnesses of a table."""
    rows = [(key, row) for key, row in table(name).keys.items() if ":" in key]
    hoped = [expected(completed(gains), key) for key, _ in rows]
    true = [table(name).validation[row] for _, row in rows]
    return f"{np.corrcoef(hoped, true)[0, 1]:.2f}"


def others(name: str) -> list[str]:
    """The other sets."""
    return [other for other in SETS if other != name]


class ExpectingBlocks(RestrictedBlocks):
    """Building blocks with other expectations."""

    def __init__(self, whole: BuildingBlocks, gains: Gains) -> None:
        super().__init__(whole, {})
        self._gains = gains

    def prior(self, components: Collection[str]) -> float:
        return expected(self._gains, components)


class Job(NamedTuple):
    """A search."""

    set: str
    source: str
    protocol: str
    fraction: float
    seed: int


@cache
def searches(name: str, source: str) -> TableSearches:
    """Searches on a set, with expectations from a source."""
    known: Mapping[str, Sequence[str]] = {"all sets": SETS, "the other sets": others(name)}
    nothing = dict.fromkeys(averaged(SETS), 0.0)
    gains = completed(averaged(known[source]) if source in known else nothing)
    return TableSearches(
        table(name), lambda blocks: OfflineProposer(ExpectingBlocks(blocks, gains))
    )


def searched(job: Job) -> tuple[float, float, float]:
    """The winner's validation and test score, and the best candidate's validation score."""
    setting = SearchSetting(protocol=job.protocol, fraction=job.fraction)
    found = searches(job.set, job.source).search(setting, job.seed)
    return found.validation, found.test, found.best


def rows(found: Mapping[Job, tuple[float, float, float]], seeds: int) -> list[dict[str, Any]]:
    """Means over seeds with standard errors, in percent."""
    made = []
    for name, source, (protocol, fraction) in product(SETS, SOURCES, PROTOCOLS):
        mine = np.array([found[Job(name, source, protocol, fraction, n)] for n in range(seeds)])
        full = np.array([found[Job(name, source, "full", 1.0, n)] for n in range(seeds)])
        columns = {
            "validation": mine[:, 0],
            "test": mine[:, 1],
            "best candidate": mine[:, 2],
            "below full": full[:, 0] - mine[:, 0],
        }
        means = {
            column: _shown(Average.of((100 * values).tolist()))
            for column, values in columns.items()
            if column != "below full" or protocol != "full"
        }
        row = {"set": name, "expectations from": source, "protocol": protocol}
        made.append({**row, "fraction": f"{fraction:.0%}", "below full": "", **means})
    return made


def _shown(average: Average) -> str:
    return f"{average.mean:.1f}" + ("" if average.se is None else f" ± {average.se:.1f}")


def _signed(gain: float | None) -> str:
    return "" if gain is None else f"{gain:+.3f}"


def main() -> None:
    """Measure, search, show and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()
    seeds = 2 if options.quick else SEEDS
    each = {name: measured(name) for name in SETS}
    together = averaged(SETS)
    gains = [
        {"block": part, **{n: _signed(each[n].get(part)) for n in SETS}, "expected": gain}
        for part, gain in together.items()
    ]
    record.show("gain of blocks on the validation tasks", gains)
    carried = []
    for name in SETS:
        row = {"set": name, "from all sets": correlation(together, name)}
        row["from the other sets"] = correlation(averaged(others(name)), name)
        carried.append(row | {f"from {one}": correlation(averaged([one]), name) for one in SETS})
    record.show("correlation of expected and true validation scores", carried)
    todo = [
        Job(name, source, protocol, fraction, seed)
        for name, source, (protocol, fraction), seed in product(
            SETS, SOURCES, PROTOCOLS, range(seeds)
        )
    ]
    with ProcessPoolExecutor(options.workers) as pool:
        found = dict(zip(todo, pool.map(searched, todo, chunksize=seeds), strict=True))
    made = rows(found, seeds)
    record.show("winners of searches", made)
    if not options.quick:
        record.save("expectations", {"gains": gains, "correlations": carried, "searches": made})


if __name__ == "__main__":
    main()
