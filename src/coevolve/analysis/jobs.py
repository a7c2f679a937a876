"""Replays in parallel: a job is one series with one seed, under every protocol and fraction."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from coevolve.analysis.matrix import Matrix
from coevolve.analysis.metrics import Values
from coevolve.analysis.plan import Plan
from coevolve.analysis.play import Played, Stage, play
from coevolve.analysis.series import Series
from coevolve.core.outcomes import is_whole
from coevolve.errors import CoevolveError, InputError, ReplayError

Measure = Callable[[Played], Values]
Report = Callable[[int, int], None]
"""Told how many searches are done, of how many."""


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
    """Results as they come in; the first failure ends it."""
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
    """Leave Ctrl-C to the parent, which ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _single_threads() -> Iterator[None]:
    """Keep the linear algebra of workers started here to a thread each: they share the cores."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    added = [name for name in names if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]
