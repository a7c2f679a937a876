"""What is known of recipes before a round."""

from dataclasses import dataclass
from typing import Self

from coevolve.core.estimate import Estimate
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
    """The recipes of a run, those with an estimate, and what their blocks are worth."""

    recipes: frozenset[Recipe]
    tried: tuple[Tried, ...]
    surrogate: Surrogate

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
        return cls(
            recipes=frozenset(recipes), tried=tuple(tried), surrogate=surrogate_of(tuple(tried))
        )


def surrogate_of(tried: tuple[Tried, ...], more: tuple[Recipe, ...] = ()) -> Surrogate:
    """What blocks are worth; recipes of the same round count as if they were as expected."""
    recipes = [one.recipe for one in tried]
    values = [one.estimate.value for one in tried]
    errors = [one.estimate.se for one in tried]
    made = Surrogate(recipes, values, errors)
    if not more:
        return made
    expected = made.of(more)[0].tolist()
    return Surrogate([*recipes, *more], [*values, *expected], [*errors, *(0.05 for _ in more)])
