"""Inclusion probabilities of successive sampling, exactly and by Monte Carlo.

Successive sampling draws m tasks one after the other, each time with probability proportional
to the weights of those still left. It is an exponential race: with T_t ~ Exp(w_t), the m
smallest T_t are the sample. Task t is in it when T_t comes before the m-th arrival τ of the
others, so

    π_t = E[1 - exp(-w_t τ)] = ∫ (1 - q_t) f_t(s) ds,    q_i = exp(-w_i s), p_i = 1 - q_i,

where f_t is the density of τ: the coefficient of z^(m-1) in

    Π_{i≠t} (q_i + p_i z) · Σ_{j≠t} w_j q_j / (q_j + p_j z).

The coefficient is read off on a circle |z| = r near the saddle point, where the generating
function is not oscillating, and the integral over log s is a trapezoid sum; both converge
geometrically, so that a few dozen nodes each reach rounding level.

π_t depends on t only through w_t, and is an analytic function of log w. For many distinct
weights the sums over tasks are therefore taken on a few dozen Chebyshev points, whose
coefficients reproduce the sums over all tasks, and π is interpolated from the same points.
The identity Σ π_t = m, which nothing in the computation enforces, is the check.
"""

from dataclasses import dataclass

import numpy as np

from coevolve.core.arrays import Complexes, Floats
from coevolve.errors import InputError

_DIRECT = 192
"""Up to this many distinct weights the sums are taken over the weights themselves."""
_CHEBYSHEV = (40, 80, 160)
"""Numbers of Chebyshev points tried in turn before falling back to the direct sums."""
_LOG_EPS = 36.0
"""exp(-36) = 2e-16: what is smaller than this, relative to the peak, is left out."""
_FAR = 1e4
"""Bound of the search for the radius of the circle, in log r."""
_CHUNK = 1 << 20
"""Complex numbers held at once while summing."""


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
    weights = _checked(weights, size)
    if size == len(weights):
        return np.ones(len(weights))
    distinct, where, counts = np.unique(weights, return_inverse=True, return_counts=True)
    classes = _Classes(distinct / weights.mean(), counts.astype(np.float64))
    if len(distinct) <= _DIRECT:
        return np.asarray(_inclusion(classes, classes.weights, size)[where])
    for points in _CHEBYSHEV:
        answer = _interpolated(classes, size, points)
        if answer is not None:
            return np.asarray(answer[where])
    return np.asarray(_inclusion(classes, classes.weights, size)[where])


