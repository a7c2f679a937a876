"""Ways from known recipes to new ones."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from coevolve.proposers.offline.recipe import SLOTS, Recipe


def neighbours(recipe: Recipe, generator: np.random.Generator, doubles: int = 150) -> list[Recipe]:
    """All recipes with one other block, and some with two.

    A slot that has no effect before the change, and has one after it, gets a random block.
    """
    single = list(dict.fromkeys(_single(recipe, generator)))
    found = dict.fromkeys(single)
    for _ in range(doubles):
        first = single[generator.integers(len(single))]
        slot = tuple(SLOTS)[generator.integers(len(SLOTS))]
        block = SLOTS[slot][generator.integers(len(SLOTS[slot]))]
        found.setdefault(_given(first, {slot: block}, generator))
    found.pop(recipe, None)
    return list(found)


def crossings(
    one: Recipe, other: Recipe, generator: np.random.Generator, count: int = 100
) -> list[Recipe]:
    """Recipes with some blocks of the one and the rest of the other.

    A block that has no effect in a parent is not taken from it.
    """
    only = {slot: getattr(other, slot) for slot in SLOTS if not one.has(slot)}
    both = [slot for slot in one.differs(other) if one.has(slot) and other.has(slot)]
    found: dict[Recipe, None] = {}
    for _ in range(count):
        taken = zip(both, generator.random(len(both)) < 0.5, strict=True)
        blocks = {slot: getattr(other, slot) for slot, take in taken if take}
        found.setdefault(replace(one, **only, **blocks))
    return [made for made in found if made not in (one, other)]


def wide(recipe: Recipe, generator: np.random.Generator, count: int = 300) -> list[Recipe]:
    """Recipes in which a quarter of the blocks are drawn anew."""
    found: dict[Recipe, None] = {}
    for _ in range(count):
        drawn = Recipe.blocks(generator)
        anew = dict(zip(SLOTS, generator.random(len(SLOTS)) < 1 / 4, strict=True))
        found.setdefault(_given(recipe, {s: drawn[s] for s in SLOTS if anew[s]}, generator))
    found.pop(recipe, None)
    return list(found)


def _single(recipe: Recipe, generator: np.random.Generator) -> Iterator[Recipe]:
    for slot, blocks in SLOTS.items():
        for block in blocks:
            if recipe.given(slot, block) != recipe:
                yield _given(recipe, {slot: block}, generator)


def _given(recipe: Recipe, blocks: dict[str, str], generator: np.random.Generator) -> Recipe:
    """A recipe with other blocks, and random ones where its own had no effect."""
    drawn = Recipe.blocks(generator)
    idle = {slot: drawn[slot] for slot in SLOTS if not recipe.has(slot)}
    return replace(recipe, **(idle | blocks))
