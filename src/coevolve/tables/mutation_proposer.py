"""A proposer that changes one block of the best candidate at random, and learns nothing else."""

import numpy as np

from coevolve.proposers.offline.building_blocks import BuildingBlocks, Recipe, RecipeSpace
from coevolve.search.proposal import Proposal, Proposed, View

TRIES = 1000
"""Recipes that are drawn to find a new one, at most."""


class MutationProposer:
    """Proposes neighbours of the best candidate, drawn at random.

    While no candidate has a recipe, recipes are drawn at random. It is the simplest proposer that
    builds on what the protocol believes; findings that hold with it and with the offline proposer
    do not hang on a proposer.

    Args:
        blocks: The building blocks of the benchmark.
    """

    def __init__(self, blocks: BuildingBlocks) -> None:
        self._space = RecipeSpace(blocks)

    async def propose(self, view: View, count: int) -> Proposed:
        """Up to `count` new candidates; fewer when no neighbour is new."""
        generator = np.random.default_rng(view.seed)
        recipes = {
            standing.candidate.name: recipe
            for standing in view.standings
            if (recipe := self._space.of(standing.candidate.components)) is not None
        }
        best = view.best.candidate if view.best is not None else ""
        taken, made = set(recipes.values()), list[Proposal]()
        while len(made) < count:
            near = self._neighbour(recipes.get(best), taken, generator)
            recipe = near or self._random(taken, generator)
            if recipe is None:
                break
            taken.add(recipe)
            text = f"{best} with one other block." if near else "A random recipe."
            made.append(
                Proposal(
                    files=self._space.blocks.render(recipe, text),
                    name=self._space.blocks.name(recipe),
                    parents=(best,) if near else (),
                    hypothesis=text,
                    kind="exploit" if near else "explore",
                    components=recipe.components,
                )
            )
        return Proposed(proposals=tuple(made))

    def _neighbour(
        self, parent: Recipe | None, taken: set[Recipe], generator: np.random.Generator
    ) -> Recipe | None:
        if parent is None:
            return None
        near = self._space.neighbours(parent, generator, doubles=0)
        new = [recipe for recipe in near if recipe not in taken]
        return new[int(generator.integers(len(new)))] if new else None

    def _random(self, taken: set[Recipe], generator: np.random.Generator) -> Recipe | None:
        for _ in range(TRIES):
            if (made := self._space.drawn(generator)) not in taken:
                return made
        return None
