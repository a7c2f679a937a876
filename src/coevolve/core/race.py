"""The exponential race behind successive sampling, by quadrature.

With T_t ~ Exp(w_t), the m smallest T_t are the sample. By time s task i has arrived with
probability p_i = 1 - exp(-w_i s). Task t is the m-th to arrive at time s with density

    l_t(s) = w_t (1 - p_t) · P(m - 1 of the others have arrived),

the m-th arrival as such has the density f = Σ l_t, and integration by parts of
π_t = ∫ w_t (1 - p_t) P(at most m - 1 of the others have arrived) ds gives

    π_t = ∫ p_t (f + l_t) ds.

The probability in l_t is the coefficient of z^(m-1) in Π_{i≠t} (1 - p_i + p_i z). It is read off
on a circle |z| = r near the saddle point, where the product does not oscillate, and the integral
over log s is a trapezoid sum; both converge geometrically, so that a few dozen nodes each reach
rounding level.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coevolve.core.arrays import Complexes, Floats

_LOG_EPS = 34.0
"""exp(-34) = 2e-15: what is smaller than this, relative to the peak, is left out."""
_FAR = 1e6
"""Bound of the search for the radius of the circle, in log r."""
_CHUNK = 1 << 20
"""Complex numbers held at once while summing."""


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
    """π of a task of each class when the first `size` arrivals are drawn."""
    nodes = _nodes(classes, size)
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
    last = nodes.height[:, None] * classes.weights * (1 - tilted) * coefficient
    arrived = -np.expm1(-nodes.s[:, None] * classes.weights)
    density = classes.total(last)
    return np.clip(density @ arrived + (last * arrived).sum(axis=0), 0.0, 1.0)


def _folded_product(values: Complexes) -> Complexes:
    """Product along the last axis, half on half; twice as fast as numpy's."""
    while (size := values.shape[-1]) > 1:
        half = size // 2
        folded = values[..., :half] * values[..., half : 2 * half]
        if size % 2:
            folded[..., 0] *= values[..., -1]
        values = folded
    return values[..., 0]


def _circle(classes: Classes, size: int, least: float, most: float) -> tuple[Complexes, Complexes]:
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


class _Nodes(NamedTuple):
    """Times s, and for each the height of the integrand times ds, and tilted probabilities."""

    s: Floats
    height: Floats
    tilted: Floats


def _nodes(classes: Classes, size: int) -> _Nodes:
    """Times, equally spaced in log s, where the m-th arrival may fall."""
    center, spread = _location(classes, size)
    step = min(0.25, 0.7 * spread / (1 + spread))
    left, right = 8.5 * spread + 18 * spread**2, 8.5 * spread
    while True:
        log_s = center + np.arange(-np.ceil(left / step), np.ceil(right / step) + 1) * step
        log_height, tilted = _saddle(classes, np.exp(log_s), size)
        log_height += log_s - center
        if log_height[0] > -_LOG_EPS:
            left *= 1.5
        elif log_height[-1] > -_LOG_EPS:
            right *= 1.5
        else:
            break
    keep = log_height > -_LOG_EPS
    height = np.exp(log_height[keep] + center) * step
    return _Nodes(np.exp(log_s[keep]), height, tilted[keep])


def _location(classes: Classes, size: int) -> tuple[float, float]:
    """Where log s is expected at the m-th arrival, and about how widely it spreads."""
    center = float(np.log(-np.log1p((0.5 - size) / classes.counts.sum())))
    while True:
        rates = classes.weights * np.exp(center)
        waiting = np.exp(-rates)
        slope = float(classes.total(rates * waiting))
        spread = float(np.sqrt(classes.total(waiting * (1 - waiting)))) / slope
        move = (size - 0.5 - float(classes.total(1 - waiting))) / slope
        if abs(move) < 0.2 * spread:
            return center, spread
        center += float(np.clip(move, -1.0, 1.0))


def _saddle(classes: Classes, s: Floats, size: int) -> tuple[Floats, Floats]:
    """Per time: log of Π (1 - p_i + p_i r) / r^(m-1), and p_i with odds multiplied by r.

    r brings the expected number of arrivals near m - 1/2. Precision is not needed: every radius
    gives the same coefficient, a good one loses no digits to cancellation.
    """
    exponent = s[:, None] * classes.weights
    log_odds = exponent + np.log(-np.expm1(-exponent))
    tilt = np.zeros(len(s))
    low, high = np.full(len(s), -_FAR), np.full(len(s), _FAR)
    while True:
        log_tilted_odds = log_odds + tilt[:, None]
        tilted = 1 / (1 + np.exp(-np.clip(log_tilted_odds, -700, 700)))
        variance = np.maximum(classes.total(tilted * (1 - tilted)), 1e-9)
        gap = size - 0.5 - classes.total(tilted)
        far = np.abs(gap) > 0.1 + 0.1 * np.sqrt(variance)
        if not far.any():
            break
        low, high = np.where(gap > 0, tilt, low), np.where(gap < 0, tilt, high)
        most = 3 + np.abs(tilt)
        newton = tilt + np.clip(gap / variance, -most, most)
        inside = (newton > low) & (newton < high)
        tilt = np.where(far, np.where(inside, newton, (low + high) / 2), tilt)
    log_factors = np.logaddexp(0, log_tilted_odds) - exponent
    return classes.total(log_factors) - (size - 1) * tilt, tilted
