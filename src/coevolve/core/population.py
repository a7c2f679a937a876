"""Harnesses that ran the same tasks in full: their scores, and how they differ.

Nothing is drawn here, so the mean on these tasks is exact. The interval answers another question:
what the mean would be on other tasks like these. The tasks of each pool count as a simple random
sample of a far larger population, so se² = s²/n for n task means with variance s², and the
interval is Student's, cut at the ends of the scale. Two harnesses are compared by their
differences, task by task.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from coevolve.core.arrays import Floats, Indices
from coevolve.core.assignment import Sample, whole_samples
from coevolve.core.comparison import Comparison
from coevolve.core.estimators import Estimate, Hajek
from coevolve.core.evidence import failures_note
from coevolve.core.identifiers import Id
from coevolve.core.missingness import Losses
from coevolve.core.outcome_table import OutcomeTable
from coevolve.core.outcomes import Missing
from coevolve.core.pool import Pool
from coevolve.errors import InputError, NoOutcomeError

LIKE_THESE = "the interval is for other tasks like these"
_POPULATION = 10**12
"""Tasks in the population that a pool is a sample of: so many that their number has no effect."""


def part_of(pool: Pool, tasks: Iterable[Id]) -> Pool:
    """Some tasks of a pool, in its order; the weights of their pools keep their proportions.

    >>> part_of(Pool(["a", "b", "c"]), ["c", "a"]).tasks
    ('a', 'c')
    """
    kept = np.unique(pool.positions(tasks))
    if not len(kept):
        raise InputError("a part of a pool needs one task or more.")
    labels = pool.labels
    pools = [labels[at] for at in kept.tolist()]
    total = {n: float(w) for n, w in zip(pool.names, pool.weights, strict=True) if n in pools}
    return Pool(
        [pool.tasks[at] for at in kept.tolist()],
        pools=pools,
        weights={name: weight / sum(total.values()) for name, weight in total.items()},
        scale=pool.scale,
    )


class Evaluated:
    """Harnesses that ran every task of a pool, without a draw.

    A missing outcome leaves the sample. What a harness lost beyond the others, without an
    explanation, counts as failed, as in a search.

    >>> results = Evaluated(Pool(["a", "b", "c", "d"]))
    >>> results.tell("old", {("a", 0): 1.0, ("b", 0): 0.0, ("c", 0): 0.0, ("d", 0): 1.0})
    >>> results.tell("new", {("a", 0): 1.0, ("b", 0): 0.5, ("c", 0): 0.0, ("d", 0): 1.0})
    >>> results.estimate("new").value, round(results.estimate("new").se, 3)
    (0.625, 0.239)
    >>> print(results.compare("new", "old"))
    new - old: +0.125 ± 0.125, from -0.273 to +0.523 (paired, 4 tasks)
    """

    def __init__(self, pool: Pool, *, confidence: float = 0.95) -> None:
        self.pool, self.confidence = pool, confidence
        self._table = OutcomeTable(len(pool))
        self._losses = Losses(seed=0)

    def tell(self, name: Id, results: Mapping[tuple[Id, int], float | Missing]) -> None:
        """Record the outcomes of a harness, by task and number of the trial."""
        cells = [(self.pool.position(task), trial) for task, trial in results]
        values = list(results.values())
        scores = np.array([np.nan if isinstance(v, Missing) else v for v in values], dtype=float)
        lost = [
            cell
            for cell, value in zip(cells, values, strict=True)
            if isinstance(value, Missing) and not value.shared
        ]
        at = np.array(cells, dtype=np.int64).reshape(-1, 2)
        self._table.open(name, round=0)
        self._table.add(name, at[:, 0], at[:, 1], self.pool.to_unit(scores))
        self._losses.add(name, told=len(cells), lost=lost)

    def scores(self, name: Id) -> dict[Id, float]:
        """The mean over the trials of each task that has a score."""
        tasks, means = self._means(name)
        shown = self.pool.from_unit(means).tolist()
        return {self.pool.tasks[at]: mean for at, mean in zip(tasks.tolist(), shown, strict=True)}

    def estimate(self, name: Id) -> Estimate:
        """The score of a harness, with an interval for other tasks like these.

        Raises:
            NoOutcomeError: It has no score in some pool.
        """
        found = self._estimated(*self._means(name), least=0.0)
        notes = (found.note, failures_note(self._failed(name)), LIKE_THESE)
        return replace(found, note="; ".join(filter(None, notes))).scaled(self.pool.scale)

    def compare(self, a: Id, b: Id) -> Comparison | None:
        """How much higher `a` scores than `b` on the tasks where both have a score.

        None if some pool has no such task.
        """
        (tasks, means), (others, their) = self._means(a), self._means(b)
        common = np.intersect1d(tasks, others)
        apart = means[np.isin(tasks, common)] - their[np.isin(others, common)]
        try:
            found = self._estimated(common, apart, least=-1.0)
        except NoOutcomeError:
            return None
        return Comparison.paired(a, b, found, len(common)).scaled(self.pool.scale)

    def _estimated(self, tasks: Indices, means: Floats, *, least: float) -> Estimate:
        """The mean of values from `least` to 1, on the scale from 0 to 1."""
        samples = [_of_population(sample) for sample in whole_samples(self.pool, tasks, means)]
        found = Hajek().estimate(samples, self.pool.weights, self.confidence)
        return replace(
            found,
            pool_size=len(self.pool),
            method="task means",
            low=None if found.low is None else max(found.low, least),
            high=None if found.high is None else min(found.high, 1.0),
        )

    def _means(self, name: Id) -> tuple[Indices, Floats]:
        return self._table.means(name, None, self._failed(name))

    def _failed(self, name: Id) -> list[tuple[int, int]]:
        others = [other for other in self._table.candidates if other != name]
        return list(self._losses.failures(name, self._losses.base_rate((), others)))


def _of_population(sample: Sample) -> Sample:
    chance = np.full(len(sample.scores), sample.drawn / _POPULATION)
    return replace(sample, pool_size=_POPULATION, probabilities=chance)
