"""Samples for the estimators, from designs and the outcomes of a candidate."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from coevolve.core.arrays import Floats, Indices
from coevolve.core.assignment import Design
from coevolve.core.pool import Pool
from coevolve.core.sample import Sample


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
