"""A world of tasks and harnesses, by item-response theory."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coevolve.core.arrays import Floats, Indices
from coevolve.core.pool import Pool
from coevolve.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """A candidate of a synthetic world: its skills, and the tasks it was fixed for."""

    name: str
    skills: tuple[float, ...]
    mended: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True)
class SyntheticWorld:
    """Tasks that need skills, harnesses that have them, and random outcomes.

    Harness h solves task t with probability P_t(h) = 1 / (1 + exp(-a (θ_h · v_t - d_t))): θ_h are
    its skills, v_t the weights of the skills in the task (they sum to 1), d_t its difficulty, a
    the sharpness. A task that h was fixed for is `mend` easier. Trials are independent. Everything
    follows from the seed: the same trial always has the same outcome.

    Args:
        pools: Number of tasks of each pool.
        ease: How much easier than others the tasks of a pool are.
        skills: Number of skills.
        spread: Standard deviation of the difficulties.
        sharpness: a; the larger, the less random an outcome is.
        drift: Mean change of each skill from parent to child.
        step: Standard deviation of that change.
        mends: Number of failed tasks that a child is fixed for.
        mend: By how much a fix lowers the difficulty of a task.
        seed: Seed of the world.

    >>> world = SyntheticWorld(pools={"all": 89}, seed=1)
    >>> start = world.start(2)
    >>> [round(world.truth(harness), 3) for harness in start]
    [0.419, 0.521]
    """

    pools: Mapping[str, int]
    ease: Mapping[str, float] | None = None
    skills: int = 3
    spread: float = 3.0
    sharpness: float = 3.0
    drift: float = 0.0
    step: float = 0.4
    mends: int = 2
    mend: float = 5.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.pools or min(self.pools.values()) < 1:
            raise InputError(f"every pool needs a task, got {dict(self.pools)}.")
        for name, least in (("skills", 1), ("mends", 0), ("seed", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} must be at least {least}, got {getattr(self, name)}.")
        if min(self.spread, self.sharpness, self.step) <= 0:
            raise InputError("spread, sharpness and step must be positive.")
        for name in self.ease or {}:
            if name not in self.pools:
                raise InputError(f"ease names pool {name!r}, which has no tasks.")

    @cached_property
    def pool(self) -> Pool:
        """The tasks; harder tasks cost more, with random variation."""
        groups = {
            name: [f"{name}-{i:0{len(str(size - 1))}d}" for i in range(size)]
            for name, size in self.pools.items()
        }
        tasks = [task for group in groups.values() for task in group]
        luck = self._rng(1).normal(size=len(tasks))
        costs = np.exp(0.3 * self._difficulty / self.spread + 0.5 * luck)
        return Pool.grouped(groups, costs=dict(zip(tasks, costs.tolist(), strict=True)))

    @cached_property
    def _difficulty(self) -> Floats:
        ease = self.ease or {}
        shift = np.concatenate([np.full(n, ease.get(p, 0.0)) for p, n in self.pools.items()])
        return np.asarray(self._rng(2).normal(0.0, self.spread, size=len(shift)) - shift)

    @cached_property
    def _asks(self) -> Floats:
        """The weights of the skills in each task (row): mostly one of them."""
        return self._rng(3).dirichlet(np.full(self.skills, 0.3), size=len(self._difficulty))

    def start(self, number: int) -> list[Harness]:
        """The starting harnesses."""
        skills = self._rng(4).normal(0.0, self.step, size=(number, self.skills)).tolist()
        return [Harness(name=f"start-{i}", skills=tuple(row)) for i, row in enumerate(skills)]

    def child(self, parent: Harness, failed: Iterable[int], *, round: int, index: int) -> Harness:
        """A child of a harness, given the failures that its author saw.

        Its skills change at random, for better or worse, and some of the failed tasks are fixed.
        """
        rng = self._rng(5, round, index)
        change = rng.normal(self.drift, self.step, size=self.skills)
        order = rng.permutation(len(self._difficulty))
        shown = set(failed)
        mended = [int(task) for task in order if task in shown][: self.mends]
        skills = tuple((np.array(parent.skills) + change).tolist())
        name = f"r{round}-{index}"
        return Harness(name=name, skills=skills, mended=parent.mended.union(mended))

    def probabilities(self, harness: Harness) -> Floats:
        """P_t(h) of every task."""
        margin = self._asks @ np.array(harness.skills) - self._difficulty
        margin[list(harness.mended)] += self.mend
        return np.asarray(np.exp(-np.logaddexp(0.0, -self.sharpness * margin)))

    def truth(self, harness: Harness) -> float:
        """The expected score of a harness over all tasks."""
        return self._average(self.probabilities(harness))

    def score(self, harness: Harness, trials: int = 1) -> float:
        """The full-set score S(h): the result of evaluating every task."""
        outcomes = [self.outcomes(harness, trial) for trial in range(trials)]
        return self._average(np.mean(outcomes, axis=0))

    def outcomes(self, harness: Harness, trial: int = 0) -> Floats:
        """Outcomes of one trial of every task, 0 or 1."""
        luck = self._rng(6, trial, *harness.name.encode()).random(len(self._difficulty))
        return (luck < self.probabilities(harness)).astype(np.float64)

    def _average(self, scores: Floats) -> float:
        pools = (scores[self.pool.members(name)].mean() for name in self.pool.names)
        return float(np.dot(self.pool.weights, list(pools)))

    def _rng(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *stream])

    def failures(self, harness: Harness, tasks: Iterable[str]) -> Indices:
        """The tasks that a harness fails in its first trial."""
        positions = self.pool.positions(tasks)
        return np.asarray(positions[self.outcomes(harness)[positions] == 0])
