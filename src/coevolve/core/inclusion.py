"""Inclusion probabilities of successive sampling, exactly and by Monte Carlo.

Successive sampling draws m tasks one after the other, each time with probability proportional
to the weights of those still left. Equivalently, with T_t ~ Exp(w_t), the m smallest T_t are the
sample. By time s task i has arrived with probability p_i = 1 - exp(-w_i s). Task t is the m-th to
arrive at time s with density

    l_t(s) = w_t (1 - p_t) · P(m - 1 of the others have arrived),

the m-th arrival has the density f = Σ l_t, and integration by parts of
π_t = ∫ w_t (1 - p_t) P(at most m - 1 of the others have arrived) ds gives

    π_t = ∫ p_t (f + l_t) ds.

The probability in l_t is the coefficient of z^(m-1) in Π_{i≠t} (1 - p_i + p_i z). It is computed
on a circle |z| = r near the saddle point, where the product does not oscillate, and the integral
over log s is a trapezoid sum. Both converge geometrically: a few dozen nodes each are exact up to
rounding.

π_t depends on t only through w_t, and is an analytic function of log w. For many distinct
weights the sums over tasks are therefore taken on a few dozen Chebyshev points, whose
coefficients reproduce the sums over all tasks, and π is interpolated from the same points.
The identity Σ π_t = m, which nothing in the computation enforces, is the check. At a million
tasks, drawing 200,000, it holds to better than one part in 10^10.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coevolve.core.arrays import Complexes, Floats
from coevolve.errors import InputError

_LOG_EPS = 34.0
"""exp(-34) = 2e-15: terms smaller than this, relative to the peak, are left out."""
_FAR = 100.0
"""Bound of |log s|, far beyond the last arrival even if weights differ by 10^12."""
_TOLERANCE = 1e-10
"""Relative error of Σ π_t that rounding may cause."""
_DENSER = (2.0, 4.0, 8.0, 16.0, 32.0)
"""How much denser the nodes are in each further attempt."""
_CHUNK = 1 << 20
"""Numbers held at once while summing or simulating."""


@dataclass(frozen=True, slots=True)
class Classes:
    """Weights with the number of tasks that have each; counts may be Chebyshev coefficients."""

    weights: Floats
    counts: Floats

    def total(self, values: Floats) -> Floats:
        """Sum over tasks of values given per class along the last axis."""
        return np.asarray(values @ self.counts)

    def product(self, values: Complexes) -> Complexes:
        """Product over tasks of values given per class along the last axis."""
        if len(self.counts) == self.counts.sum():
            return _folded_product(values)
        log_square = np.log(values.real**2 + values.imag**2) @ self.counts
        return np.asarray(np.exp(log_square / 2 + 1j * (np.angle(values) @ self.counts)))


def race_inclusion(classes: Classes, size: int) -> Floats:
    """π of a task of each class when the first `size` arrivals are drawn.

    Σ π_t = m is the check. If weights are so unequal that it fails, denser nodes are used.
    """
    pi = quadrature(classes, size)
    for denser in _DENSER:
        if adds_up(classes, pi, size):
            break
        pi = quadrature(classes, size, denser)
    return pi


def adds_up(classes: Classes, pi: Floats, size: int) -> bool:
    """Whether Σ π_t is the number of tasks drawn, up to rounding."""
    return bool(abs(float(classes.total(pi)) / size - 1) < _TOLERANCE)


def quadrature(classes: Classes, size: int, denser: float = 1.0) -> Floats:
    """π of each class, with `denser` nodes by this factor."""
    nodes = _nodes(classes, size, denser)
    tilted = nodes.tilted
    variance = classes.total(tilted * (1 - tilted))
    turn, phase = _circle(classes, size, float(variance.min()), float(variance.max()))
    coefficient = np.empty_like(tilted)
    rows = max(1, _CHUNK // (len(turn) * len(classes.weights)))
    for start in range(0, len(tilted), rows):
        part = slice(start, start + rows)
        phi = 1 + tilted[part, None, :] * turn[:, None]
        front = phase * classes.product(phi)
        coefficient[part] = (front[:, None, :] @ (1 / phi))[:, 0].real
    last = nodes.height[:, None] * classes.weights * nodes.waiting * coefficient
    arrived = -np.expm1(-nodes.s[:, None] * classes.weights)
    density = classes.total(last)
    return np.clip(density @ arrived + (last * arrived).sum(axis=0), 0.0, 1.0)


def _folded_product(values: Complexes) -> Complexes:
    """Product along the last axis by halving it, which vectorises."""
    while (size := values.shape[-1]) > 1:
        half = size // 2
        folded = values[..., :half] * values[..., half : 2 * half]
        if size % 2:
            folded[..., 0] *= values[..., -1]
        values = folded
    return values[..., 0]


def _circle(classes: Classes, size: int, least: float, most: float) -> tuple[Complexes, Complexes]:
    """Nodes exp(iθ) - 1 on the upper half circle and their weights for the coefficient m - 1.

    |Π φ| <= exp(-variance · (1 - cos θ)) bounds the contribution of the nodes left out.
    """
    nodes = min(int(9 * np.sqrt(most) + 12), round(classes.counts.sum())) | 1
    half = nodes // 2
    if 2 * least > _LOG_EPS:
        half = min(half, int(np.arccos(1 - _LOG_EPS / least) * nodes / (2 * np.pi)) + 1)
    angle = 2 * np.pi * np.arange(half + 1) / nodes
    both_halves = np.where(angle == 0, 1.0, 2.0) / nodes
    on_circle: Complexes = np.exp(1j * angle)
    return on_circle - 1, both_halves * on_circle ** (1 - size)


class _Nodes(NamedTuple):
    """Times s, the height of the integrand at each times ds, and tilted probabilities.

    `tilted` is the probability of having arrived, `waiting` that of not having arrived.
    """

    s: Floats
    height: Floats
    tilted: Floats
    waiting: Floats


def _nodes(classes: Classes, size: int, denser: float) -> _Nodes:
    """Times, equally spaced in log s, where the m-th arrival may fall."""
    center, spread = _location(classes, size)
    step = min(0.25, 0.7 * spread / (1 + spread)) / denser
    left, right = 8.5 * spread + 18 * spread**2, 8.5 * spread
    while True:
        log_s = center + np.arange(-np.ceil(left / step), np.ceil(right / step) + 1) * step
        log_height, log_odds = _saddle(classes, np.exp(log_s), size)
        log_height += log_s - center
        if log_height[0] > -_LOG_EPS:
            left *= 1.5
        elif log_height[-1] > -_LOG_EPS:
            right *= 1.5
        else:
            break
    keep = log_height > -_LOG_EPS
    height, odds = np.exp(log_height[keep] + center) * step, np.exp(log_odds[keep])
    return _Nodes(np.exp(log_s[keep]), height, odds / (1 + odds), 1 / (1 + odds))


def _location(classes: Classes, size: int) -> tuple[float, float]:
    """Where log s is expected at the m-th arrival, and about how widely it spreads."""
    center = float(np.log(-np.log1p((0.5 - size) / classes.counts.sum())))
    low, high = -_FAR, _FAR
    while True:
        rates = classes.weights * np.exp(center)
        waiting = np.exp(-rates)
        slope = max(float(classes.total(rates * waiting)), 1e-300)
        spread = float(np.sqrt(np.maximum(classes.total(waiting * (1 - waiting)), 0.0))) / slope
        move = (size - 0.5 - float(classes.total(1 - waiting))) / slope
        if abs(move) < 0.2 * spread or high - low < 1e-9:
            return center, spread
        low, high = (center, high) if move > 0 else (low, center)
        center += float(np.clip(move, -1.0, 1.0))
        if not low < center < high:
            center = (low + high) / 2


def _saddle(classes: Classes, s: Floats, size: int) -> tuple[Floats, Floats]:
    """Per time: log of Π (1 - p_i + p_i r) / r^(m-1), and the log of the odds of p_i times r.

    r makes the expected number of arrivals about m - 1/2. It need not be precise: every radius
    gives the same coefficient, and a good one avoids cancellation.
    """
    exponent = s[:, None] * classes.weights
    log_arrived = np.log(-np.expm1(-exponent))
    log_odds = exponent + log_arrived
    tilt = np.zeros(len(s))
    # Beyond these, either all tasks have arrived or none has.
    low, high = -log_odds.max(axis=1) - 60, 60 - log_odds.min(axis=1)
    while True:
        tilted_odds = np.clip(log_odds + tilt[:, None], -700, 700)
        tilted = 1 / (1 + np.exp(-tilted_odds))
        variance = np.maximum(classes.total(tilted * (1 - tilted)), 1e-9)
        gap = size - 0.5 - classes.total(tilted)
        far = (np.abs(gap) > 0.1 + 0.1 * np.sqrt(variance)) & (high - low > 1e-9)
        if not far.any():
            break
        low, high = np.where(gap > 0, tilt, low), np.where(gap < 0, tilt, high)
        most = 3 + np.abs(tilt)
        newton = tilt + np.clip(gap / variance, -most, most)
        inside = (newton > low) & (newton < high)
        tilt = np.where(far, np.where(inside, newton, (low + high) / 2), tilt)
    log_factors = np.logaddexp(-exponent, log_arrived + tilt[:, None])
    return classes.total(log_factors) - (size - 1) * tilt, tilted_odds


_DIRECT = 192
"""Up to this many distinct weights, sums are taken over the weights directly."""
_CHEBYSHEV = (40, 80, 160)
"""Numbers of Chebyshev points, tried in turn before direct sums."""
_SPAN = 1e12
"""Largest ratio of two weights; beyond it, floating point is not accurate enough."""


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
    repetition drew gets 1 / repetitions instead of 0, to avoid a division by zero.
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
    """The weights, checked: positive, and enough of them to draw `size` tasks."""
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
    """π of every class by Chebyshev points in log w, or None if they are too few."""
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
