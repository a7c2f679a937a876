"""What a search on few tasks can reach: the worth of accurate scores, and the best choice.

Run as `make bench-limits` or `python benchmarks/limits.py`; it takes a few minutes. Two questions:

- How good are the best of 60 candidates if the proposer knows every score up to an error? Searches
  on the table of service-desk, in which the proposer reads the true validation scores plus normal
  errors, and is told their size.
- How far below the best of 60 candidates is the winner, if evaluations are spent as well as we
  know how? An idealised model with normal scores, in which task difficulties are known: the leader
  and the candidate most likely to overtake it are evaluated, task by task.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import record

from coevolve.core.allocation import improvements, ranked
from coevolve.core.arrays import Floats
from coevolve.core.posterior import Posterior
from coevolve.proposers.offline import OfflineProposer
from coevolve.proposers.offline.building_blocks import BuildingBlocks
from coevolve.search.proposal import Proposal, Proposed, Proposer, Standing, View
from coevolve.tables.harness_table import HarnessTable
from coevolve.tables.table_search import SearchSetting, TableSearches

TABLE = Path(__file__).parent / "tables" / "service-desk.npz"
ERRORS = (0.0, 0.02, 0.04, 0.08, 0.16)
SEEDS, WORLDS = 100, 300
CANDIDATES, TASKS = 60, 96
SPREAD = 0.07
"""Standard deviation of the true scores of candidates, about that of searches on the table."""
CHANCE = 0.15
"""Variance of an outcome around the score, once the difficulty of the task is known."""


class InformedProposer:
    """A proposer that reads true scores with errors in place of estimates."""

    def __init__(self, inner: Proposer, table: HarnessTable, error: float, seed: int) -> None:
        self._inner, self._table, self._error, self._seed = inner, table, error, seed

    async def propose(self, view: View, count: int) -> Proposed | Sequence[Proposal]:
        """What the inner proposer proposes, given the scores."""
        standings = tuple(self._informed(standing) for standing in view.standings)
        return await self._inner.propose(replace(view, standings=standings), count)

    def _informed(self, standing: Standing) -> Standing:
        candidate, estimate = standing.candidate, standing.estimate
        if estimate is None or not candidate.round:
            return standing
        row = self._table.keys[" ".join(candidate.components)]
        rng = np.random.default_rng((self._seed, row))  # one error of a candidate in a search
        value = float(self._table.validation[row]) + self._error * rng.standard_normal()
        return replace(standing, estimate=replace(estimate, value=value, se=self._error))


def informed(table: HarnessTable, seeds: int) -> list[dict[str, Any]]:
    """The best of 60 candidates, by the error of the scores that the proposer reads."""
    rows = []
    setting = SearchSetting(protocol="random-resample", fraction=0.2)
    for error in ERRORS:
        best = []
        for seed in range(seeds):

            def made(blocks: BuildingBlocks, error: float = error, seed: int = seed) -> Proposer:
                return InformedProposer(OfflineProposer(blocks), table, error, seed)

            best.append(100 * TableSearches(table, made).search(setting, seed).best)
        rows.append(
            {
                "error of the scores": f"{100 * error:.0f} points",
                "searches": seeds,
                "best candidate": f"{np.mean(best):.1f} ± {np.std(best, ddof=1) / seeds**0.5:.1f}",
            }
        )
    return rows


def loss(evaluations: int, first: int, seed: int) -> float:
    """The best true score minus that of the winner, in the idealised model."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0.0, SPREAD, CANDIDATES)
    outcomes = rng.normal(0.0, np.sqrt(CHANCE), (CANDIDATES, TASKS))
    outcomes += (scores - outcomes.mean(axis=1))[:, None]
    asked = np.full(CANDIDATES, first)
    left = evaluations - first * CANDIDATES
    while left > 0:
        order = ranked(improvements(believed(outcomes, asked)))
        open_ = [index for index in order if asked[index] < TASKS][:2]
        if not open_:
            break
        for index in open_[:left]:
            asked[index] += 1
            left -= 1
    winner = int(believed(outcomes, asked).scores.argmax())
    return float(scores.max() - scores[winner])


def believed(outcomes: Floats, asked: Floats) -> Posterior:
    """The posterior after each candidate was asked about the first of its tasks."""
    chance = CHANCE * (1 / asked - 1 / TASKS)
    mean = np.array([row[:number].mean() for row, number in zip(outcomes, asked, strict=True)])
    known = SPREAD**2 / (SPREAD**2 + chance)
    return Posterior(
        scores=known * mean,
        covariance=np.diag(SPREAD**2 * (1 - known)),
        chances=np.empty((CANDIDATES, 0)),
        newcomer=np.empty(0),
        parameters=None,
    )


def choices(worlds: int) -> list[dict[str, Any]]:
    """The loss of the choice, by evaluations and by the first look of every candidate."""
    rows = []
    for evaluations, firsts in ((420, (1, 2, 4)), (1200, (2, 5, 10))):
        row: dict[str, Any] = {"evaluations": evaluations, "candidates": CANDIDATES}
        found = {
            first: [100 * loss(evaluations, first, seed) for seed in range(worlds)]
            for first in firsts
        }
        for name, first in zip(("small", "medium", "large"), firsts, strict=True):
            values = found[first]
            error = np.std(values, ddof=1) / worlds**0.5
            row[f"{name} first look"] = f"{first}: {np.mean(values):.1f} ± {error:.1f}"
        rows.append(row)
    return rows


def main() -> None:
    """Measure, show and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    tables: dict[str, Sequence[dict[str, Any]]] = {
        "informed": informed(HarnessTable.read(TABLE), 2 if quick else SEEDS),
        "choices": choices(5 if quick else WORLDS),
    }
    for title, rows in tables.items():
        record.show(title, rows)
    if not quick:
        record.save("limits", tables)


if __name__ == "__main__":
    main()
