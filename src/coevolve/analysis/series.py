"""A series: candidates in the order of proposal, and their outcomes on every task."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Self

import numpy as np

from coevolve.core.arrays import Bools, Floats, Indices
from coevolve.core.estimators import Hajek
from coevolve.core.pool import Pool
from coevolve.core.sample import whole_samples

STARTS = 2
"""The first candidates of a series are the starting harnesses."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """One search to replay: its first two candidates are the starting harnesses.

    `outcomes` are candidates × tasks in [0, 1], NaN where there is none; `trials` says how many
    trials each is the mean of and `costs` what each cost (NaN where that is unknown), if known.

    >>> from coevolve.analysis import Matrix
    >>> (series,) = Matrix.from_arrays("tiny", np.array([[0, 1], [1, 0], [1, 1.0]])).series
    >>> series.generated, series.true_scores().tolist()
    (('candidate-2',), [0.5, 0.5, 1.0])
    """

    matrix: str
    name: str
    pool: Pool
    candidates: tuple[str, ...]
    outcomes: Floats
    trials: Indices | None = None
    costs: Floats | None = None

    @property
    def starts(self) -> tuple[str, ...]:
        """The starting harnesses."""
        return self.candidates[:STARTS]

    @property
    def generated(self) -> tuple[str, ...]:
        """The candidates a search comes up with, in the order of proposal."""
        return self.candidates[STARTS:]

    def rows(self, chosen: Sequence[int] | Indices, names: Sequence[str] | None = None) -> Self:
        """The series of some of the candidates, perhaps under other names."""
        at = np.asarray(chosen, dtype=np.int64)
        return replace(
            self,
            candidates=tuple(names or (self.candidates[i] for i in at.tolist())),
            outcomes=self.outcomes[at],
            trials=None if self.trials is None else self.trials[at],
            costs=None if self.costs is None else self.costs[at],
        )

    def true_scores(self) -> Floats:
        """S(h) of every candidate: the mean over all tasks, pools weighted as the pool says."""
        return np.array([full_score(self.pool, row) for row in self.outcomes])

    def stream(self, seed: int) -> int:
        """The seed of a replay's draws; those of different series have nothing in common."""
        text = f"{self.matrix}\0{self.name}\0{seed}"
        return int.from_bytes(blake2b(text.encode(), digest_size=6).digest())

    def trial(self, seed: int) -> Floats:
        """Outcomes of one trial of every task: where a mean of trials is known, a draw from it.

        A cell is a mean of trials unless `trials` says that it is a single one. The draw depends
        on the series, the seed, the candidate and the task, and on nothing else.
        """
        luck = np.random.default_rng(self.stream(seed)).random(self.outcomes.shape)
        drawn = np.where(np.isnan(self.outcomes), np.nan, luck < self.outcomes)
        return drawn if self.trials is None else np.where(self.trials > 1, drawn, self.outcomes)

    def priced_pool(self) -> Pool:
        """The pool with the costs a user would expect: the mean of the starting harnesses.

        Where that is unknown or zero, the mean of the other tasks stands in.
        """
        if self.costs is None:
            return self.pool
        mean = _mean(self.costs[:STARTS])
        known = mean > 0
        if not known.any():
            return self.pool
        costs = np.where(known, mean, mean[known].mean())
        return Pool.from_json(self.pool.to_json() | {"costs": costs.tolist()})

    def spent(self) -> Floats | None:
        """What each cell costs to evaluate, if anything is known about costs.

        A cell of unknown cost counts with the mean of its task, or of all cells.
        """
        if self.costs is None:
            return None
        by_task = _mean(self.costs)
        by_task = np.where(np.isnan(by_task), np.nanmean(self.costs), by_task)
        return np.where(np.isnan(self.costs), by_task, self.costs)


def full_score(pool: Pool, scores: Floats) -> float:
    """The score of a candidate from its outcomes on every task; NaN is missing.

    >>> full_score(Pool(["a", "b", "c"], pools=["x", "x", "y"]), np.array([1.0, 0.0, 1.0]))
    0.75
    """
    seen: Bools = ~np.isnan(scores)
    samples = whole_samples(pool, np.flatnonzero(seen), scores[seen])
    return Hajek().estimate(samples, pool.weights, 0.95).value


def _mean(costs: Floats) -> Floats:
    """Mean cost of each task over the candidates it is known for; NaN where it is for none."""
    known = ~np.isnan(costs)
    mean = np.full(costs.shape[1], np.nan)
    np.divide(np.nansum(costs, axis=0), known.sum(axis=0), out=mean, where=known.any(axis=0))
    return mean
