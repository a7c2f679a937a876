"""One Newton step of the joint model, and the spreads that follow from it."""

from dataclasses import dataclass

import numpy as np

from coevolve.core.arrays import Floats
from coevolve.core.joint.effects import NODES, Effects, drift
from coevolve.core.posterior import Cells

_SMOOTHING = 10.0  # the nodes' masses are shrunk to a normal's as by this many further tasks
_ABILITY = (2.0, 0.25)  # weak prior of the variance of θ: as if two more candidates had shown 0.25
_SLOPE = (2.0, 0.01)  # and of that of s: it grows without bound where outcomes are few
_FLOOR = -40.0  # log mass below which a node counts as this: products with denormals are slow
_STRIDE = 1.5  # the longest Newton step, on the logit scale


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen:
    """The outcomes as candidates x tasks: trials, scores times trials, and shares of the unseen.

    `known` is what the seen cells add to each score, `fractional` the sum of n y (1 - y), `often`
    the mean number of trials of a cell and `most` the largest.
    """

    trials: Floats
    solved: Floats
    unseen: Floats
    known: Floats
    fractional: float
    often: float
    most: float
    rounds: tuple[int, ...]

    @classmethod
    def of(cls, cells: Cells) -> "Seen":
        """The same outcomes, laid out."""
        shape = (cells.candidates, cells.tasks)
        trials, solved = np.zeros(shape), np.zeros(shape)
        unseen = np.tile(cells.shares, (cells.candidates, 1))
        at = cells.candidate, cells.task
        trials[at], solved[at], unseen[at] = cells.trials, cells.trials * cells.score, 0.0
        worth = cells.score * cells.shares[cells.task]
        return cls(
            trials=trials,
            solved=solved,
            unseen=unseen,
            known=np.bincount(cells.candidate, weights=worth, minlength=cells.candidates),
            fractional=float(cells.trials @ (cells.score * (1 - cells.score))),
            often=float(cells.trials.mean()) if len(cells.trials) else 1.0,
            most=float(cells.trials.max(initial=1.0)),
            rounds=cells.rounds,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """The model made linear at the current curves: what a step and the posterior need."""

    masses: Floats  # posterior of each task over the nodes, tasks x nodes
    centre: Floats  # posterior mean of each task's easiness
    spread: Floats  # and its standard deviation
    scores: Floats  # Cov(score of each effect, easiness) / spread, 2 candidates x tasks
    precision: Floats  # prior precision of abilities
    covariance: Floats  # posterior covariance of (θ, s)
    change: Floats  # the step, 2 x candidates
    expected: float  # sum over seen cells of trials times p (1 - p)
    single: float  # the same without the trials


def newton(seen: Seen, at: Effects) -> Step:
    """Weigh the nodes of every task, then step with all curves together."""
    number = len(seen.trials)
    logits = at.curves[0][:, None] + at.curves[1][:, None] * NODES
    chances = 1 / (1 + np.exp(-logits))
    log = seen.solved.T @ logits - seen.trials.T @ np.logaddexp(0.0, logits)
    log = log / at.dispersion + np.log(at.masses)
    masses = np.exp(np.maximum(log - log.max(axis=1, keepdims=True), _FLOOR))
    masses /= masses.sum(axis=1, keepdims=True)

    prior = at.prior(seen.rounds)
    precision = _inverse(prior)
    if precision is None:  # by rounding only: candidates of one round, all alike
        precision = np.linalg.inv(prior + 1e-9 * np.eye(number))
    gradient, information = _derivatives(seen, at, chances, masses, precision)

    # What is lost because the tasks' easiness is not known [Louis1982]: the covariance, over each
    # task's nodes, of the candidates' score functions, as far as it is linear in easiness.
    centre = masses @ NODES
    variance = np.maximum(masses @ NODES**2 - centre**2, 1e-12)
    spread = np.sqrt(variance)
    moments = np.vstack([chances, chances * NODES, chances * NODES**2]) @ masses.T
    mean, first, second = np.split(moments, 3)
    lost = np.vstack(
        [
            seen.trials * (mean * centre - first),
            seen.solved * variance + seen.trials * (first * centre - second),
        ]
    ) / (at.dispersion * spread)
    covariance = _inverse(information - lost @ lost.T)
    if covariance is None:  # far from the mode: the step of EM, which always climbs
        covariance = np.linalg.inv(information)
    change = covariance @ gradient
    change *= min(1.0, _STRIDE / max(float(np.abs(change).max()), 1e-12))
    return Step(
        masses=masses,
        centre=centre,
        spread=spread,
        scores=lost,
        precision=precision,
        covariance=covariance,
        change=change.reshape(2, number),
        expected=float((seen.trials * mean * (1 - mean)).sum()),
        single=float((mean * (1 - mean))[seen.trials > 0].sum()),
    )


def _derivatives(
    seen: Seen, at: Effects, chances: Floats, masses: Floats, precision: Floats
) -> tuple[Floats, Floats]:
    """Gradient, and information as if the tasks' nodes were seen, of (θ, s)."""
    number = len(chances)
    weight = seen.trials @ masses
    residual = (seen.solved @ masses - weight * chances) / at.dispersion
    weight = weight * chances * (1 - chances) / at.dispersion
    pull = residual.sum(axis=1) - precision @ at.curves[0]
    tilt = residual @ NODES - (at.curves[1] - 1.0) / at.slope
    information = np.zeros((2 * number, 2 * number))
    information[:number, :number] = precision
    ability, slope = np.arange(number), np.arange(number) + number
    information[ability, ability] += weight.sum(axis=1)
    information[slope, slope] = weight @ NODES**2 + 1 / at.slope
    information[ability, slope] = information[slope, ability] = weight @ NODES
    return np.concatenate([pull, tilt]), information


def _inverse(matrix: Floats) -> Floats | None:
    """The inverse of a positive definite matrix, None where it is not."""
    from scipy.linalg.lapack import dpotrf, dpotri  # on first use: it takes long to import

    factor, wrong = dpotrf(matrix, lower=True)
    if wrong:
        return None
    half, _ = dpotri(factor, lower=True)  # the other half is zero
    whole = half + half.T
    whole.flat[:: len(whole) + 1] /= 2
    return np.asarray(whole)


def updated(seen: Seen, at: Effects, step: Step, *, settled: bool) -> Effects:
    """Move the curves, then the variances, the masses of the nodes and the dispersion.

    The dispersion waits until the curves have `settled`.
    """
    number = len(seen.trials)
    curves = at.curves + step.change
    pull = step.precision @ curves[0]
    rest = step.precision @ step.covariance[:number, :number] @ step.precision
    rest = step.precision - rest
    moving = drift(seen.rounds)
    tilt = float(((curves[1] - 1) ** 2).sum()) / at.slope**2
    slack = float((1 / at.slope - np.diag(step.covariance)[number:] / at.slope**2).sum())
    dispersion = at.dispersion
    if settled:
        # The variance of a mean y of n trials is φ p (1 - p) / n, so E y (1 - y) = (1 - φ/n) p
        # (1 - p). φ is 1 for coins, less for steady fractions, n where trials only repeat.
        dispersion = (step.expected - seen.fractional) / max(step.single, 1e-9)
        dispersion = float(np.clip(dispersion, 0.05, seen.most))
    return Effects(
        curves=curves,
        own=_variance(at.own, float(pull @ pull), float(np.trace(rest)), *_ABILITY),
        walk=_variance(at.walk, float(pull @ moving @ pull), float((rest * moving).sum())),
        slope=_variance(at.slope, tilt, slack, *_SLOPE),
        masses=_masses(step),
        dispersion=dispersion,
    )


def _masses(step: Step) -> Floats:
    """Share of tasks at each node, smoothed by some that are spread like a normal variable."""
    mean = step.masses.mean(axis=0)
    centre = float(mean @ NODES)
    variance = max(float(mean @ (NODES - centre) ** 2), 0.25)
    normal = np.exp(-0.5 * (NODES - centre) ** 2 / variance)
    masses = len(step.masses) * mean + _SMOOTHING * normal / normal.sum()
    return np.asarray(masses / masses.sum())


def _variance(
    old: float, fit: float, slack: float, weight: float = 0.0, prior: float = 0.0
) -> float:
    """A variance component after one minorise-maximise step [Zhou2019].

    With an inverse-gamma prior worth `weight` observations of variance `prior`, the positive root
    of slack v² + weight v - (old² fit + weight prior) = 0.
    """
    slack = max(slack, 1e-9)
    known = old**2 * max(fit, 0.0) + weight * prior
    root = (-weight + np.sqrt(weight**2 + 4 * slack * known)) / (2 * slack)
    return float(np.clip(root, 1e-3, 25.0))
