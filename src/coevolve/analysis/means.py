"""Means over series with standard errors, and differences of two protocols."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from coevolve.core.arrays import Floats

_TIE = 1e-9
"""Differences smaller than this are ties."""

Groups = Sequence[Sequence[Floats]]
"""Values by matrix and series; an array has one per seed, NaN where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean over matrices, of the means over their series, of the means over seeds.

    `se` is its standard error over series, each x_s entering with its weight w_s in the mean:
    se² = n/(n-1) Σ_s w_s² (x_s - mean)² for n series; that is s/√n where every matrix has as many
    series. `se_seeds` is the error that comes from the seeds alone. None where there are fewer
    than two.

    >>> mean = Mean.of([[np.array([1.0, 3.0]), np.array([4.0, 4.0])], [np.array([5.0, 5.0])]])
    >>> mean.mean, round(mean.se, 3), mean.se_seeds
    (4.0, 0.866, 0.25)
    """

    mean: float | None
    se: float | None
    se_seeds: float | None

    @classmethod
    def of(cls, groups: Groups) -> Self:
        """Mean of the values that are there."""
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
