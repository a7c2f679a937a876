"""Expected scores of recipes: a Gaussian process over their components."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from coevolve.core.arrays import Floats
from coevolve.core.estimators import Estimate
from coevolve.proposers.offline.building_blocks import Recipe, RecipeSpace
from coevolve.search.proposal import Standing, View

LEVEL = 0.2
"""Prior standard deviation of the level of all recipes."""
BLOCK = 0.07
"""Prior standard deviation of the gain of a block."""
TOGETHER = 0.1
"""Prior standard deviation of the gain of blocks together, beyond their sum."""
REACH = 2.0
"""Differing blocks over which the correlation of such gains falls to 1/e."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A candidate with a recipe and an estimate."""

    standing: Standing
    recipe: Recipe
    estimate: Estimate

    @property
    def name(self) -> str:
        """The candidate's name."""
        return self.standing.candidate.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The recipes of a run by candidate, and the candidates with an estimate."""

    recipes: dict[str, Recipe]
    tried: tuple[Tried, ...]

    @classmethod
    def of(cls, view: View, space: RecipeSpace) -> Self:
        """The recipes in a view; candidates without one are left out."""
        recipes, tried = {}, []
        for standing in view.standings:
            recipe = space.of(standing.candidate.components)
            if recipe is None:
                continue
            recipes[standing.candidate.name] = recipe
            if standing.estimate is not None:
                tried.append(Tried(standing=standing, recipe=recipe, estimate=standing.estimate))
        return cls(recipes=recipes, tried=tuple(tried))


class Surrogate:
    """Expected scores of recipes, with their uncertainty, from the estimates of others.

    A score is a level, plus the gain of each block, plus the gain of the blocks together; the last
    is similar for recipes that differ in few blocks. All priors are normal and each estimate comes
    with its standard error, so the posterior is normal too.

    Args:
        space: All recipes.
        recipes: The recipes that were tried.
        values: Their estimates.
        errors: The standard errors of the estimates.
    """

    def __init__(
        self,
        space: RecipeSpace,
        recipes: Sequence[Recipe],
        values: Sequence[float],
        errors: Sequence[float],
    ) -> None:
        self._space, self._columns = space, space.components
        self._told = (recipes, values, errors)
        noise = np.asarray(errors, dtype=float)
        self._rows = space.rows(recipes)
        given = np.asarray(values, dtype=float) - space.priors(recipes)
        self._center = float(given.mean()) if len(given) else 0.5
        told = _covariance(self._rows, self._rows) + np.diag(noise**2 + 1e-6)
        self._inverse = np.linalg.inv(told)
        self._pull = self._inverse @ (given - self._center)

    @classmethod
    def after(cls, space: RecipeSpace, tried: Sequence[Tried]) -> Self:
        """The surrogate after some candidates."""
        recipes = [one.recipe for one in tried]
        values = [min(max(one.estimate.value, 0.0), 1.0) for one in tried]
        return cls(space, recipes, values, [_error(one.estimate) for one in tried])

    def beside(self, others: Sequence[Recipe]) -> "Surrogate":
        """The surrogate in which other recipes count with their expectation."""
        if not others:
            return self
        recipes, values, errors = self._told
        expected = self.of(others)[0].tolist()
        return Surrogate(
            self._space,
            [*recipes, *others],
            [*values, *expected],
            [*errors, *(0.05 for _ in others)],
        )

    def of(self, recipes: Sequence[Recipe]) -> tuple[Floats, Floats]:
        """Expected scores of recipes, and their standard deviations."""
        rows = self._space.rows(recipes)
        with_told = _covariance(rows, self._rows)
        own = LEVEL**2 + BLOCK**2 * rows.sum(axis=1) + TOGETHER**2
        known = ((with_told @ self._inverse) * with_told).sum(axis=1)
        mean = self._center + self._space.priors(recipes) + with_told @ self._pull
        return mean, np.sqrt(np.maximum(own - known, 0.0))

    def adds(self, component: str) -> float:
        """The expected gain of a block."""
        learned = BLOCK**2 * self._rows[:, self._columns.index(component)] @ self._pull
        return float(self._space.blocks.prior([component]) + learned)


def _covariance(some: Floats, others: Floats) -> Floats:
    shared = some @ others.T
    apart = (some.sum(axis=1)[:, None] + others.sum(axis=1)[None, :]) / 2 - shared
    covariance: Floats = LEVEL**2 + BLOCK**2 * shared + TOGETHER**2 * np.exp(-apart / REACH)
    return covariance


def _error(estimate: Estimate) -> float:
    """The standard error of an estimate; if it has none, that of as many coin flips."""
    if estimate.se is not None:
        return estimate.se
    unseen = 1 - estimate.tasks / estimate.pool_size
    return float(np.sqrt(0.25 / max(estimate.tasks, 1) * unseen))