def monte_carlo_inclusion(
    weights: Floats, size: int, repetitions: int, rng: np.random.Generator
) -> Floats:
    """Inclusion probabilities estimated from repeated draws, as in the paper (4,000 of them).

    The relative error of π_t is about sqrt((1 - π_t) / (π_t · repetitions)). A task that no
    repetition drew gets 1 / repetitions instead of 0, so that no estimate divides by zero.
    """
    weights = _checked(weights, size)
    hits = np.zeros(len(weights), dtype=np.int64)
    rows = max(1, _CHUNK // len(weights))
    for start in range(0, repetitions, rows):
        arrivals = rng.exponential(size=(min(rows, repetitions - start), len(weights))) / weights
        first = np.argpartition(arrivals, size - 1, axis=1)[:, :size]
        hits += np.bincount(first.ravel(), minlength=len(weights))
    return np.asarray(np.maximum(hits, 1) / repetitions)


def _checked(weights: Floats, size: int) -> Floats:
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim != 1 or not len(weights):
        raise InputError(f"weights must be a non-empty vector, got shape {weights.shape}.")
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        bad = weights[~(np.isfinite(weights) & (weights > 0))][0]
        raise InputError(f"weights must be positive and finite, got {bad}.")
    if not 1 <= size <= len(weights):
        raise InputError(f"size must be between 1 and {len(weights)} (the tasks), got {size}.")
    return weights


@dataclass(frozen=True, slots=True)
class _Classes:
    """Weights with the number of tasks that have each; counts may be Chebyshev coefficients."""

    weights: Floats
    counts: Floats

    def total(self, values: Floats) -> Floats:
        """Sum over tasks of values given per class along the last axis."""
        return np.asarray(values @ self.counts)

    def product(self, values: Complexes) -> Complexes:
        """Product over tasks of values given per class along the last axis."""
        if len(self.counts) == self.counts.sum():
            return np.asarray(values.prod(axis=-1))
        return np.asarray(np.exp(np.log(values) @ self.counts))


def _inclusion(classes: _Classes, at: Floats, size: int) -> Floats:
    """π of a task of weight `at`, for each of them, in the population of `classes`."""
    s, height, tilt = _nodes(classes, size)
    tilted = _tilted(classes.weights, s, tilt)
    tilted_at = tilted if at is classes.weights else _tilted(at, s, tilt)
    variance = classes.total(tilted * (1 - tilted))
    turn, phase = _circle(classes, size, float(variance.min()), float(variance.max()))
    result = np.zeros(len(at))
    rows = max(1, _CHUNK // (len(turn) * max(len(at), len(classes.weights))))
    for start in range(0, len(s), rows):
        part = slice(start, start + rows)
        phi = 1 + tilted[part, None, :] * turn[:, None]
        inverse = 1 / phi
        front = height[part, None] * phase * classes.product(phi)
        rate = inverse @ (classes.counts * classes.weights * (1 - tilted[part]))[:, :, None]
        if at is not classes.weights:
            inverse = 1 / (1 + tilted_at[part, None, :] * turn[:, None])
        first = (front * rate[:, :, 0])[:, None, :] @ inverse
        second = front[:, None, :] @ np.square(inverse, out=inverse)
        density = first[:, 0].real - at * (1 - tilted_at[part]) * second[:, 0].real
        result += (density * tilted_at[part]).sum(axis=0)
    return np.clip(result, 0.0, 1.0)


def _circle(
    classes: _Classes, size: int, least: float, most: float
) -> tuple[Complexes, Complexes]:
    """Nodes exp(iθ) - 1 on the upper half circle and their weights for the coefficient m - 1.

    |Π φ| <= exp(-variance · (1 - cos θ)) bounds what the left-out nodes would have added.
    """
    nodes = min(int(9 * np.sqrt(most) + 12), round(classes.counts.sum())) | 1
    half = nodes // 2
    if 2 * least > _LOG_EPS:
        half = min(half, int(np.arccos(1 - _LOG_EPS / least) * nodes / (2 * np.pi)) + 1)
    angle = 2 * np.pi * np.arange(half + 1) / nodes
    both_halves = np.where(angle == 0, 1.0, 2.0) / nodes
    on_circle: Complexes = np.exp(1j * angle)
    return on_circle - 1, both_halves * on_circle ** (1 - size)


def _nodes(classes: _Classes, size: int) -> tuple[Floats, Floats, Floats]:
    """Times s, equally spaced in log s where the m-th arrival may fall.

    Returns:
        The times, the height of the integrand at each (times ds), and the tilt of its circle.
    """
    center, spread = _location(classes, size)
    step = min(0.25, 0.7 * spread / (1 + spread))
    left, right = 8.5 * spread + 18 * spread**2, 8.5 * spread
    while True:
        log_s = center + np.arange(-np.ceil(left / step), np.ceil(right / step) + 1) * step
        tilt, log_height = _saddle(classes, np.exp(log_s), size)
        log_height += log_s - center
        if log_height[0] > -_LOG_EPS:
            left *= 1.5
        elif log_height[-1] > -_LOG_EPS:
            right *= 1.5
        else:
            break
    keep = log_height > -_LOG_EPS
    return np.exp(log_s[keep]), np.exp(log_height[keep] + center) * step, tilt[keep]


def _location(classes: _Classes, size: int) -> tuple[float, float]:
    """Where log s is expected at the m-th arrival, and about how widely it spreads."""
    center = 0.0
    while True:
        rates = classes.weights * np.exp(center)
        waiting = np.exp(-rates)
        slope = float(classes.total(rates * waiting))
        spread = float(np.sqrt(classes.total(waiting * (1 - waiting)))) / slope
        move = (size - 0.5 - float(classes.total(1 - waiting))) / slope
        if abs(move) < 0.2 * spread:
            return center, spread
        center += float(np.clip(move, -1.0, 1.0))


def _saddle(classes: _Classes, s: Floats, size: int) -> tuple[Floats, Floats]:
    """Tilt λ = log r that brings the expected count near m - 1/2, and log Π (q_i + p_i r) / r^m.

    Both per time. Precision is not needed: every radius gives the same coefficient, a good one
    loses no digits to cancellation.
    """
    tilt = np.zeros(len(s))
    low, high = np.full(len(s), -_FAR), np.full(len(s), _FAR)
    for _ in range(60):
        tilted = _tilted(classes.weights, s, tilt)
        variance = classes.total(tilted * (1 - tilted))
        gap = size - 0.5 - classes.total(tilted)
        if (np.abs(gap) <= 0.1 + 0.1 * np.sqrt(np.maximum(variance, 0))).all():
            break
        low, high = np.where(gap > 0, tilt, low), np.where(gap < 0, tilt, high)
        newton = tilt + gap / np.maximum(variance, 1e-9)
        tilt = np.where((newton > low) & (newton < high), newton, (low + high) / 2)
    waiting = -s[:, None] * classes.weights
    log_factor = np.logaddexp(waiting, tilt[:, None] + np.log(-np.expm1(waiting)))
    return tilt, classes.total(log_factor) - size * tilt


def _tilted(weights: Floats, s: Floats, tilt: Floats) -> Floats:
    """Probability to have arrived by each time (rows), with odds multiplied by exp(tilt)."""
    exponent = s[:, None] * weights
    log_odds = exponent + np.log(-np.expm1(-exponent)) + tilt[:, None]
    return np.asarray(1 / (1 + np.exp(-np.clip(log_odds, -700, 700))))


def _interpolated(classes: _Classes, size: int, points: int) -> Floats | None:
    """π of every class through Chebyshev points in log w, or None where they are too few."""
    log_w = np.log(classes.weights)
    low, high = log_w[0], log_w[-1]
    x = np.clip((2 * log_w - low - high) / (high - low), -1.0, 1.0)
    nodes = np.cos(np.pi * (np.arange(points) + 0.5) / points)
    basis = np.polynomial.chebyshev.chebvander(nodes, points - 1) * (2 / points)
    basis[:, 0] /= 2
    grid = np.exp((nodes * (high - low) + low + high) / 2)
    proxy = _Classes(grid, basis @ _moments(x, classes.counts, points))
    coefficients = _inclusion(proxy, grid, size) @ basis
    if np.abs(coefficients[-points // 8 :]).max() > 1e-13 * np.abs(coefficients).max():
        return None
    answer = np.clip(np.polynomial.chebyshev.chebval(x, coefficients), 0.0, 1.0)
    return answer if abs(answer @ classes.counts - size) < 1e-9 * size else None


def _moments(x: Floats, counts: Floats, points: int) -> Floats:
    """Σ_i counts_i T_k(x_i) for k below `points`."""
    before, now = np.ones_like(x), x
    moments = [before @ counts, now @ counts]
    for _ in range(points - 2):
        before, now = now, 2 * x * now - before
        moments.append(now @ counts)
    return np.array(moments)
