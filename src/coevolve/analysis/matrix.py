"""Outcome matrices: the outcomes of known candidates on known tasks, to replay searches on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from coevolve.analysis.arrays import (
    checked_costs,
    checked_names,
    checked_outcomes,
    checked_runs,
    checked_trials,
)
from coevolve.analysis.series import STARTS, Series
from coevolve.core.arrays import Bools, Floats
from coevolve.core.pool import Pool
from coevolve.errors import MatrixError, PoolError

LEAST = STARTS + 1
"""A series needs the starting harnesses and one candidate more."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Matrix:
    """Named outcomes in one or more series, and notes on what of them was left out.

    >>> from coevolve.analysis import synthetic_matrix
    >>> matrix = synthetic_matrix(tasks=20, candidates=6, worlds=3)
    >>> matrix
    Matrix(synthetic: 3 series of 6 to 6 candidates, 20 tasks)
    >>> len(matrix.limited(series=2).series)
    2
    """

    name: str
    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def from_arrays(
        cls,
        name: str,
        outcomes: Any,
        *,
        run: Any = None,
        trials: Any = None,
        cost: Any = None,
        tasks: Any = None,
        candidates: Any = None,
        pools: Any = None,
    ) -> Self:
        """Matrix from arrays as a file holds them.

        Args:
            name: What it is known by.
            outcomes: Candidates × tasks in [0, 1], candidates in the order of proposal; NaN
                where there is no outcome.
            run: The run each candidate belongs to; each is a series of its own.
            trials: How many trials a cell is the mean of: one number, or per task, or per cell.
            cost: Cost of a trial, per task or per cell; NaN where unknown.
            tasks: Id of each task.
            candidates: Name of each candidate.
            pools: Pool of each task.
        """
        values = checked_outcomes(outcomes)
        rows, columns = values.shape
        names = checked_names("candidates", candidates, rows, "candidate")
        ids = checked_names("tasks", tasks, columns, "task")
        labels = None if pools is None else checked_names("pools", pools, columns, "pool")
        try:
            pool = Pool(ids, pools=labels)
        except PoolError as error:
            raise MatrixError(f"the arrays 'tasks' and 'pools' make no pool: {error}") from None
        numbers, costs = checked_trials(trials, values), checked_costs(cost, values.shape)
        series = [
            Series(
                matrix=name,
                name=label,
                pool=pool,
                candidates=tuple(names[i] for i in np.flatnonzero(members).tolist()),
                outcomes=values[members],
                trials=None if numbers is None else numbers[members],
                costs=None if costs is None else costs[members],
            )
            for label, members in checked_runs(run, rows)
        ]
        return cls.from_series(name, series)

    @classmethod
    def from_series(cls, name: str, series: Sequence[Series]) -> Self:
        """Matrix of the series that can be replayed; a note names what cannot."""
        kept, notes = [], []
        for one in series:
            whole = _scorable(one.pool, one.outcomes)
            if not whole.all():
                first = one.candidates[int(np.argmin(whole))]
                notes.append(
                    f"series {one.name!r}: {int((~whole).sum())} of {len(whole)} candidates have "
                    f"no outcome in some pool and are left out, {first!r} first"
                )
                one = one.rows(np.flatnonzero(whole))
            if len(set(one.candidates)) < len(one.candidates):
                twice = next(c for c in one.candidates if one.candidates.count(c) > 1)
                raise MatrixError(
                    f"array 'candidates' has {twice!r} twice in series {one.name!r}."
                )
            if len(one.candidates) < LEAST:
                notes.append(
                    f"series {one.name!r} has {len(one.candidates)} candidates and is left out; "
                    f"a replay needs {LEAST}, two of them starting harnesses"
                )
            else:
                kept.append(one)
        if not kept:
            raise MatrixError(f"no series can be replayed: {'; '.join(notes)}.")
        return cls(name=name, series=tuple(kept), notes=tuple(notes))

    def __repr__(self) -> str:
        sizes = [len(series.candidates) for series in self.series]
        return (
            f"Matrix({self.name}: {len(sizes)} series of {min(sizes)} to {max(sizes)} "
            f"candidates, {len(self.series[0].pool)} tasks)"
        )

    def limited(self, *, series: int | None = None, candidates: int | None = None) -> Self:
        """The first series, and the first candidates of each."""
        for name, value, least in (("series", series, 1), ("candidates", candidates, LEAST)):
            if value is not None and value < least:
                raise MatrixError(f"the limit on {name} must be at least {least}, got {value}.")
        notes = list(self.notes)
        if series is not None and series < len(self.series):
            notes.append(f"the first {series} of {len(self.series)} series")
        kept = self.series[:series]
        longest = max(len(one.candidates) for one in kept)
        if candidates is not None and candidates < longest:
            notes.append(f"the first {candidates} of up to {longest} candidates")
            kept = tuple(one.rows(np.arange(len(one.candidates))[:candidates]) for one in kept)
        return replace(self, series=kept, notes=tuple(notes))


def _scorable(pool: Pool, outcomes: Floats) -> Bools:
    """Whether a candidate has an outcome in every pool, so that it has a true score."""
    seen = ~np.isnan(outcomes)
    return np.all([seen[:, pool.members(name)].any(axis=1) for name in pool.names], axis=0)
