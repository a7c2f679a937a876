"""Replays of protocols on outcome matrices, in parallel, and their summary."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from coevolve.analysis.matrix import Matrix, Series
from coevolve.analysis.replay_search import PROTOCOLS, Plan, Played, Stage, Values, measured, play
from coevolve.core.arrays import Floats
from coevolve.core.outcomes import is_whole
from coevolve.core.protocols import SearchProtocol
from coevolve.errors import CoevolveError, InputError, ReplayError

_TIE = 1e-9
"""Differences smaller than this are ties."""

Groups = Sequence[Sequence[Floats]]
"""Values by matrix and series; an array has one per seed, NaN where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean over matrices, of the means over their series, of the means over seeds.

    `se` is its standard error over series, where x_s has the weight w_s in the mean:
    se² = n/(n-1) Σ_s w_s² (x_s - mean)² for n series. This is s/√n if all matrices have the same
    number of series. `se_seeds` is the error from the seeds alone. Both are None where there are
    fewer than two values.

    >>> mean = Mean.of([[np.array([1.0, 3.0]), np.array([4.0, 4.0])], [np.array([5.0, 5.0])]])
    >>> mean.mean, round(mean.se, 3), mean.se_seeds
    (4.0, 0.866, 0.25)
    """

    mean: float | None
    se: float | None
    se_seeds: float | None

    @classmethod
    def of(cls, groups: Groups) -> Self:
        """The mean of the values that are not NaN."""
        kept = [[v[~np.isnan(v)] for v in group if not np.isnan(v).all()] for group in groups]
        kept = [group for group in kept if group]
        if not kept:
            return cls(mean=None, se=None, se_seeds=None)
        series = [values for group in kept for values in group]
        means = np.array([values.mean() for values in series])
        weights = np.concatenate([np.full(len(g), 1 / (len(kept) * len(g))) for g in kept])
        mean, number = float(weights @ means), len(means)
        se = se_seeds = None
        if number > 1:
            se = float(np.sqrt(number / (number - 1) * (weights**2 @ (means - mean) ** 2)))
        if all(len(values) > 1 for values in series):
            errors = np.array([values.var(ddof=1) / len(values) for values in series])
            se_seeds = float(np.sqrt(weights**2 @ errors))
        return cls(mean=mean, se=se, se_seeds=se_seeds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The regret of a protocol minus that of another, seed by seed on the same series.

    Over all matrices `z` is the difference in standard errors over series, and wins, ties and
    losses count matrices; within a matrix the standard error is over seeds, and series are
    counted. `significant` says whether the difference exceeds two standard errors.
    """

    against: str
    difference: float
    se: float | None
    se_seeds: float | None
    z: float | None
    significant: bool
    wins: int
    ties: int
    losses: int

    @classmethod
    def of(cls, against: str, differences: Groups, *, within: bool) -> Self:
        """Comparison over all matrices, or within the only one."""
        found = Mean.of(differences)
        units = [[series] for series in differences[0]] if within else differences
        means = np.array([Mean.of([unit]).mean for unit in units])
        error = found.se_seeds if within else found.se
        difference = float(found.mean or 0.0)
        return cls(
            against=against,
            difference=difference,
            se=found.se,
            se_seeds=found.se_seeds,
            z=difference / error if error else None,
            significant=error is not None and abs(difference) > 2 * error + _TIE,
            wins=int((means < -_TIE).sum()),
            ties=int((np.abs(means) <= _TIE).sum()),
            losses=int((means > _TIE).sum()),
        )


