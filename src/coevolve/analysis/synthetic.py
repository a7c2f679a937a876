"""Outcome matrices of synthetic worlds."""

import numpy as np

from coevolve.analysis.matrix import Matrix
from coevolve.analysis.series import STARTS, Series
from coevolve.benchmarks.synthetic import SyntheticWorld
from coevolve.core.pool import Pool
from coevolve.errors import InputError


def synthetic_matrix(
    *, tasks: int = 89, candidates: int = 30, worlds: int = 4, seed: int = 0
) -> Matrix:
    """A series per synthetic world, each candidate written on top of the best before it.

    >>> matrix = synthetic_matrix(tasks=50, candidates=10, worlds=1)
    >>> matrix.series[0].true_scores().round(2).tolist()[:4]
    [0.6, 0.54, 0.56, 0.6]
    """
    if candidates <= STARTS:
        raise InputError(f"candidates must be at least {STARTS + 1}, got {candidates}.")
    found = [
        _series(SyntheticWorld(pools={"all": tasks}, seed=seed + number), candidates)
        for number in range(worlds)
    ]
    return Matrix.from_series("synthetic", found)


def _series(world: SyntheticWorld, candidates: int) -> Series:
    harnesses = world.start(STARTS)
    for round in range(1, candidates - STARTS + 1):
        parent = max(harnesses, key=world.score)
        failed = world.failures(parent, world.pool.tasks)
        harnesses.append(world.child(parent, failed, round=round, index=0))
    return Series(
        matrix="synthetic",
        name=str(world.seed),
        pool=Pool(world.pool.tasks),
        candidates=tuple(harness.name for harness in harnesses),
        outcomes=np.array([world.outcomes(harness) for harness in harnesses]),
        costs=np.tile(np.asarray(world.pool.costs), (candidates, 1)),
    )
