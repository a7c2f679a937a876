"""Orders of the rows and columns of an outcome matrix: as given, by score, by likeness."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coevolve.core.arrays import Floats, Indices
from coevolve.views.outcome_grid import OutcomeGrid

_MOST_CLUSTERED = 500
"""Rows that are clustered pair by pair; more are ordered by their principal components."""
_BLOCK, _TURNS = 8, 24
"""Vectors, and multiplications, that find the first two components."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GridOrders:
    """Places of tasks and of candidates, in several orders.

    Tasks: "given" is the order of the pool, "solvability" begins with the task that most
    candidates solve, "cluster" puts tasks next to each other that the same candidates solve.
    Candidates: "round" is the order of proposal, "score" begins with the highest estimate,
    "cluster" puts candidates next to each other that solve the same tasks.
    """

    tasks: dict[str, Indices]
    candidates: dict[str, Indices]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "tasks": {name: order.tolist() for name, order in self.tasks.items()},
            "candidates": {name: order.tolist() for name, order in self.candidates.items()},
        }


def grid_orders(grid: OutcomeGrid) -> GridOrders:
    """All orders of a matrix; they depend on its outcomes alone."""
    tasks, candidates = len(grid.tasks), len(grid.candidates)
    known = ~np.isnan(grid.scores)
    filled = imputed(grid.scores)
    values = np.array(
        [-np.inf if row.estimate is None else row.estimate["value"] for row in grid.candidates],
        dtype=np.float64,
    )
    solvability = np.where(np.isnan(grid.solvability), -1.0, grid.solvability)
    return GridOrders(
        tasks={
            "given": np.arange(tasks),
            "solvability": np.argsort(-solvability, kind="stable"),
            "cluster": alike(filled.T, known.any(axis=0)),
        },
        candidates={
            "round": np.arange(candidates),
            "score": np.argsort(-values, kind="stable"),
            "cluster": alike(filled, known.any(axis=1)),
        },
    )


def imputed(scores: Floats) -> Floats:
    """Scores without gaps: a gap is the mean of its row plus that of its column minus that of all.

    >>> imputed(np.array([[1.0, 0.0], [1.0, np.nan]])).round(2).tolist()
    [[1.0, 0.0], [1.0, 0.33]]
    """
    known = ~np.isnan(scores)
    if not known.any():
        return np.zeros_like(scores)
    held = np.where(known, scores, 0.0)
    total = float(held.sum() / known.sum())

    def means(axis: int) -> Floats:
        number = known.sum(axis=axis)
        return np.where(number > 0, held.sum(axis=axis) / np.maximum(number, 1), total)

    expected = means(1)[:, None] + means(0)[None, :] - total
    return np.asarray(np.where(known, scores, np.clip(expected, 0.0, 1.0)))


def alike(rows: Floats, seen: Any) -> Indices:
    """An order in which similar rows are neighbours; rows that were not `seen` are last.

    Up to 500 rows are clustered by average linkage, and the leaves of the tree are ordered so that
    neighbours differ least [BarJoseph2001]. More rows are ordered by the angle of their first two
    principal components [Friendly2002]. The better half of the rows comes first.

    >>> rows = np.array([[1, 1, 0.0], [0, 0, 1], [1, 1, 0], [0, 0, 1]])
    >>> alike(rows, np.ones(4, dtype=bool)).tolist()
    [0, 2, 3, 1]
    """
    places = np.flatnonzero(seen)
    rest = np.flatnonzero(~np.asarray(seen))
    if len(places) < 3:
        order = places
    elif len(places) <= _MOST_CLUSTERED:
        order = places[_leaves(rows[places])]
    else:
        order = places[_angles(rows[places])]
    means = rows[order].mean(axis=1)
    half = len(order) // 2
    if means[:half].sum() < means[len(order) - half :].sum():
        order = order[::-1]
    return np.concatenate([order, rest])


def _leaves(rows: Floats) -> Indices:
    from scipy.cluster.hierarchy import leaves_list, linkage  # on first use: slow to import
    from scipy.spatial.distance import pdist

    distances = pdist(rows, "cityblock")
    return np.asarray(leaves_list(linkage(distances, "average", optimal_ordering=True)))


def _first_axes(centred: Floats) -> Floats:
    """About the first two principal axes: a block of vectors that turns to them."""
    block = np.random.default_rng(0).standard_normal((centred.shape[1], _BLOCK))
    for _ in range(_TURNS):
        block = np.linalg.qr(centred.T @ (centred @ block))[0]
    turned = np.linalg.svd(centred @ block, full_matrices=False)[2][:2]
    return np.asarray(block @ turned.T)


def _angles(rows: Floats) -> Indices:
    centred = rows - rows.mean(axis=0)
    axes = _first_axes(centred)
    # The sign of an axis is arbitrary; the largest entry is positive.
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    points = centred @ axes
    angles = np.arctan2(points[:, 1], points[:, 0]).round(9)
    order = np.argsort(angles, kind="stable")
    ordered = angles[order]
    gaps = np.diff(np.concatenate([ordered, [ordered[0] + 2 * np.pi]]))
    return np.roll(order, -(int(gaps.argmax()) + 1))
