"""The parameters of the joint model: abilities and slopes of candidates, and their variances."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from coevolve.core.arrays import Bools, Floats

NODES: Floats = np.linspace(-8.0, 8.0, 25)
"""Easiness on the logit scale; beyond ±8 a task is solved always or never."""

COMMON = 4.0
"""Prior variance of the ability that all candidates share: 0 ± 2."""

APART = 4.0
"""Prior variance of the ability that all starting harnesses have beside it: 0 ± 2."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Effects:
    """The parameters of a fit, from which the next one starts; tasks have none.

    `curves` holds θ and s of every candidate (2 x candidates); `own`, `walk` and `slope` are the
    variances of abilities, of their drift over the rounds and of slopes; `start_ability` and
    `start_slope` those of starting harnesses; `masses` the share of tasks at each node;
    `dispersion` the variance of a mean of n trials relative to p (1 - p) / n.
    """

    curves: Floats
    own: float
    walk: float
    slope: float
    start_ability: float
    start_slope: float
    masses: Floats
    dispersion: float

    @classmethod
    def at_first(cls, candidates: int, mean: float) -> "Effects":
        """Before the first step: all candidates equal, tasks normal."""
        masses = np.exp(-0.5 * (NODES / 2.0) ** 2)
        ability = np.log(mean / (1 - mean))
        return cls(
            curves=np.vstack([np.full(candidates, ability), np.ones(candidates)]),
            own=0.5,
            walk=0.1,
            slope=0.05,
            start_ability=1.0,
            start_slope=0.1,
            masses=masses / masses.sum(),
            dispersion=1.0,
        )

    def extended(self, candidates: int) -> "Effects":
        """With new candidates, which start at the mean of those before."""
        new = candidates - self.curves.shape[1]
        mean = np.array([[self.curves[0].mean()], [1.0]])
        return replace(self, curves=np.hstack([self.curves, np.repeat(mean, new, axis=1)]))

    def prior(self, rounds: tuple[int, ...]) -> Floats:
        """Prior covariance of the abilities of candidates of these rounds."""
        new = generated(rounds)
        apart = APART * np.outer(~new, ~new)
        own = np.diag(np.where(new, self.own, self.start_ability))
        return np.asarray(COMMON + apart + self.walk * drift(rounds) + own)

    def slope_variances(self, rounds: tuple[int, ...]) -> Floats:
        """Prior variance of the slopes of candidates of these rounds."""
        return np.where(generated(rounds), self.slope, self.start_slope)

    def newcomer(self, rounds: tuple[int, ...]) -> Floats:
        """Chance of a candidate of the next round at each node, given the abilities so far.

        >>> able = Effects.at_first(3, 0.9).newcomer((0, 0, 1))[12]
        >>> unable = Effects.at_first(3, 0.1).newcomer((0, 0, 1))[12]
        >>> bool(able > 0.7), round(float(able + unable), 6)
        (True, 1.0)
        """
        prior = self.prior((*rounds, max(rounds, default=0) + 1))
        link = np.linalg.solve(prior[:-1, :-1], prior[:-1, -1])
        mean, variance = link @ self.curves[0], prior[-1, -1] - link @ prior[:-1, -1]
        return averaged(mean + NODES, variance + self.slope * NODES**2)


def averaged(logits: Floats, variance: Floats) -> Floats:
    """Mean of 1 / (1 + exp(-z)) for normal z, approximately [MacKay1992].

    >>> averaged(np.array([2.0]), np.array([0.0])).round(3).tolist()
    [0.881]
    """
    return np.asarray(1 / (1 + np.exp(-logits / np.sqrt(1 + np.pi / 8 * variance))))


def generated(rounds: tuple[int, ...]) -> Bools:
    """Whether each candidate was generated or observed: round 0 has the starting harnesses.

    >>> generated((0, 0, 1)).tolist()
    [False, False, True]
    """
    return np.array(rounds) > 0


@lru_cache(maxsize=4)
def drift(rounds: tuple[int, ...]) -> Floats:
    """Covariance of abilities that drift over the rounds: half random walk, half straight trend.

    Both are centred, and scaled to a mean variance of 1. Starting harnesses do not drift.

    >>> drift((1, 2, 3)).round(2).tolist()[0]
    [1.38, -0.13, -1.25]
    """
    total = np.zeros((len(rounds), len(rounds)))
    among = np.flatnonzero(generated(rounds))
    when = np.array(rounds, dtype=np.float64)[among]
    when = when - min(when, default=0.0) + 1.0
    for part in (np.minimum.outer(when, when), np.outer(when, when)) if len(among) else ():
        centred = part - part.mean(axis=0)
        centred -= centred.mean(axis=1, keepdims=True)
        variance = np.trace(centred) / len(among)
        if variance > 1e-12:
            total[np.ix_(among, among)] += 0.5 * centred / variance
    total.setflags(write=False)
    return total
