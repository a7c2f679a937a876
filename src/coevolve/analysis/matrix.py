"""Outcome matrices and their series: known outcomes of candidates on tasks, to replay."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Self

import numpy as np

from coevolve.benchmarks.synthetic import SyntheticWorld
from coevolve.core.arrays import Bools, Floats, Indices
from coevolve.core.assignment import whole_samples
from coevolve.core.estimators import Hajek
from coevolve.core.pool import Pool
from coevolve.errors import InputError, MatrixError, PoolError
from coevolve.formatting import plural

STARTS = 2
"""So many of the first candidates of a series are the starting harnesses, unless it says more."""
LEAST = STARTS + 1
"""A series needs the starting harnesses and one more candidate."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """One search to replay: its first candidates are the starting harnesses.

    Args:
        matrix: The name of the matrix.
        name: The name of the series.
        pool: The tasks.
        candidates: In the order of proposal.
        outcomes: Candidates × tasks in [0, 1], NaN where there is none.
        trials: The number of trials that each outcome is the mean of, if known.
        costs: The cost of each outcome, NaN where it is unknown.
        started: Number of starting harnesses, two if left out.

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
    started: int = STARTS

    @property
    def starts(self) -> tuple[str, ...]:
        """The starting harnesses."""
        return self.candidates[: self.started]

    @property
    def generated(self) -> tuple[str, ...]:
        """The candidates of the search, in the order of proposal."""
        return self.candidates[self.started :]

    def rows(self, chosen: Sequence[int] | Indices, names: Sequence[str] | None = None) -> Self:
        """The series of some candidates, under other names if given."""
        at = np.asarray(chosen, dtype=np.int64)
        return replace(
            self,
            candidates=tuple(names or (self.candidates[i] for i in at.tolist())),
            outcomes=self.outcomes[at],
            trials=None if self.trials is None else self.trials[at],
            costs=None if self.costs is None else self.costs[at],
        )

    def true_scores(self) -> Floats:
        """S(h) of every candidate: the mean over all tasks, with the weights of the pools."""
        return np.array([full_score(self.pool, row) for row in self.outcomes])

    def evaluated(self) -> Indices:
        """The number of tasks with an outcome, of every candidate."""
        found: Indices = np.count_nonzero(~np.isnan(self.outcomes), axis=1)
        return found

    def stream(self, seed: int) -> int:
        """The seed of the draws of a replay; different series have unrelated seeds."""
        text = f"{self.matrix}\0{self.name}\0{seed}"
        return int.from_bytes(blake2b(text.encode(), digest_size=6).digest())

    def trial(self, seed: int) -> Floats:
        """Outcomes of one trial of every task; a mean of trials becomes a draw, 0 or 1.

        A cell is a mean of trials unless `trials` is 1 there. The draw depends only on the
        series, the seed, the candidate and the task.
        """
        luck = np.random.default_rng(self.stream(seed)).random(self.outcomes.shape)
        drawn = np.where(np.isnan(self.outcomes), np.nan, luck < self.outcomes)
        return drawn if self.trials is None else np.where(self.trials > 1, drawn, self.outcomes)

    def priced_pool(self) -> Pool:
        """The pool with the costs that a user would expect: the mean of the starting harnesses.

        A task of unknown cost, or of cost zero, gets the mean of the other tasks.
        """
        if self.costs is None:
            return self.pool
        mean = _mean(self.costs[: self.started])
        known = mean > 0
        if not known.any():
            return self.pool
        costs = np.where(known, mean, mean[known].mean())
        return Pool.from_json(self.pool.to_json() | {"costs": costs.tolist()})

    def spent(self) -> Floats | None:
        """The cost of each cell; None if no cost is known.

        A cell of unknown cost gets the mean of its task, or of all cells.
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
    """Mean known cost of each task; NaN where no cost is known."""
    known = ~np.isnan(costs)
    mean = np.full(costs.shape[1], np.nan)
    np.divide(np.nansum(costs, axis=0), known.sum(axis=0), out=mean, where=known.any(axis=0))
    return mean


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Matrix:
    """Named outcomes in one or more series, and notes on what was left out.

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
        starts: Any = None,
    ) -> Self:
        """A matrix from the arrays of a file.

        Args:
            name: The name of the matrix.
            outcomes: Candidates × tasks in [0, 1], candidates in the order of proposal; NaN
                where there is no outcome.
            run: The run of each candidate; every run is a series.
            trials: How many trials a cell is the mean of: one number, or per task, or per cell.
            cost: Cost of a trial, per task or per cell; NaN where unknown.
            tasks: Id of each task.
            candidates: Name of each candidate.
            pools: Pool of each task.
            starts: Number of starting harnesses of each series, two if left out.
        """
        values = _checked_outcomes(outcomes)
        rows, columns = values.shape
        names = _checked_names("candidates", candidates, rows, "candidate")
        ids = _checked_names("tasks", tasks, columns, "task")
        labels = None if pools is None else _checked_names("pools", pools, columns, "pool")
        try:
            pool = Pool(ids, pools=labels)
        except PoolError as error:
            raise MatrixError(
                f"the arrays 'tasks' and 'pools' do not make a pool: {error}"
            ) from None
        started = STARTS if starts is None else int(_numbers("starts", starts).max(initial=1))
        if started < 1:
            raise MatrixError(f"array 'starts' must be at least 1, got {started}.")
        numbers, costs = _checked_trials(trials, values), _checked_costs(cost, values.shape)
        series = [
            Series(
                matrix=name,
                name=label,
                pool=pool,
                candidates=tuple(names[i] for i in np.flatnonzero(members).tolist()),
                outcomes=values[members],
                trials=None if numbers is None else numbers[members],
                costs=None if costs is None else costs[members],
                started=started,
            )
            for label, members in _checked_runs(run, rows)
        ]
        return cls.from_series(name, series)

    @classmethod
    def from_series(cls, name: str, series: Sequence[Series]) -> Self:
        """A matrix of the series that can be replayed; notes name the others."""
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
            if len(one.candidates) <= one.started:
                notes.append(
                    f"series {one.name!r} has {plural(len(one.candidates), 'candidate')} and is "
                    f"left out; a replay needs {one.started + 1} or more, starting harnesses "
                    "included"
                )
            else:
                kept.append(one)
        if not kept:
            raise MatrixError(
                f"no series can be replayed: {'; '.join(notes)}. Add the outcomes of more "
                "candidates, each with at least one in every pool."
            )
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
    """Whether each candidate has an outcome in every pool, and so a true score."""
    seen = ~np.isnan(outcomes)
    return np.all([seen[:, pool.members(name)].any(axis=1) for name in pool.names], axis=0)


