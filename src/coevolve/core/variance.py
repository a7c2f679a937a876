"""Variances of the estimators.

From the sample alone: Hájek's approximation for fixed-size designs of high entropy, which needs
no second-order inclusion probabilities. For the values e_t that an estimator weights,

    V(Σ e_t/π_t) ≈ n/(n-1) Σ_{t∈S} (1 - π_t) (e_t/π_t - B)²,  B = Σ (1-π_t)e_t/π_t / Σ (1-π_t).

It is exact for uniform draws [Hajek1964, BrewerDonadio2003]. After a weighted draw it is correct
on average, but too small if the rare tasks that show the spread were not drawn, and then the
estimate is wrong as well: 95% intervals of Horvitz–Thompson cover 89% to 91% at 100 of 500 tasks
(`benchmarks/coverage.py`).

Anticipated, from the history: a task solved k times out of n is solved again with probability
θ_t = (k + α)/(n + α + β), drawn or not. The beta distribution of the tasks' success rates is
fitted by moments: α + β = q/(1 - q), where q compares the disagreement within tasks with that of
the whole pool. Hence the expected squared deviation from the anchor is
u_t = θ_t(1 - 2p̄_t) + p̄_t², and from a mean score S it is θ_t(1 - 2S) + S², which gives

    V(Hájek) ≈ (1/N²) Σ_{t∈T} (1 - π_t)/π_t · (θ_t(1 - 2Ŝ) + Ŝ²)
    V(difference) ≈ (1/N²) Σ_{t∈T} (1 - π_t)/π_t · u_t · g,

the latter summed separately over mostly failed, mixed and mostly solved tasks. In each of the
three groups, g scales the history to the candidate at hand: Σ e_t² / Σ u_t over its sampled tasks,
with two more tasks that deviate as expected.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from coevolve.core.arrays import Floats, Indices
from coevolve.core.outcome_table import History

_GROUPS = 3
_PRIOR_TASKS = 2.0
_MOST_MIXED = 0.9


def sample_variance(residual: Floats, probabilities: Floats) -> float:
    """Hájek's variance of Σ e_t / π_t from two or more sampled tasks.

    >>> sample_variance(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    2.0
    """
    free = np.maximum(1 - probabilities, 0.0)  # may exceed 1 for a task of several batches
    expanded = residual / probabilities
    center = float(free @ expanded) / float(free.sum())
    n = len(residual)
    return float(free @ (expanded - center) ** 2) * n / (n - 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Anticipation:
    """The variances of estimates from a draw, expected from the history of the pool.

    `deviations` holds Σ (1-π_t)/π_t · u_t for each group of anchors, `chance` Σ (1-π_t)/π_t and
    `success` Σ (1-π_t)/π_t · θ_t, each over all tasks of the pool; `squares` Σ u_t, `size` N and
    `solves` Σ θ_t are the same without the weight. If only a share a of the drawn tasks has a
    score, π_t becomes a·π_t and the weight (1-π_t)/π_t / a + (1-a)/a.
    """

    deviations: Floats
    chance: float
    success: float
    squares: Floats
    size: int
    solves: float

    @classmethod
    def of(cls, past: "Past", probabilities: Floats) -> Self:
        """The anticipation for a pool of this past, drawn with these probabilities."""
        odds = 1 / probabilities - 1
        groups, squares = _group(past.anchors), past.expected
        theta = expected_success(past.history)
        return cls(
            deviations=np.bincount(groups, weights=odds * squares, minlength=_GROUPS),
            chance=float(odds.sum()),
            success=float(odds @ theta),
            squares=np.bincount(groups, weights=squares, minlength=_GROUPS),
            size=len(odds),
            solves=float(theta.sum()),
        )

    def of_hajek(self, value: float, share: float) -> float:
        """Variance of Hájek's estimate of the total score.

        Args:
            value: The estimated mean score.
            share: Share of the drawn tasks that have a score.
        """
        chance = (self.chance + (1 - share) * self.size) / share
        success = (self.success + (1 - share) * self.solves) / share
        return success * (1 - 2 * value) + chance * value**2

    def of_difference(
        self, residual: Floats, expected: Floats, anchors: Floats, share: float
    ) -> float:
        """Variance of the difference estimate of the total score.

        Args:
            residual: e_t of the tasks that have a score.
            expected: u_t of the same tasks.
            anchors: p̄_t of the same tasks.
            share: Share of the drawn tasks that have a score.
        """
        groups = _group(anchors)
        tasks = np.bincount(groups, minlength=_GROUPS)
        seen = np.bincount(groups, weights=residual**2, minlength=_GROUPS)
        due = np.bincount(groups, weights=expected, minlength=_GROUPS)
        prior = _PRIOR_TASKS * due / np.maximum(tasks, 1)
        scale = np.where(tasks > 0, (seen + prior) / np.where(tasks > 0, due + prior, 1.0), 1.0)
        return float((self.deviations + (1 - share) * self.squares) @ scale) / share

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "deviations": self.deviations.tolist(),
            "chance": self.chance,
            "success": self.success,
            "squares": self.squares.tolist(),
            "size": self.size,
            "solves": self.solves,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The anticipation `to_json` described."""
        return cls(
            deviations=np.array(data["deviations"], dtype=np.float64),
            chance=float(data["chance"]),
            success=float(data["success"]),
            squares=np.array(data["squares"], dtype=np.float64),
            size=int(data["size"]),
            solves=float(data["solves"]),
        )


class Past(NamedTuple):
    """The history of a pool before a draw, its anchors p̄_t and the u_t expected of them."""

    history: History
    anchors: Floats
    expected: Floats

    @classmethod
    def of(cls, history: History) -> "Past":
        """The past of a pool with this history."""
        return cls(history, history.anchors, expected_squares(history))


def expected_success(history: History) -> Floats:
    """θ_t of every task of a pool: the probability that the next candidate solves it.

    >>> history = History(mean=np.repeat([0.0, 0.5, 1.0], [40, 20, 40]), count=np.full(100, 2))
    >>> expected_success(history)[[0, 50, 99]].round(2).tolist()
    [0.13, 0.5, 0.87]
    """
    alpha, beta = _prior(history)
    solved = history.anchors * history.count
    return np.asarray((solved + alpha) / (history.count + alpha + beta))


def expected_squares(history: History) -> Floats:
    """u_t of every task of a pool: the expected (x_t - p̄_t)² of the next candidate."""
    anchors = history.anchors
    return np.asarray(expected_success(history) * (1 - 2 * anchors) + anchors**2)


def _prior(history: History) -> tuple[float, float]:
    """α and β by moments, with one more task on which candidates disagree entirely."""
    several = history.count > 1
    p, n = history.mean[several], history.count[several]
    within = (float((p * (1 - p) * n / (n - 1)).sum()) + 0.25) / (len(p) + 1)
    mean = (float(p.sum()) + 0.5) / (len(p) + 1)
    q = min(within / (mean * (1 - mean)), _MOST_MIXED)
    strength = q / (1 - q)
    return mean * strength, (1 - mean) * strength


def _group(anchors: Floats) -> Indices:
    return (anchors > 1 / 3).astype(np.int64) + (anchors > 2 / 3)
