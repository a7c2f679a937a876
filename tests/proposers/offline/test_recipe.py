"""Recipes and their components."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevolve.benchmarks.textclass.blocks.text_recipe import TextRecipe, effort
from coevolve.errors import InputError
from coevolve.proposers.offline.building_blocks import Recipe
from tests.proposers.offline.histories import SPACE, recipe_of

RECIPES = st.fixed_dictionaries({slot: st.sampled_from(b) for slot, b in SPACE.slots.items()}).map(
    SPACE.recipe
)
INSTEAD = ("repeat:once", "order:nearest-last")
"""What stands where samples or orders cannot be repeated, and where nothing can be grouped."""


@given(RECIPES)
def test_a_recipe_is_read_back_from_its_components(recipe: Recipe) -> None:
    assert SPACE.of(recipe.components) == recipe
    assert SPACE.of(reversed(recipe.components)) == recipe


@given(RECIPES, RECIPES)
def test_recipes_differ_if_their_components_do(one: Recipe, other: Recipe) -> None:
    assert (one == other) == (one.components == other.components)


def test_a_block_without_effect_makes_no_other_recipe() -> None:
    bare = recipe_of(select="none")
    assert SPACE.changed(bare, {"order": "shuffled", "count": "12", "trust": "4"}) == bare
    assert recipe_of(ask="scores", repeat="samples") == recipe_of(ask="scores")
    assert recipe_of(count="1", repeat="orders") == recipe_of(count="1")


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
def test_components_of_other_proposers_are_not_a_recipe(components: tuple[str, ...]) -> None:
    assert SPACE.of(components) is None


def test_an_unknown_block_is_refused() -> None:
    with pytest.raises(InputError, match="slot 'order' has no block 'backwards'"):
        SPACE.recipe({"order": "backwards"})
    with pytest.raises(InputError, match=r"no slot 'ordre'. Did you mean 'order'"):
        SPACE.recipe({"ordre": "shuffled"})


def test_scores_of_many_labels_and_repetition_take_more_effort() -> None:
    plain = TextRecipe(select="none")
    scored = TextRecipe(select="none", ask="standardised")
    short = scored.given("shortlist", "3")
    assert effort(plain) < effort(short) < effort(scored)
    assert effort(TextRecipe(repeat="orders")) > effort(TextRecipe()) > effort(plain)


def test_random_recipes_have_every_block_sooner_or_later() -> None:
    generator = np.random.default_rng(0)
    seen = {one for _ in range(500) for one in SPACE.drawn(generator).components}
    assert seen == set(SPACE.components)


@given(RECIPES, RECIPES, st.integers(0, 99))
def test_a_crossing_has_nothing_but_blocks_of_its_parents(
    one: Recipe, other: Recipe, seed: int
) -> None:
    theirs = {*one.components, *other.components, *INSTEAD}
    for made in SPACE.crossings(one, other, np.random.default_rng(seed), count=5):
        assert theirs.issuperset(made.components)


@given(RECIPES, st.integers(0, 99))
def test_a_neighbour_keeps_all_blocks_but_one(recipe: Recipe, seed: int) -> None:
    for made in SPACE.neighbours(recipe, np.random.default_rng(seed), doubles=0):
        changed = {slot for slot in recipe.differs(made) if recipe.has(slot) and made.has(slot)}
        assert len(changed - {"repeat", "order"}) <= 1
