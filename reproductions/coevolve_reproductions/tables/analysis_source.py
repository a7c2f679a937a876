"""The input of an analysis: its settings, replays, and the run or matrix."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from coevolve.analysis.matrix import Series
from coevolve.analysis.matrix_files import read_events, read_matrix
from coevolve.analysis.replay import Report
from coevolve.analysis.replay_search import Plan, Stage
from coevolve.core.protocols import SearchProtocol
from coevolve.errors import (
    CoevolveError,
    EventError,
    InputError,
    MatrixError,
    ReplayError,
    nearest,
)
from coevolve_reproductions.tables.finished_search import Search

SEEDS = 10
FRACTION = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Choices of the user; None means the default of the analysis.

    Args:
        protocols: Names of the protocols to replay.
        fractions: Values of ρ.
        seeds: Number of replays of each.
        per_round: Candidates proposed per round.
        rounds: The rounds that the table difficulty shows.
        set: Settings of the protocols, for those that have them.

    >>> Settings(seeds=5).given
    frozenset({'seeds'})
    """

    protocols: tuple[str, ...] | None = None
    fractions: tuple[float, ...] | None = None
    seeds: int | None = None
    per_round: int | None = None
    rounds: tuple[int, ...] | None = None
    set: Mapping[str, Any] | None = None

    @property
    def given(self) -> frozenset[str]:
        """Names of the settings that were chosen."""
        return frozenset(f.name for f in fields(self) if getattr(self, f.name) is not None)


class Replayed(NamedTuple):
    """The searches of a protocol at a fraction, one per seed."""

    protocol: SearchProtocol
    fraction: float
    searches: list[Search]

    @property
    def label(self) -> str:
        """Protocol and fraction in words."""
        return f"{self.protocol.name}, {self.fraction:.0%}"


def replayed(
    series: Series, settings: Settings, protocols: Sequence[str], report: Report
) -> list[Replayed]:
    """The searches by protocol and fraction; all see the same seeds and candidates.

    >>> from coevolve.analysis import synthetic_matrix
    >>> series = synthetic_matrix(tasks=20, candidates=6).series[0]
    >>> (group,) = replayed(series, Settings(seeds=3), ["naive"], lambda done, total: None)
    >>> group.label, len(group.searches), group.searches[0].state.evaluations
    ('naive, 20%', 3, 16)
    """
    plan = Plan.of(
        protocols=settings.protocols or protocols,
        fractions=settings.fractions or (FRACTION,),
        seeds=range(SEEDS if settings.seeds is None else settings.seeds),
        per_round=1 if settings.per_round is None else settings.per_round,
        settings=settings.set,
    )
    groups = [Replayed(p, f, []) for f in plan.fractions for p in plan.protocols]
    total = len(groups) * len(plan.seeds)
    report(0, total)
    for done, search in enumerate(_searches(series, plan, groups)):
        groups[done % len(groups)].searches.append(search)
        report(done + 1, total)
    return groups


def labels(groups: Sequence[Replayed]) -> list[str]:
    """Labels that differ between the groups: protocol, fraction, or both."""
    protocols, fractions = ({group[at] for group in groups} for at in (0, 1))
    if len(fractions) == 1:
        return [group.protocol.name for group in groups]
    if len(protocols) == 1:
        return [f"{group.fraction:.0%}" for group in groups]
    return [group.label for group in groups]


def about(series: Series, groups: Sequence[Replayed]) -> str:
    """A sentence about the replays."""
    seeds = len(groups[0].searches)
    return (
        f"{seeds} replay{'s' * (seeds > 1)} of each search on {series.matrix}, series "
        f"{series.name}: {len(series.generated)} candidates, {len(series.pool)} tasks."
    )


def _searches(series: Series, plan: Plan, groups: Sequence[Replayed]) -> Iterator[Search]:
    for seed in plan.seeds:
        stage = Stage.of(series, seed)
        for protocol, fraction, _ in groups:
            try:
                yield Search.replayed(stage, protocol, fraction=fraction, per_round=plan.per_round)
            except CoevolveError as error:
                raise ReplayError(
                    f"series {series.name!r}, protocol {protocol.name!r}, fraction {fraction:g}, "
                    f"seed {seed}: {error}"
                ) from error


EVENTS = "events.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """The search of a run or a series of a matrix, and notes on what was left out."""

    name: str
    search: Search | None = None
    series: Series | None = None
    notes: tuple[str, ...] = ()


def read_source(path: str | Path, series: str | None = None) -> Source:
    """The run or matrix under a path.

    Args:
        path: An `.npz` outcome matrix; a `.csv` or `.parquet` table of outcomes; a `.jsonl` file
            with an event of a selector per line; or a folder with such a file, named events.jsonl.
        series: Name of the series of a matrix; by default the first.

    >>> import tempfile, numpy as np
    >>> path = Path(tempfile.mkdtemp()) / "tiny.npz"
    >>> np.savez(path, outcomes=np.array([[0, 1], [1, 0], [1, 1]]))
    >>> read_source(path).series.generated
    ('candidate-2',)
    """
    path = Path(path)
    name = path.resolve().name if path.is_dir() else path.stem
    if path.is_dir():
        path = path / EVENTS
    if path.suffix in (".npz", ".csv", ".parquet"):
        return _from_matrix(path, name, series)
    if path.suffix != ".jsonl" or not path.is_file():
        raise MatrixError(
            f"{path} is not a run or matrix; use an .npz outcome matrix, a .csv or .parquet "
            f"table of outcomes, a .jsonl file of events or a folder with {EVENTS}."
        )
    if series is not None:
        raise InputError(f"--series chooses a series of a matrix, and {path} is a run.")
    try:
        return Source(name=name, search=Search.of_events(read_events(path)))
    except (CoevolveError, UnicodeError) as error:
        raise EventError(f"{path}: {error}") from error


def _from_matrix(path: Path, name: str, wanted: str | None) -> Source:
    matrix = read_matrix(path)
    names = [series.name for series in matrix.series]
    if wanted is not None and wanted not in names:
        shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        raise MatrixError(
            f"{path} has no series {wanted!r}; there are {shown}." + nearest(wanted, names)
        )
    chosen = matrix.series[0 if wanted is None else names.index(wanted)]
    notes = list(matrix.notes)
    if wanted is None and len(names) > 1:
        notes.append(f"{len(names)} series, of which this is the first; --series chooses another")
    return Source(name=name, series=chosen, notes=tuple(notes))
