"""What a replay found, per matrix and over all of them."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from coevolve.analysis.jobs import Row
from coevolve.analysis.means import Comparison, Groups, Mean
from coevolve.core.arrays import Floats


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
