"""What is known of recipes before a round."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from coevolve.core.estimators import Estimate
from coevolve.proposers.base import Standing, View
from coevolve.proposers.offline.recipe import Recipe
from coevolve.proposers.offline.surrogate import Surrogate


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
    """The recipes of a run, and those of them with an estimate."""

    recipes: frozenset[Recipe]
    tried: tuple[Tried, ...]

    @classmethod
    def of(cls, view: View) -> Self:
        """What a view tells of recipes; other candidates do not count."""
        recipes, tried = set(), []
        for standing in view.standings:
            recipe = Recipe.of(standing.candidate.components)
            if recipe is None:
                continue
            recipes.add(recipe)
            if standing.estimate is not None:
                tried.append(Tried(standing=standing, recipe=recipe, estimate=standing.estimate))
        return cls(recipes=frozenset(recipes), tried=tuple(tried))


def surrogate_of(tried: Sequence[Tried], beside: Sequence[Recipe] = ()) -> Surrogate:
    """What recipes are worth; others of the same round count as if they were as expected."""
    recipes = [one.recipe for one in tried]
    values = [min(max(one.estimate.value, 0.0), 1.0) for one in tried]
    errors = [_error(one.estimate) for one in tried]
    made = Surrogate(recipes, values, errors)
    if not beside:
        return made
    expected = made.of(beside)[0].tolist()
    return Surrogate([*recipes, *beside], [*values, *expected], [*errors, *(0.05 for _ in beside)])


def _error(estimate: Estimate) -> float:
    """The standard error of an estimate; where it has none, that of a coin thrown as often."""
    if estimate.se is not None:
        return estimate.se
    unseen = 1 - estimate.tasks / estimate.pool_size
    return float(np.sqrt(0.25 / max(estimate.tasks, 1) * unseen))
