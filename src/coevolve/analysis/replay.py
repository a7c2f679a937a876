"""Replays of protocols on outcome matrices: how well would each have searched?"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from coevolve.analysis.jobs import Report, Row, run_jobs
from coevolve.analysis.matrix import Matrix
from coevolve.analysis.metrics import measured
from coevolve.analysis.plan import PROTOCOLS, Plan
from coevolve.analysis.summary import Entry, summarised
from coevolve.core.protocols import SearchProtocol

SCHEMA = 1
"""Number of the JSON form, which `docs/replay.md` describes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What was replayed, a row per search, and the means."""

    plan: Plan
    matrices: tuple[Matrix, ...]
    rows: tuple[Row, ...]
    summary: tuple[Entry, ...]

    def overall(self, protocol: str, fraction: float) -> Entry:
        """The means of a protocol over all matrices."""
        return next(
            entry
            for entry in self.summary
            if (entry.matrix, entry.protocol, entry.fraction) == (None, protocol, fraction)
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        matrices = [
            {
                "matrix": matrix.name,
                "series": [series.name for series in matrix.series],
                "notes": list(matrix.notes),
            }
            for matrix in self.matrices
        ]
        return {
            "schema": SCHEMA,
            "settings": self.plan.to_json() | {"matrices": matrices},
            "rows": [row.to_json() for row in self.rows],
            "summary": [entry.to_json() for entry in self.summary],
        }


def replay(
    matrices: Iterable[Matrix],
    *,
    protocols: Iterable[str | SearchProtocol] = PROTOCOLS,
    fractions: Iterable[float] = (0.2,),
    seeds: Iterable[int] = range(20),
    per_round: int = 1,
    bernoulli: bool = False,
    workers: int = 1,
    report: Report = lambda done, total: None,
) -> Replay:
    """Replay every protocol on every series, with the same seeds and the same candidates.

    Args:
        matrices: Outcome matrices.
        protocols: Names of registered protocols, or protocols; the first is the one the others
            are compared with.
        fractions: Values of ρ.
        seeds: Seeds; the draws of a search follow from its seed, matrix and series.
        per_round: Candidates proposed per round.
        bernoulli: Tell a cell that is a mean of trials as one trial: 1 with that probability,
            else 0; the same for all protocols. True scores stay the means.
        workers: Number of processes. With more than one, a script must start its work under
            `if __name__ == "__main__":`.
        report: Called with the number of searches done, and of all.

    >>> from coevolve.analysis import synthetic_matrix
    >>> matrix = synthetic_matrix(tasks=40, candidates=8, worlds=2)
    >>> done = replay([matrix], protocols=["full", "naive"], fractions=[0.2], seeds=range(3))
    >>> done.overall("full", 0.2).means["regret"].mean
    0.0
    >>> len(done.rows), done.overall("naive", 0.2).paired.against
    (12, 'full')
    """
    plan = Plan.of(
        protocols=protocols,
        fractions=fractions,
        seeds=seeds,
        per_round=per_round,
        bernoulli=bernoulli,
    )
    chosen = tuple(matrices)
    rows = tuple(run_jobs(chosen, plan, measured, workers=workers, report=report))
    return Replay(plan=plan, matrices=chosen, rows=rows, summary=tuple(summarised(rows)))