Measure = Callable[[Played], Values]
Report = Callable[[int, int], None]
"""Called with the number of finished searches, and of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One replayed search: what it was, and its metrics by name.

    >>> Row(matrix="gso", series="all", protocol="naive", fraction=0.2, seed=0, candidates=19,
    ...     tasks=102, values={"regret": 0.02}).to_json()["regret"]
    0.02
    """

    matrix: str
    series: str
    protocol: str
    fraction: float
    seed: int
    candidates: int
    tasks: int
    values: Mapping[str, float | int | None]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, flat."""
        names = ("matrix", "series", "protocol", "fraction", "seed")
        sizes = ("candidates", "tasks")
        return (
            {name: getattr(self, name) for name in names}
            | dict(self.values)
            | {name: getattr(self, name) for name in sizes}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A series and a seed, to be replayed under every protocol and fraction of a plan."""

    series: Series
    seed: int
    plan: Plan
    measure: Measure

    def run(self) -> list[Row]:
        """A row per fraction and protocol, in the order of the plan."""
        stage = Stage.of(self.series, self.seed, bernoulli=self.plan.bernoulli)
        return [
            self._row(stage, number, fraction)
            for fraction in self.plan.fractions
            for number in range(len(self.plan.protocols))
        ]

    def _row(self, stage: Stage, number: int, fraction: float) -> Row:
        protocol = self.plan.protocols[number]
        try:
            played = play(stage, protocol, fraction=fraction, per_round=self.plan.per_round)
            values = self.measure(played)
        except Exception as error:
            where = (
                f"matrix {self.series.matrix!r}, series {self.series.name!r}, protocol "
                f"{protocol.name!r}, fraction {fraction:g}, seed {self.seed}"
            )
            if isinstance(error, CoevolveError):
                raise ReplayError(f"{where}: {error}") from error
            error.add_note(f"in the replay of {where}")
            raise
        return Row(
            matrix=self.series.matrix,
            series=self.series.name,
            protocol=protocol.name,
            fraction=fraction,
            seed=self.seed,
            candidates=len(self.series.generated),
            tasks=len(self.series.pool),
            values=values,
        )


def run_jobs(
    matrices: Sequence[Matrix], plan: Plan, measure: Measure, *, workers: int, report: Report
) -> list[Row]:
    """Rows by matrix, series, seed, fraction and protocol, whatever the number of workers."""
    if not is_whole(workers, least=1):
        raise InputError(f"workers must be at least 1, got {workers!r}.")
    names = [matrix.name for matrix in matrices]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two matrices are named {twice!r}.")
    jobs = [
        Job(series=series, seed=seed, plan=plan, measure=measure)
        for matrix in matrices
        for series in matrix.series
        for seed in plan.seeds
    ]
    each = len(plan.fractions) * len(plan.protocols)
    report(0, each * len(jobs))
    done = _alone(jobs) if workers == 1 else _together(jobs, workers)
    rows: dict[int, list[Row]] = {}
    for number, found in done:
        rows[number] = found
        report(each * len(rows), each * len(jobs))
    return [row for number in range(len(jobs)) for row in rows[number]]


def _alone(jobs: Sequence[Job]) -> Iterator[tuple[int, list[Row]]]:
    for number, job in enumerate(jobs):
        yield number, job.run()


