"""All outcomes of a table as one list of cells, for a joint model."""

import numpy as np

from coevolve.core.pool import Pool
from coevolve.core.posterior import Cells
from coevolve.core.table import OutcomeTable


def all_cells(table: OutcomeTable, pool: Pool) -> Cells:
    """Every candidate's mean score on every task it has a score on, and how many trials it is.

    >>> table = OutcomeTable(2)
    >>> table.open("a", round=0)
    >>> table.add("a", np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([1.0, 0.0, np.nan]))
    >>> cells = all_cells(table, Pool(["x", "y"]))
    >>> cells.task.tolist(), cells.score.tolist(), cells.trials.tolist(), cells.shares.tolist()
    ([0], [0.5], [2.0], [0.5, 0.5])
    """
    nothing = (np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))
    columns = [table.counted(candidate) for candidate in table.candidates]
    tasks, scores, number = zip(*(columns or [nothing]), strict=True)
    shares = np.empty(len(pool))
    for name, weight in zip(pool.names, pool.weights, strict=True):
        members = pool.members(name)
        shares[members] = weight / len(members)
    sizes = np.array([len(column[0]) for column in columns], dtype=np.int64)
    return Cells(
        candidate=np.repeat(np.arange(len(columns)), sizes),
        task=np.concatenate(tasks),
        score=np.concatenate(scores),
        trials=np.concatenate(number),
        rounds=tuple(table.round_of(candidate) for candidate in table.candidates),
        shares=shares,
    )
