"""Inclusion probabilities of successive sampling, exactly and by Monte Carlo.

Successive sampling draws m tasks one after the other, each time with probability proportional
to the weights of those still left; `coevolve.core.race` computes π_t.

π_t depends on t only through w_t, and is an analytic function of log w. For many distinct
weights the sums over tasks are therefore taken on a few dozen Chebyshev points, whose
coefficients reproduce the sums over all tasks, and π is interpolated from the same points.
The identity Σ π_t = m, which nothing in the computation enforces, is the check. At a million
tasks, drawing 200,000, it holds to better than one part in 10^10.
"""

import numpy as np

from coevolve.core.arrays import Floats
from coevolve.core.race import Classes, adds_up, quadrature, race_inclusion
from coevolve.errors import InputError

_DIRECT = 192
"""Up to this many distinct weights the sums are taken over the weights themselves."""
_CHEBYSHEV = (40, 80, 160)
"""Numbers of Chebyshev points tried in turn before falling back to the direct sums."""
_SPAN = 1e12
"""Largest ratio of two weights; the numbers behind a larger one mean nothing."""
_CHUNK = 1 << 20
"""Arrival times simulated at once."""


def successive_inclusion(weights: Floats, size: int) -> Floats:
    """Exact inclusion probabilities π_t of a weighted draw of `size` without replacement.

    Args:
        weights: Positive weights w_t, one per task.
        size: Number of tasks drawn, m.

    Returns:
        π_t for every task; they sum to m.

    >>> successive_inclusion(np.array([1.0, 1.0, 2.0]), 2).round(6).tolist()
    [0.583333, 0.583333, 0.833333]
    """
    weights = checked_weights(weights, size)
    if size == len(weights):
        return np.ones(len(weights))
    distinct, where, counts = np.unique(weights, return_inverse=True, return_counts=True)
    if len(weights) <= min(_DIRECT, 4 * len(distinct)):
        # Few tasks share a weight: a product over tasks is faster than powers over classes.
        distinct, where = weights, np.arange(len(weights))
        counts = np.ones_like(where)
    classes = Classes(distinct / weights.mean(), counts.astype(np.float64))
    if len(distinct) > _DIRECT:
        for points in _CHEBYSHEV:
            answer = _interpolated(classes, size, points)
            if answer is not None:
                return np.asarray(answer[where])
    return np.asarray(race_inclusion(classes, size)[where])


def monte_carlo_inclusion(
    weights: Floats, size: int, repetitions: int, rng: np.random.Generator
) -> Floats:
    """Inclusion probabilities estimated from repeated draws, as in the paper (4,000 of them).

    The relative error of π_t is about sqrt((1 - π_t) / (π_t · repetitions)). A task that no
    repetition drew gets 1 / repetitions instead of 0, so that no estimate divides by zero.
    """
    weights = checked_weights(weights, size)
    hits = np.zeros(len(weights), dtype=np.int64)
    rows = max(1, _CHUNK // len(weights))
    for start in range(0, repetitions, rows):
        arrivals = rng.exponential(size=(min(rows, repetitions - start), len(weights))) / weights
        first = np.argpartition(arrivals, size - 1, axis=1)[:, :size]
        hits += np.bincount(first.ravel(), minlength=len(weights))
    return np.asarray(np.maximum(hits, 1) / repetitions)


def checked_weights(weights: Floats, size: int) -> Floats:
    """The weights, if they are positive and `size` of the tasks can be drawn by them."""
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim != 1 or not len(weights):
        raise InputError(f"weights must be a non-empty vector, got shape {weights.shape}.")
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        bad = weights[~(np.isfinite(weights) & (weights > 0))][0]
        raise InputError(f"weights must be positive and finite, got {bad}.")
    if weights.max() > _SPAN * weights.min():
        raise InputError(
            f"weights must be within a factor {_SPAN:.0e} of each other, got {weights.min()} and "
            f"{weights.max()}."
        )
    if not 1 <= size <= len(weights):
        raise InputError(f"size must be between 1 and {len(weights)} (the tasks), got {size}.")
    return weights


def _interpolated(classes: Classes, size: int, points: int) -> Floats | None:
    """π of every class through Chebyshev points in log w, or None where they are too few."""
    log_w = np.log(classes.weights)
    low, high = log_w[0], log_w[-1]
    x = np.clip((2 * log_w - low - high) / (high - low), -1.0, 1.0)
    nodes = np.cos(np.pi * (np.arange(points) + 0.5) / points)
    basis = np.polynomial.chebyshev.chebvander(nodes, points - 1) * (2 / points)
    basis[:, 0] /= 2
    grid = np.exp((nodes * (high - low) + low + high) / 2)
    proxy = Classes(grid, basis @ _moments(x, classes.counts, points))
    coefficients = quadrature(proxy, size) @ basis
    if np.abs(coefficients[-points // 8 :]).max() > 1e-13 * np.abs(coefficients).max():
        return None
    answer = np.clip(np.polynomial.chebyshev.chebval(x, coefficients), 0.0, 1.0)
    return answer if adds_up(classes, answer, size) else None


def _moments(x: Floats, counts: Floats, points: int) -> Floats:
    """Σ_i counts_i T_k(x_i) for k below `points`."""
    before, now = np.ones_like(x), x
    moments = [before @ counts, now @ counts]
    for _ in range(points - 2):
        before, now = now, 2 * x * now - before
        moments.append(now @ counts)
    return np.array(moments)
