"""Recipes and their components."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevolve.proposers.offline.moves import crossings, neighbours
from coevolve.proposers.offline.recipe import SLOTS, Recipe, effort

RECIPES = st.fixed_dictionaries({slot: st.sampled_from(b) for slot, b in SLOTS.items()}).map(
    lambda blocks: Recipe(**blocks)
)
INSTEAD = ("repeat:once", "order:nearest-last")
"""What stands where samples or orders cannot be repeated, and where nothing can be grouped."""


@given(RECIPES)
def test_a_recipe_is_read_back_from_its_components(recipe: Recipe) -> None:
    assert Recipe.of(recipe.components) == recipe
    assert Recipe.of(reversed(recipe.components)) == recipe


@given(RECIPES, RECIPES)
def test_recipes_differ_if_their_components_do(one: Recipe, other: Recipe) -> None:
    assert (one == other) == (one.components == other.components)


def test_a_block_without_effect_makes_no_other_recipe() -> None:
    bare = Recipe(select="none")
    assert bare.given("order", "shuffled").given("count", "12").given("trust", "4") == bare
    assert Recipe(ask="scores", repeat="samples") == Recipe(ask="scores")
    assert Recipe(count="1", repeat="orders") == Recipe(count="1")


@pytest.mark.parametrize(
    "components",
    [
        (),
        ("playbook", "retrieval"),
        ("select:nearest", "select:none"),
        ("select:nearest", "colour:red"),
        ("select:somewhere",),
        ("select:none", "order:shuffled"),
    ],
)
def test_components_of_others_are_no_recipe(components: tuple[str, ...]) -> None:
    assert Recipe.of(components) is None


def test_an_unknown_block_is_refused() -> None:
    with pytest.raises(ValueError, match="order has no block 'backwards'"):
        Recipe(order="backwards")


def test_scores_of_many_labels_and_repetition_take_more_effort() -> None:
    plain = Recipe(select="none")
    scored = Recipe(select="none", ask="standardised")
    short = scored.given("shortlist", "3")
    assert effort(plain) < effort(short) < effort(scored)
    assert effort(Recipe(repeat="orders")) > effort(Recipe()) > effort(plain)


def test_random_recipes_have_every_block_sooner_or_later() -> None:
    generator = np.random.default_rng(0)
    seen = {one for _ in range(500) for one in Recipe.drawn(generator).components}
    assert seen == {f"{slot}:{block}" for slot, blocks in SLOTS.items() for block in blocks}


@given(RECIPES, RECIPES, st.integers(0, 99))
def test_a_crossing_has_nothing_but_blocks_of_its_parents(
    one: Recipe, other: Recipe, seed: int
) -> None:
    theirs = {*one.components, *other.components, *INSTEAD}
    for made in crossings(one, other, np.random.default_rng(seed), count=5):
        assert theirs.issuperset(made.components)


@given(RECIPES, st.integers(0, 99))
def test_a_neighbour_keeps_all_blocks_but_one(recipe: Recipe, seed: int) -> None:
    for made in neighbours(recipe, np.random.default_rng(seed), doubles=0):
        changed = {slot for slot in recipe.differs(made) if recipe.has(slot) and made.has(slot)}
        assert len(changed - {"repeat", "order"}) <= 1
