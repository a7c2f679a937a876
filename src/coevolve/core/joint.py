"""The joint model: every candidate's full-set score from one model of all outcomes.

Candidate h solves task t with probability 1 / (1 + exp(-(θ_h + s_h x_t))), where x_t is the
easiness of the task, θ_h the ability of the candidate, and s_h how much easiness matters to it.
Tasks are integrated out on a fixed grid whose masses are estimated [BockAitkin1981], so a task
with few outcomes keeps its whole range of chances. A plug-in difficulty would be shrunk, and the
scores biased. The drift of abilities over the rounds is estimated too. Candidates get a normal
approximation around the mode of the marginal likelihood; the variance of each effect is estimated
from the data. Starting harnesses have variances and a level of their own, and do not drift: they
are of another kind than what a proposer writes. Intervals take the variances of the others one
standard error larger than estimated: few candidates with few outcomes leave them uncertain, and
the fit that explains the data best has them too small on average (`benchmarks/intervals.py`).

Trials enter as weights. The variance of a mean of n trials, relative to n coin flips, is
estimated: fractional outcomes vary less, trials that repeat each other more. A missing outcome is
an unobserved cell.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from coevolve.core.arrays import Floats
from coevolve.core.joint_effects import NODES, Effects, averaged, drift, generated
from coevolve.core.outcomes import is_whole
from coevolve.core.posterior import Cells, Deferred, Posterior
from coevolve.errors import InputError

_SMOOTHING = 10.0  # the masses of the nodes are shrunk towards a normal, as by so many more tasks
_ABILITY = (2.0, 0.25)  # weak prior of the variance of θ: two more candidates with variance 0.25
_SLOPE = (2.0, 0.01)  # and of that of s, which would grow without bound with few outcomes
_START_ABILITY = (2.0, 1.0)  # the same two for starting harnesses, which are few and differ more
_START_SLOPE = (2.0, 0.1)
_FLOOR = -40.0  # lowest log mass of a node: products with denormal numbers are slow
_STRIDE = 1.5  # the longest Newton step, on the logit scale
_LEAST = 1e-6  # information about the drift, if all candidates are of one round
_MOST_DRIFT = 5.0  # and the largest variance of the drift that an interval allows for


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen:
    """The outcomes as candidates x tasks: trials, scores times trials, and shares of the unseen.

    `known` is the part of each score from seen cells, `fractional` the sum of n y (1 - y), `often`
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
        """The outcomes of these cells."""
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
    """The model linearised at the current curves, for a step and the posterior."""

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
    """Weight the nodes of every task, then take a step with all curves."""
    number = len(seen.trials)
    logits = at.curves[0][:, None] + at.curves[1][:, None] * NODES
    chances = 1 / (1 + np.exp(-logits))
    log = seen.solved.T @ logits - seen.trials.T @ np.logaddexp(0.0, logits)
    log = log / at.dispersion + np.log(at.masses)
    masses = np.exp(np.maximum(log - log.max(axis=1, keepdims=True), _FLOOR))
    masses /= masses.sum(axis=1, keepdims=True)

    prior = at.prior(seen.rounds)
    precision = _inverse(prior)
    if precision is None:  # by rounding: candidates of one round with equal outcomes
        precision = np.linalg.inv(prior + 1e-9 * np.eye(number))
    gradient, information = _derivatives(seen, at, chances, masses, precision)

    # The information lost because easiness is unknown [Louis1982]: the covariance, over the nodes
    # of each task, of the candidates' score functions, as far as it is linear in easiness.
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
    if covariance is None:  # far from the mode: a step of EM, which always ascends
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
    """Gradient, and information as if the nodes of the tasks were known, of (θ, s)."""
    number = len(chances)
    weight = seen.trials @ masses
    residual = (seen.solved @ masses - weight * chances) / at.dispersion
    weight = weight * chances * (1 - chances) / at.dispersion
    pull = residual.sum(axis=1) - precision @ at.curves[0]
    known = 1 / at.slope_variances(seen.rounds)
    tilt = residual @ NODES - (at.curves[1] - 1.0) * known
    information = np.zeros((2 * number, 2 * number))
    information[:number, :number] = precision
    ability, slope = np.arange(number), np.arange(number) + number
    information[ability, ability] += weight.sum(axis=1)
    information[slope, slope] = weight @ NODES**2 + known
    information[ability, slope] = information[slope, ability] = weight @ NODES
    return np.concatenate([pull, tilt]), information


def _inverse(matrix: Floats) -> Floats | None:
    """The inverse of a positive definite matrix, None if it is not one."""
    from scipy.linalg.lapack import dpotrf, dpotri  # on first use: slow to import

    factor, wrong = dpotrf(matrix, lower=True)
    if wrong:
        return None
    half, _ = dpotri(factor, lower=True)  # the other half is zero
    whole = half + half.T
    whole.flat[:: len(whole) + 1] /= 2
    return np.asarray(whole)


