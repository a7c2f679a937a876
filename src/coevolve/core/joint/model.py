"""A model of all outcomes seen, which re-estimates every candidate under one view of the tasks.

Candidate h solves task t with probability 1 / (1 + exp(-(θ_h + s_h x_t))): x_t is how easy the
task is, θ_h how able the candidate, s_h how much easiness matters to it. Tasks are integrated out
on a fixed grid whose masses are estimated [BockAitkin1981], so that a task hardly seen keeps its
whole range of chances; a plug-in difficulty would be shrunk, and the scores biased. Abilities
drift over the rounds, as much as the data say. Candidates get a normal approximation around the
mode of the marginal likelihood; the spread of each effect is estimated from the data.

Trials enter as weights. How much a mean of n trials varies, relative to n coins, is estimated:
fractional outcomes vary less, trials that only repeat each other more. A missing outcome is a cell
not seen.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coevolve.core.arrays import Floats
from coevolve.core.joint.effects import NODES, Effects, averaged
from coevolve.core.joint.step import Seen, Step, newton, updated
from coevolve.core.outcomes import is_whole
from coevolve.core.posterior import Cells, Posterior
from coevolve.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """The joint model as the estimator of a protocol.

    Args:
        steps: The most Newton steps of a fit.
        tolerance: A fit ends when no effect moves by more, on the logit scale.

    >>> outcomes = np.array([[1.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    >>> seen = Cells(candidate=np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2]),
    ...     task=np.array([0, 1, 2, 3, 0, 1, 2, 3, 0, 2]), score=np.r_[outcomes.ravel(), 1, 1],
    ...     trials=np.ones(10), rounds=(0, 0, 1), shares=np.full(4, 0.25))
    >>> Joint().fit(seen, None).scores.round(2).tolist()
    [0.75, 0.25, 0.75]
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
            return _of_nobody(cells)
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
    """How far the spreads moved, relative to how large they are: a tenth as important."""
    pairs = ((before.own, after.own), (before.walk, after.walk), (before.slope, after.slope))
    return 0.1 * max(abs(float(np.log(new / old))) * min(1.0, old / 0.05) for old, new in pairs)


def _posterior(seen: Seen, at: Effects, step: Step, after: Effects) -> Posterior:
    """Scores, averaged over what is unknown of tasks and candidates, and their covariance."""
    number = len(seen.trials)
    ability, slope = np.arange(number), np.arange(number) + number
    variance = _variance_at_nodes(step.covariance, number)
    logits = at.curves[0][:, None] + at.curves[1][:, None] * NODES
    chances = averaged(logits, variance)
    bend = chances * (1 - chances) / np.sqrt(1 + np.pi / 8 * variance)
    stack = [chances, chances * NODES, chances**2, bend, bend * NODES]
    mean, first, square, level, tilt = np.split(np.vstack(stack) @ step.masses.T, 5)

    # dS/d(θ, s): a candidate's own effects directly, everyone's through the view of the tasks.
    along = seen.unseen * (first - mean * step.centre) / step.spread
    slopes = along @ step.scores.T
    slopes[ability, ability] += (seen.unseen * level).sum(axis=1)
    slopes[ability, slope] += (seen.unseen * tilt).sum(axis=1)
    covariance = slopes @ step.covariance @ slopes.T + along @ along.T
    luck = at.dispersion / seen.often * (mean - square)
    chance = luck + np.maximum(square - mean**2, 0.0)
    covariance[ability, ability] += (seen.unseen**2 * chance).sum(axis=1) - (along**2).sum(axis=1)
    scores = seen.known + (seen.unseen * mean).sum(axis=1) + slopes @ step.change.ravel()
    return Posterior(
        scores=np.clip(scores, 0.0, 1.0),
        covariance=(covariance + covariance.T) / 2,
        chances=mean,
        newcomer=step.masses @ after.newcomer(seen.rounds),
        parameters=after,
    )


def _variance_at_nodes(covariance: Floats, number: int) -> Floats:
    """Variance of θ_h + s_h x at every node, candidates x nodes."""
    ability, slope = np.arange(number), np.arange(number) + number
    return np.asarray(
        covariance[ability, ability][:, None]
        + 2 * covariance[ability, slope][:, None] * NODES
        + covariance[slope, slope][:, None] * NODES**2
    )


def _of_nobody(cells: Cells) -> Posterior:
    """Before there is any candidate, every task is as likely solved as not."""
    even = np.full(cells.tasks, 0.5)
    return Posterior(
        scores=np.empty(0),
        covariance=np.empty((0, 0)),
        chances=np.empty((0, cells.tasks)),
        newcomer=even,
        parameters=None,
    )
