"""What a candidate's outcomes on the drawn tasks of a pool are to an estimator."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from coevolve.core.arrays import Floats, Indices
from coevolve.core.assignment import Design
from coevolve.core.pool import Pool
from coevolve.core.variance import Anticipation


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """The scores of one candidate on the tasks drawn from one pool.

    `scores`, `probabilities`, `anchors` (p̄_t) and `expected` (u_t) belong to the tasks that
    answered; `drawn` counts the tasks asked for, `anchor_mean` is the mean anchor of the whole
    pool and `anticipation` what its history says about variances, if there is any.
    """

    pool: str
    pool_size: int
    drawn: int
    scores: Floats
    probabilities: Floats
    anchors: Floats
    expected: Floats
    anchor_mean: float
    anticipation: Anticipation | None

    @classmethod
    def without_history(
        cls, scores: Floats, probabilities: Floats, *, pool_size: int, pool: str = "all"
    ) -> Self:
        """Sample of tasks that all answered and of whose past nothing is known."""
        size = len(scores)
        return cls(
            pool=pool,
            pool_size=pool_size,
            drawn=size,
            scores=scores,
            probabilities=probabilities,
            anchors=np.full(size, 0.5),
            expected=np.full(size, 0.25),
            anchor_mean=0.5,
            anticipation=None,
        )

    @property
    def share(self) -> float:
        """Share of the drawn tasks that answered."""
        return len(self.scores) / self.drawn

    @property
    def answering(self) -> Floats:
        """Probability of each task to be drawn and to answer."""
        return self.probabilities * self.share


def drawn_samples(designs: Sequence[Design], tasks: Indices, means: Floats) -> list[Sample]:
    """One sample per design: the drawn tasks that have a score.

    Args:
        designs: The designs of a candidate's assignment.
        tasks: Positions of the tasks the candidate has a score on, ascending.
        means: Its mean score over trials on each of them.
    """
    return [_sample(design, tasks, means) for design in designs]


def whole_samples(pool: Pool, tasks: Indices, means: Floats) -> list[Sample]:
    """One sample per pool of a candidate that was asked about every task."""
    samples = []
    for name in pool.names:
        members = pool.members(name)
        scores = means[np.isin(tasks, members, assume_unique=True)]
        sample = Sample.without_history(
            scores, np.ones(len(scores)), pool_size=len(members), pool=name
        )
        samples.append(replace(sample, drawn=len(members)))
    return samples


def _sample(design: Design, tasks: Indices, means: Floats) -> Sample:
    at = np.searchsorted(tasks, design.positions)
    at = np.minimum(at, max(len(tasks) - 1, 0))
    answered = tasks[at] == design.positions if len(tasks) else np.zeros(len(at), dtype=np.bool_)
    return Sample(
        pool=design.pool,
        pool_size=design.pool_size,
        drawn=len(design.positions),
        scores=means[at[answered]],
        probabilities=design.probabilities[answered],
        anchors=design.anchors[answered],
        expected=design.expected[answered],
        anchor_mean=design.anchor_mean,
        anticipation=design.anticipation,
    )
