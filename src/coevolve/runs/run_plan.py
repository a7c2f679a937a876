"""What a run would do, and its expected cost, without creating anything."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coevolve.benchmarks.base import sealed_tasks
from coevolve.errors import ConfigError
from coevolve.formatting import plural
from coevolve.runs.building import build_benchmark
from coevolve.runs.config import RunConfig
from coevolve.runs.cost_trial import forecast_config
from coevolve.runs.run_matrix import MatrixRun, RunMatrix
from coevolve.runs.session import new_selector, read_state, run_folder
from coevolve.search.budget import CAPS
from coevolve.views.forecast import Forecast, Part, total_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPlan:
    """A pool: its tasks, and how many of them a round draws."""

    pool: str
    tasks: int
    drawn: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"pool": self.pool, "tasks": self.tasks, "drawn": self.drawn}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What a run would do.

    `evaluations` counts as the paper does: the trials of all candidates in the rounds, without
    starting harnesses, rescoring and sealed test. With an adaptive protocol, `drawn` of
    `pools` is the first look at a candidate.
    """

    config: RunConfig
    folder: Path
    starts: tuple[str, ...]
    pools: tuple[PoolPlan, ...]
    test_tasks: int
    forecast: Forecast

    @property
    def evaluations(self) -> int:
        return int(self.forecast.savings.searched.high)

    @property
    def exists(self) -> bool:
        """Whether there is such a run already."""
        return (self.folder / "run.db").exists()

    @property
    def what(self) -> str:
        """The search in a few words."""
        search = self.config.search
        rounds, each = plural(search.rounds, "round"), plural(search.candidates, "candidate")
        beside = "" if search.in_flight is None else f", {search.in_flight} in flight"
        seed = self.config.run.seed
        return f"{rounds} of {each}{beside}, protocol {search.protocol}, seed {seed}"

    @property
    def tasks(self) -> str:
        """The tasks of each pool, and those of the sealed test."""
        pools = ", ".join(f"{one.tasks} {one.pool}" for one in self.pools)
        return f"{pools}; {self.test_tasks} sealed" if self.test_tasks else pools

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: the plan, and what `coevolve estimate` prints."""
        search = self.config.search
        return {
            "run": self.config.run.name,
            "folder": str(self.folder),
            "exists": self.exists,
            "seed": self.config.run.seed,
            "rounds": search.rounds,
            "candidates": search.candidates,
            "protocol": search.protocol,
            "starts": list(self.starts),
            "pools": [pool.to_json() for pool in self.pools],
            "test_tasks": self.test_tasks,
            "evaluations": self.evaluations,
            **self.forecast.to_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan:
    """A row of a matrix: the plan of one of its runs, and the cost of all of them."""

    name: str
    runs: int
    ended: int
    plan: RunPlan
    cost: Part

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        about = {"row": self.name, "runs": self.runs, "ended": self.ended}
        return {**about, **_cost(self.cost), "plan": self.plan.to_json()}


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixPlan:
    """What a matrix would run, and the cost of all of its runs, with those that have ended.

    `measured` is the number of ended runs from which the cost of trials and proposals is known.
    """

    rows: tuple[RowPlan, ...]
    measured: int = 0

    @property
    def total(self) -> Part:
        return total_of([row.cost for row in self.rows])

    @property
    def left(self) -> int:
        """Runs that have not ended."""
        return sum(row.runs - row.ended for row in self.rows)

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the forecasts: those that all rows have, then those of single rows."""
        notes = {row.name: row.plan.forecast.notes for row in self.rows}
        shared = [
            note
            for note in self.rows[0].plan.forecast.notes
            if all(note in of for of in notes.values())
        ]
        single = [
            f"{name}: {note}" for name, of in notes.items() for note in of if note not in shared
        ]
        if self.measured:
            shared.append(
                f"Trials and proposals cost what they did in {plural(self.measured, 'run')} of "
                "this matrix that ended; --like RUN takes the cost from another run."
            )
        return (*shared, *single)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "rows": [row.to_json() for row in self.rows],
            "total": {"runs": sum(row.runs for row in self.rows), **_cost(self.total)},
            "left": self.left,
            "notes": list(self.notes),
        }


def plan_matrix(
    matrix: RunMatrix, runs: Sequence[MatrixRun], *, like: Path | None = None
) -> MatrixPlan:
    """The plan of the runs of a matrix.

    The runs of a row differ only in their seed, so one of them is planned. Without `like`, trials
    and proposals cost what they did in the runs of the matrix that have ended.
    """
    done = [run for run in runs if run.started and read_state(run.folder).ended is not None]
    rows, used = [], set[Path]()
    for row in matrix.rows:
        mine = [run for run in runs if run.row == row.name]
        ended = () if like is not None else _priced_like(mine[0], done)
        used |= set(ended)
        try:
            plan = plan_run(mine[0].file, mine[0].config, like=like, ended=ended)
        except ConfigError as error:
            raise ConfigError(f"{matrix.file}, row {row.name!r}: {error}") from error
        one = plan.forecast.total
        spent = {name: amount * len(mine) for name, amount in one.spent.items()}
        cost = Part(name=row.name, trials=one.trials * len(mine), spent=spent)
        rows.append(
            RowPlan(
                name=row.name,
                runs=len(mine),
                ended=sum(run in done for run in mine),
                plan=plan,
                cost=cost,
            )
        )
    return MatrixPlan(rows=tuple(rows), measured=len(used))


def _priced_like(wanted: MatrixRun, done: Sequence[MatrixRun]) -> list[Path]:
    """The ended runs with the same benchmark, model and proposer."""

    def parts(run: MatrixRun) -> tuple[object, ...]:
        return run.config.benchmark, run.config.model, run.config.proposer

    return [run.folder for run in done if parts(run) == parts(wanted)]


def _cost(part: Part) -> dict[str, Any]:
    found = part.to_json()
    return {name: found[name] for name in CAPS}


def plan_run(
    file: Path, config: RunConfig, *, like: Path | None = None, ended: Sequence[Path] = ()
) -> RunPlan:
    """The plan of the run of a configuration, which is that of a TOML file.

    Args:
        file: The TOML file.
        config: Its configuration, with what options have changed.
        like: The folder of an earlier run that tells what trials and proposals cost.
        ended: Folders of such runs, whose mean it is without `like`.
    """
    benchmark = build_benchmark(config, file.parent)
    pool, selector = benchmark.pool, new_selector(config, benchmark.pool)
    sizes = selector.protocol.allocation.sizes(pool, np.ones(len(pool)))
    return RunPlan(
        config=config,
        folder=run_folder(file, config),
        starts=tuple(benchmark.starts),
        pools=tuple(
            PoolPlan(pool=name, tasks=len(pool.members(name)), drawn=size)
            for name, size in zip(pool.names, sizes, strict=True)
        ),
        test_tasks=len(sealed_tasks(benchmark)),
        forecast=forecast_config(file, config, benchmark, like=like, ended=ended),
    )
