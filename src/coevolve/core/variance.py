"""Variances of the estimators.

Of the sample alone: Hájek's approximation for fixed-size designs of high entropy, in place of
second-order inclusion probabilities. For e_t, the values an estimator weights,

    V(Σ e_t/π_t) ≈ n/(n-1) Σ_{t∈S} (1 - π_t) (e_t/π_t - B)²,  B = Σ (1-π_t)e_t/π_t / Σ (1-π_t).

It is exact for uniform draws [Hajek1964, BrewerDonadio2003]. After a weighted draw it is right on
average, but small whenever the rare tasks that would show the spread were not drawn, and then
the estimate is off as well: 95% intervals from it cover about 85%.

Anticipated: the difference estimator knows more. Its deviations e_t = x_t - p̄_t have, by the
history of each task (k of n outcomes, Jeffreys' prior: θ_t = (k + ½)/(n + 1)), the expected
square u_t = θ_t(1 - 2p̄_t) + p̄_t², drawn or not, which gives

    V ≈ (1/N²) Σ_{t∈T} (1 - π_t)/π_t · u_t · g,

summed separately over tasks mostly failed, mixed and mostly solved. In each of the three g scales
the history to the candidate at hand: Σ e_t² / Σ u_t over its sampled tasks, counting two more
tasks that are just as expected.
"""

import numpy as np

from coevolve.core.arrays import Floats, Indices

_GROUPS = 3
_PRIOR_TASKS = 2.0


def sample_variance(residual: Floats, probabilities: Floats) -> float:
    """Hájek's variance of Σ e_t / π_t from two or more sampled tasks.

    >>> sample_variance(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    2.0
    """
    free = 1 - probabilities
    expanded = residual / probabilities
    center = float(free @ expanded) / float(free.sum())
    n = len(residual)
    return float(free @ (expanded - center) ** 2) * n / (n - 1)


def anticipate(anchors: Floats, counts: Indices, probabilities: Floats) -> Floats:
    """Σ (1 - π_t)/π_t · u_t over all tasks of a pool, by group of anchors."""
    terms = (1 / probabilities - 1) * _expected_squares(anchors, counts)
    return np.bincount(_group(anchors), weights=terms, minlength=_GROUPS)


def anticipated_variance(
    anticipated: Floats,
    residual: Floats,
    anchors: Floats,
    counts: Indices,
    response: float,
    size: int,
) -> float:
    """Variance of the difference estimator of a pool of `size` tasks.

    Args:
        anticipated: What `anticipate` gave for the pool when the tasks were drawn.
        residual: e_t of the tasks that answered.
        anchors: p̄_t of the same tasks.
        counts: n_t of the same tasks.
        response: Share of the drawn tasks that answered; the variance grows by its inverse.
        size: N.
    """
    groups, expected = _group(anchors), _expected_squares(anchors, counts)
    tasks = np.bincount(groups, minlength=_GROUPS)
    seen = np.bincount(groups, weights=residual**2, minlength=_GROUPS)
    due = np.bincount(groups, weights=expected, minlength=_GROUPS)
    prior = _PRIOR_TASKS * due / np.maximum(tasks, 1)
    scale = np.where(tasks > 0, (seen + prior) / np.where(tasks > 0, due + prior, 1.0), 1.0)
    return float(anticipated @ scale) / response / size**2


def _expected_squares(anchors: Floats, counts: Indices) -> Floats:
    theta = (anchors * counts + 0.5) / (counts + 1)
    return np.asarray(theta * (1 - 2 * anchors) + anchors**2)


def _group(anchors: Floats) -> Indices:
    return (anchors > 1 / 3).astype(np.int64) + (anchors > 2 / 3)