def updated(seen: Seen, at: Effects, step: Step, *, settled: bool) -> Effects:
    """Update the curves, then the variances, the masses of the nodes and the dispersion.

    The dispersion is not updated before the curves have `settled`.
    """
    number, new = len(seen.trials), generated(seen.rounds)
    curves = at.curves + step.change
    pull = step.precision @ curves[0]
    rest = step.precision @ step.covariance[:number, :number] @ step.precision
    rest = step.precision - rest
    moving, steep = drift(seen.rounds), at.slope_variances(seen.rounds)
    fits, slacks = pull**2, np.diag(rest)
    slope_fits = ((curves[1] - 1) / steep) ** 2
    slope_slacks = 1 / steep - np.diag(step.covariance)[number:] / steep**2
    walk = at.walk
    if moving.any():
        walk = _variance(at.walk, float(pull @ moving @ pull), float((rest * moving).sum()))
    dispersion = at.dispersion
    if settled:
        # The variance of a mean y of n trials is φ p (1 - p) / n, so E y (1 - y) = (1 - φ/n) p
        # (1 - p). φ is 1 for coin flips, less for steady fractions, n if trials repeat each other.
        dispersion = (step.expected - seen.fractional) / max(step.single, 1e-9)
        dispersion = float(np.clip(dispersion, 0.05, seen.most))
    return Effects(
        curves=curves,
        own=_variance(at.own, fits[new].sum(), slacks[new].sum(), *_ABILITY),
        walk=walk,
        slope=_variance(at.slope, slope_fits[new].sum(), slope_slacks[new].sum(), *_SLOPE),
        start_ability=_variance(
            at.start_ability, fits[~new].sum(), slacks[~new].sum(), *_START_ABILITY
        ),
        start_slope=_variance(
            at.start_slope, slope_fits[~new].sum(), slope_slacks[~new].sum(), *_START_SLOPE
        ),
        masses=_masses(step),
        dispersion=dispersion,
    )


