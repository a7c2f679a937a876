"""Recipes to begin with: as different from each other as can be, and cheap."""

from collections.abc import Mapping

from coevolve.proposers.offline.recipe import Recipe

SEEDS: Mapping[str, Recipe] = {
    "A few examples found by pieces of words, the nearest last, are enough to go by.": Recipe(
        like="pieces", count="4"
    ),
    "A label says the more, the further its score is above what it usually gets.": Recipe(
        select="none", format="keywords", ask="standardised"
    ),
    "One example each of several labels shows what there is to choose from.": Recipe(
        like="fused", select="quota", count="6", format="arrow"
    ),
    "Where similar examples leave few labels, what an empty question gets says nothing.": Recipe(
        like="bm25", select="none", format="keywords", ask="calibrated", shortlist="6", trust="1"
    ),
}
"""The first recipes, by hypothesis."""
