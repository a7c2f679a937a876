"""Text classification's building blocks: seeds, expectations, costs, and the file of a harness."""

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import ClassVar

from coevolve.benchmarks.textclass.blocks.answer_source import answering
from coevolve.benchmarks.textclass.blocks.example_source import examples, likeness, notes
from coevolve.benchmarks.textclass.blocks.failure_findings import findings
from coevolve.benchmarks.textclass.blocks.harness_source import asking, joined
from coevolve.benchmarks.textclass.blocks.text_recipe import (
    SLOTS,
    TextRecipe,
    class_of,
    docstring,
    effort,
    name_of,
    summary,
)
from coevolve.errors import InputError
from coevolve.proposers.offline.building_blocks import BuildingBlocks, Finding, Recipe
from coevolve.search.candidate import Files
from coevolve.search.proposal import Standing, View

SEEDS: Mapping[str, TextRecipe] = {
    "A few examples, found by pieces of words and with the nearest last, are enough.": TextRecipe(
        like="pieces", count="4"
    ),
    "A score that a label also gets after an empty question says nothing.": TextRecipe(
        select="none", format="keywords", ask="calibrated"
    ),
    "One example of each of several labels shows the choices.": TextRecipe(
        like="fused", select="quota", count="6", format="arrow"
    ),
    "Among the labels of similar examples, the one most above its usual score is right.": (
        TextRecipe(
            like="bm25",
            select="none",
            format="keywords",
            ask="standardised",
            shortlist="6",
            trust="1",
        )
    ),
}
"""The first recipes, by hypothesis: cheap ones, as different as possible."""
EXPECTED = {
    "like:bm25": -0.01,
    "like:fused": 0.01,
    "select:none": -0.12,
    "select:all": -0.03,
    "select:nearest": 0.07,
    "select:quota": 0.06,
    "order:nearest-first": -0.05,
    "order:shuffled": -0.03,
    "lead:labels": -0.05,
    "ask:choose": -0.05,
    "ask:free": -0.24,
    "ask:scores": -0.03,
    "ask:calibrated": -0.05,
    "ask:standardised": 0.13,
    "shortlist:all": -0.01,
    "shortlist:12": -0.01,
    "shortlist:3": 0.02,
    "trust:none": -0.05,
    "trust:0.5": -0.03,
    "trust:1": -0.01,
    "trust:2": 0.02,
    "trust:4": 0.05,
}
"""The usual gain of blocks with a small model; those that are not listed count as average.

Most are means over three sets (`benchmarks/expectations.py`). Those of orders, of leads and of all
examples are older estimates (docs/text-classification.md).
"""
DISTRACTED = -0.16
"""The usual loss where standardised scores are taken after examples, from the same sets."""
COST = 0.003
"""The gain in score that makes it worth reading as much as one more question."""


class TextBlocks(BuildingBlocks):
    """Building blocks of harnesses for text classification.

    Args:
        characters: Characters of examples in a prompt, at most.

    >>> from coevolve.proposers.offline.building_blocks import RecipeSpace
    >>> recipe = RecipeSpace(TextBlocks()).recipe({"like": "bm25", "ask": "choose"})
    >>> TextBlocks().render(recipe, "It is the plainest.")["harness.py"].splitlines()[0]
    b'\"\"\"It is the plainest.'
    """

    slots = SLOTS
    seeds: ClassVar = {text: seed.active for text, seed in SEEDS.items()}

    def __init__(self, *, characters: int = 4000) -> None:
        if characters < 1000:
            raise InputError(f"characters must be at least 1,000, got {characters}.")
        self._characters = characters

    def settle(self, blocks: Mapping[str, str]) -> Mapping[str, str]:
        return TextRecipe(**blocks).active

    def render(self, recipe: Recipe, hypothesis: str) -> Files:
        source = harness_source(_text(recipe), hypothesis=hypothesis, characters=self._characters)
        return {"harness.py": source.encode()}

    def name(self, recipe: Recipe) -> str:
        return name_of(_text(recipe))

    def cost(self, recipe: Recipe) -> float:
        return _cost(recipe)

    def prior(self, components: Collection[str]) -> float:
        return _prior(tuple(components))

    def findings(
        self, view: View, standing: Standing, recipes: Mapping[str, Recipe]
    ) -> tuple[Finding, ...]:
        return findings(view, standing, {name: _text(one) for name, one in recipes.items()})


def harness_source(recipe: TextRecipe, *, hypothesis: str, characters: int = 4000) -> str:
    """The file of a harness: self-contained, with the standard library alone.

    Args:
        recipe: Its blocks.
        hypothesis: Why it should be good; the first line of the file.
        characters: Characters of examples in a prompt, at most.
    """
    parts = [
        answering(recipe),
        asking(recipe, characters),
        examples(recipe),
        notes(recipe),
        likeness(recipe),
    ]
    return joined(
        parts,
        docstring=docstring(recipe, hypothesis),
        name=class_of(recipe),
        summary=summary(recipe),
    )


@lru_cache(maxsize=50_000)
def _prior(components: tuple[str, ...]) -> float:
    gains = sum(EXPECTED.get(component, 0.0) for component in components)
    shown = any(c.startswith("select:") and c != "select:none" for c in components)
    return gains + (DISTRACTED if shown and "ask:standardised" in components else 0.0)


@lru_cache(maxsize=50_000)
def _cost(recipe: Recipe) -> float:
    return COST * effort(_text(recipe))


@lru_cache(maxsize=50_000)
def _text(recipe: Recipe) -> TextRecipe:
    return TextRecipe(**dict(recipe.blocks))