def _masses(step: Step) -> Floats:
    """Share of tasks at each node, smoothed with a normal distribution."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """The joint model as the estimator of a protocol.

    Args:
        steps: Largest number of Newton steps of a fit.
        tolerance: A fit ends when no effect changes by more, on the logit scale.

    >>> outcomes = np.array([[1.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    >>> seen = Cells(candidate=np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2]),
    ...     task=np.array([0, 1, 2, 3, 0, 1, 2, 3, 0, 2]), score=np.r_[outcomes.ravel(), 1, 1],
    ...     trials=np.ones(10), rounds=(0, 0, 1), shares=np.full(4, 0.25))
    >>> Joint().fit(seen, None).scores.round(2).tolist()
    [0.75, 0.25, 0.85]
    """

    steps: int = 40
    tolerance: float = 0.02
    needs_history: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not is_whole(self.steps, least=1):
            raise InputError(f"steps must be a whole number of at least 1, got {self.steps!r}.")
        if not 0 < self.tolerance < 1:
            raise InputError(f"tolerance must be in (0, 1), got {self.tolerance!r}.")

    def fit(self, cells: Cells, start: Posterior | None) -> Posterior:
        if not cells.candidates:
            return _without_candidates(cells)
        seen = Seen.of(cells)
        if start is not None and isinstance(start.parameters, Effects):
            effects = start.parameters.extended(cells.candidates)
        else:
            solved, trials = float(seen.solved.sum()), float(seen.trials.sum())
            effects = Effects.at_first(cells.candidates, (solved + 0.5) / (trials + 1.0))
        taken, moved = 0, np.inf
        while True:
            step, taken = newton(seen, effects), taken + 1
            settled = start is not None or taken > 3
            after = updated(seen, effects, step, settled=settled)
            moved = max(float(np.abs(step.change).max()), _spreads_moved(effects, after))
            if moved < self.tolerance or taken >= self.steps:
                return _posterior(seen, effects, step, after)
            effects = after


def _spreads_moved(before: Effects, after: Effects) -> float:
    """How far the variances moved, relative to their size and with a tenth of the weight."""
    pairs = (
        (before.own, after.own),
        (before.walk, after.walk),
        (before.slope, after.slope),
        (before.start_ability, after.start_ability),
        (before.start_slope, after.start_slope),
    )
    return 0.1 * max(abs(float(np.log(new / old))) * min(1.0, old / 0.05) for old, new in pairs)


def _posterior(seen: Seen, at: Effects, step: Step, after: Effects) -> Posterior:
    """Scores, averaged over the uncertainty of tasks and candidates, and their covariance."""
    slopes, covariance, mean = _scores_by_effects(seen, at, step, step.covariance)
    scores = seen.known + (seen.unseen * mean).sum(axis=1) + slopes @ step.change.ravel()

    def wide() -> Floats:
        _, wider, _ = _scores_by_effects(seen, at, step, _wider(seen, at, step))
        return _at_least(np.diag(covariance), wider)

    return Posterior(
        scores=np.clip(scores, 0.0, 1.0),
        covariance=covariance,
        chances=mean,
        newcomer=step.masses @ after.newcomer(seen.rounds),
        parameters=after,
        wide=Deferred(wide),
    )


def _scores_by_effects(
    seen: Seen, at: Effects, step: Step, effects: Floats
) -> tuple[Floats, Floats, Floats]:
    """DS/d(θ, s), the covariance of the scores, and the chances, if (θ, s) has this covariance."""
    number = len(seen.trials)
    ability, slope = np.arange(number), np.arange(number) + number
    variance = _variance_at_nodes(effects, number)
    logits = at.curves[0][:, None] + at.curves[1][:, None] * NODES
    chances = averaged(logits, variance)
    bend = chances * (1 - chances) / np.sqrt(1 + np.pi / 8 * variance)
    stack = [chances, chances * NODES, chances**2, bend, bend * NODES]
    mean, first, square, level, tilt = np.split(np.vstack(stack) @ step.masses.T, 5)

    # A candidate's own effects directly, those of all through the tasks.
    along = seen.unseen * (first - mean * step.centre) / step.spread
    slopes = along @ step.scores.T
    slopes[ability, ability] += (seen.unseen * level).sum(axis=1)
    slopes[ability, slope] += (seen.unseen * tilt).sum(axis=1)
    covariance = slopes @ effects @ slopes.T + along @ along.T
    luck = at.dispersion / seen.often * (mean - square)
    chance = luck + np.maximum(square - mean**2, 0.0)
    covariance[ability, ability] += (seen.unseen**2 * chance).sum(axis=1) - (along**2).sum(axis=1)
    return slopes, (covariance + covariance.T) / 2, mean


def _at_least(variances: Floats, covariance: Floats) -> Floats:
    """A covariance, scaled where its own variances are smaller.

    >>> _at_least(np.array([4.0, 1.0]), np.array([[1.0, 0.5], [0.5, 1.0]])).tolist()
    [[4.0, 1.0], [1.0, 1.0]]
    """
    own = np.diag(covariance)
    ratio = np.divide(variances, own, out=np.ones_like(own), where=own > 0)
    scale = np.sqrt(np.maximum(ratio, 1.0))
    return np.asarray(scale[:, None] * covariance * scale)


def _wider(seen: Seen, at: Effects, step: Step) -> Floats:
    """Covariance of (θ, s) if their variances are one standard error larger than estimated.

    Those of starting harnesses, whose outcomes are all known, stay as estimated.

    The expected information about the variances v of components with covariances D is
    tr(R D_i R D_j) / 2, with R = P - P C P, prior precision P and posterior covariance C.
    """
    number, new = len(seen.trials), generated(seen.rounds)
    prior, posterior = step.precision, step.covariance[:number, :number]
    rest = prior - prior @ posterior @ prior
    moving = rest @ drift(seen.rounds)
    own = (rest[new][:, new] ** 2).sum() / 2 + _ABILITY[0] / (2 * at.own**2)
    walk = (moving * moving.T).sum() / 2 + _LEAST
    both = (rest[new] * moving[new]).sum() / 2
    tilted = np.eye(new.sum()) / at.slope
    tilted -= step.covariance[number:, number:][new][:, new] / at.slope**2
    slope = (tilted * tilted).sum() / 2 + _SLOPE[0] / (2 * at.slope**2)
    known = max(own * walk - both**2, _LEAST * own)
    larger = replace(
        at,
        own=at.own + np.sqrt(walk / known),
        walk=min(at.walk + np.sqrt(own / known), _MOST_DRIFT),
        slope=at.slope + 1 / np.sqrt(slope),
    )
    precision = _inverse(larger.prior(seen.rounds))
    if precision is None:
        return step.covariance
    logits = at.curves[0][:, None] + at.curves[1][:, None] * NODES
    chances = 1 / (1 + np.exp(-logits))
    _, information = _derivatives(seen, larger, chances, step.masses, precision)
    wider = _inverse(information - step.scores @ step.scores.T)
    return step.covariance if wider is None else wider


def _variance_at_nodes(covariance: Floats, number: int) -> Floats:
    """Variance of θ_h + s_h x at every node, candidates x nodes."""
    ability, slope = np.arange(number), np.arange(number) + number
    return np.asarray(
        covariance[ability, ability][:, None]
        + 2 * covariance[ability, slope][:, None] * NODES
        + covariance[slope, slope][:, None] * NODES**2
    )


def _without_candidates(cells: Cells) -> Posterior:
    """Before the first candidate, every task has an even chance."""
    even = np.full(cells.tasks, 0.5)
    return Posterior(
        scores=np.empty(0),
        covariance=np.empty((0, 0)),
        chances=np.empty((0, cells.tasks)),
        newcomer=even,
        parameters=None,
    )