def _together(jobs: Sequence[Job], workers: int) -> Iterator[tuple[int, list[Row]]]:
    """Results in the order of completion; the first failure stops the rest."""
    context = multiprocessing.get_context("spawn")
    workers = min(workers, len(jobs))
    with ProcessPoolExecutor(workers, context, _ignore_interrupts) as pool:
        try:
            with _single_threads():
                numbers = {pool.submit(job.run): number for number, job in enumerate(jobs)}
            for future in as_completed(numbers):
                yield numbers[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent process, which stops its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _single_threads() -> Iterator[None]:
    """Limit the linear algebra of new workers to one thread each: they share the cores."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    added = [name for name in names if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Means of a protocol at a fraction: on one series, one matrix, or all of them.

    `run` names the series, and is None for all series of the matrix; `matrix` is None for all.
    """

    matrix: str | None
    run: str | None
    protocol: str
    fraction: float
    series: int
    seeds: int
    means: dict[str, Mean]
    paired: Comparison | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, with the metrics by name."""
        names = ("matrix", "run", "protocol", "fraction", "series", "seeds")
        return (
            {name: getattr(self, name) for name in names}
            | {name: asdict(mean) for name, mean in self.means.items()}
            | {"paired": None if self.paired is None else asdict(self.paired)}
        )


def summarised(rows: Sequence[Row], *, compared: str | None = "regret") -> list[Entry]:
    """Entries by fraction, matrix (all of them last), series and protocol, as in the rows.

    A matrix of several series has entries for all of them, then for each.

    Args:
        rows: Replayed searches, every protocol and fraction on the same series and seeds.
        compared: The metric in which protocols are compared with the first, the lower the better.
    """
    cube = _Cube.of(rows)
    return [
        cube.entry(fraction, matrix, run, protocol, compared)
        for fraction in cube.fractions
        for matrix in (*cube.matrices, None)
        for run in cube.runs(matrix)
        for protocol in cube.protocols
    ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cube:
    """All values: fraction × protocol × series × seed × metric, NaN where there is none."""

    fractions: list[float]
    protocols: list[str]
    series: list[tuple[str, str]]
    seeds: list[int]
    metrics: list[str]
    values: Floats

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Self:
        axes: tuple[list[Any], ...] = (
            _distinct(row.fraction for row in rows),
            _distinct(row.protocol for row in rows),
            _distinct((row.matrix, row.series) for row in rows),
            _distinct(row.seed for row in rows),
        )
        metrics = list(rows[0].values)
        values = np.full((*map(len, axes), len(metrics)), np.nan)
        places = [{value: place for place, value in enumerate(axis)} for axis in axes]
        for row in rows:
            key = row.fraction, row.protocol, (row.matrix, row.series), row.seed
            at = tuple(place[value] for place, value in zip(places, key, strict=True))
            values[at] = [np.nan if v is None else v for v in row.values.values()]
        fractions, protocols, series, seeds = axes
        return cls(
            fractions=fractions,
            protocols=protocols,
            series=series,
            seeds=seeds,
            metrics=metrics,
            values=values,
        )

    @property
    def matrices(self) -> list[str]:
        return _distinct(matrix for matrix, _ in self.series)

    def runs(self, matrix: str | None) -> list[str | None]:
        """None for all series of a matrix, then each of them where there are several."""
        names = [run for name, run in self.series if name == matrix]
        return [None, *names] if len(names) > 1 else [None]

    def entry(
        self,
        fraction: float,
        matrix: str | None,
        run: str | None,
        protocol: str,
        compared: str | None,
    ) -> Entry:
        first = self.protocols[0]
        own = self._values(fraction, protocol)
        paired = None
        if compared is not None and protocol != first:
            differences = (own - self._values(fraction, first))[..., self.metrics.index(compared)]
            groups = self._groups(differences, matrix, run)
            paired = Comparison.of(first, groups, within=matrix is not None)
        return Entry(
            matrix=matrix,
            run=run,
            protocol=protocol,
            fraction=fraction,
            series=sum(map(len, self._groups(own[..., 0], matrix, run))),
            seeds=len(self.seeds),
            means={
                metric: Mean.of(self._groups(own[..., place], matrix, run))
                for place, metric in enumerate(self.metrics)
            },
            paired=paired,
        )

    def _values(self, fraction: float, protocol: str) -> Floats:
        found = self.values[self.fractions.index(fraction), self.protocols.index(protocol)]
        return np.asarray(found)

    def _groups(self, values: Floats, matrix: str | None, run: str | None) -> Groups:
        """Values (series × seed) by matrix, of one or all."""
        names = self.matrices if matrix is None else [matrix]
        rows = list(zip(values, self.series, strict=True))
        return [
            [row for row, (of, series) in rows if of == name and run in (None, series)]
            for name in names
        ]


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


SCHEMA = 1
"""Number of the JSON form, which `docs/replay.md` describes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The results of a replay: a row for each search, and the means."""

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