def synthetic_matrix(
    *, tasks: int = 89, candidates: int = 30, worlds: int = 4, seed: int = 0
) -> Matrix:
    """A series for each synthetic world; each candidate is a child of the best before it.

    >>> matrix = synthetic_matrix(tasks=50, candidates=10, worlds=1)
    >>> matrix.series[0].true_scores().round(2).tolist()[:4]
    [0.6, 0.54, 0.56, 0.6]
    """
    if candidates < LEAST:
        raise InputError(f"candidates must be at least {LEAST}, got {candidates}.")
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


def _checked_outcomes(given: Any) -> Floats:
    """Candidates × tasks in [0, 1], or NaN."""
    values = _numbers("outcomes", given)
    if values.ndim != 2 or not values.size:
        raise MatrixError(
            f"array 'outcomes' must be candidates × tasks, got shape {values.shape}."
        )
    _refuse("outcomes", values, ~(np.isnan(values) | ((values >= 0) & (values <= 1))), "in [0, 1]")
    return values


def _checked_trials(given: Any, outcomes: Floats) -> Indices | None:
    """The number of trials of each cell; a cell with an outcome has at least one."""
    if given is None:
        return None
    values = _numbers("trials", given)
    if values.shape == (1,):
        values = values[0]
    cells = _cells("trials", values, outcomes.shape, "one number, ")
    _refuse("trials", cells, ~((cells >= 0) & (cells == np.floor(cells))), "0, 1, 2, ...")
    _refuse("trials", cells, (cells == 0) & ~np.isnan(outcomes), "at least 1 for an outcome")
    return cells.astype(np.int64)


def _checked_costs(given: Any, shape: tuple[int, ...]) -> Floats | None:
    """The cost of each cell, NaN where unknown; None if every cost is unknown."""
    if given is None:
        return None
    values = _numbers("cost", given)
    if not values.ndim:
        raise MatrixError("array 'cost' must be per task or per cell, got one number.")
    cells = _cells("cost", values, shape, "")
    _refuse("cost", cells, ~(np.isnan(cells) | ((cells >= 0) & (cells < np.inf))), "at least 0")
    return None if np.isnan(cells).all() else cells


def _checked_names(array: str, given: Any, number: int, kind: str) -> tuple[str, ...]:
    """One name per row or column; numbers if there are no names."""
    if given is None:
        return tuple(f"{kind}-{i}" for i in range(number))
    values = _labels(array, given, number)
    return tuple(str(value) for value in values.tolist())


def _checked_runs(given: Any, number: int) -> Iterator[tuple[str, Bools]]:
    """The name of each series, and which rows belong to it."""
    if given is None:
        yield "all", np.ones(number, dtype=np.bool_)
        return
    values = _labels("run", given, number)
    for value in np.unique(values):
        yield str(value), np.asarray(values == value)


def _labels(array: str, given: Any, number: int) -> Any:
    values = np.asarray(given)
    if values.shape != (number,):
        raise MatrixError(
            f"array {array!r} has shape {values.shape}, but 'outcomes' needs {number} of them."
        )
    if values.dtype.kind not in "USiub":
        raise MatrixError(f"array {array!r} must hold text or whole numbers, got {values.dtype}.")
    return np.char.decode(values) if values.dtype.kind == "S" else values


def _numbers(array: str, given: Any) -> Floats:
    values = np.asarray(given)
    if values.dtype.kind not in "fiub":
        raise MatrixError(f"array {array!r} must hold numbers, got {values.dtype}.")
    return values.astype(np.float64)


def _cells(array: str, values: Floats, shape: tuple[int, ...], also: str) -> Floats:
    """Values for all cells."""
    if values.shape not in ((), shape[1:], shape):
        raise MatrixError(
            f"array {array!r} must be {also}per task {shape[1:]} or per cell {shape}, got shape "
            f"{values.shape}."
        )
    return np.broadcast_to(values, shape).copy()


def _refuse(array: str, values: Floats, wrong: Bools, wanted: str) -> None:
    if wrong.any():
        row, column = np.unravel_index(int(np.argmax(wrong)), values.shape)
        raise MatrixError(
            f"array {array!r} must be {wanted}, got {values[row, column]:g} in row {row}, column "
            f"{column}."
        )
