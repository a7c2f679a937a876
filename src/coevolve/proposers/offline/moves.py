"""Ways from known recipes to new ones."""

from collections.abc import Iterator

import numpy as np

from coevolve.proposers.offline.recipe import SLOTS, Recipe


def neighbours(recipe: Recipe, generator: np.random.Generator, doubles: int = 150) -> list[Recipe]:
    """All recipes with one other block, and some with two."""
    single = list(dict.fromkeys(_single(recipe)))
    found = dict.fromkeys(single)
    for _ in range(doubles):
        first = single[generator.integers(len(single))]
        slot = tuple(SLOTS)[generator.integers(len(SLOTS))]
        found.setdefault(first.given(slot, SLOTS[slot][generator.integers(len(SLOTS[slot]))]))
    found.pop(recipe, None)
    return list(found)


def crossings(
    one: Recipe, other: Recipe, generator: np.random.Generator, count: int = 100
) -> list[Recipe]:
    """Recipes with some blocks of the one and the rest of the other."""
    slots = one.differs(other)
    found: dict[Recipe, None] = {}
    for _ in range(count if len(slots) > 1 else 0):
        made = one
        taken = generator.random(len(slots)) < 0.5
        for slot in (slot for slot, take in zip(slots, taken, strict=True) if take):
            made = made.given(slot, getattr(other, slot))
        found.setdefault(made)
    return [made for made in found if made not in (one, other)]


def wide(recipe: Recipe, generator: np.random.Generator, count: int = 300) -> list[Recipe]:
    """Recipes in which a quarter of the blocks are drawn anew."""
    found: dict[Recipe, None] = {}
    for _ in range(count):
        made = recipe
        drawn = Recipe.drawn(generator)
        for slot, anew in zip(SLOTS, generator.random(len(SLOTS)) < 1 / 4, strict=True):
            made = made.given(slot, getattr(drawn, slot)) if anew else made
        found.setdefault(made)
    found.pop(recipe, None)
    return list(found)


def _single(recipe: Recipe) -> Iterator[Recipe]:
    for slot, blocks in SLOTS.items():
        for block in blocks:
            if (made := recipe.given(slot, block)) != recipe:
                yield made
