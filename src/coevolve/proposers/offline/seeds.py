"""Recipes to begin with: as different from each other as can be, and cheap."""

from collections.abc import Mapping

from coevolve.proposers.offline.recipe import Recipe

SEEDS: Mapping[str, Recipe] = {
    "A few examples found by pieces of words, the nearest last, are enough to go by.": Recipe(
        like="pieces", count="4"
    ),
    "What an empty question gets as well says nothing about a label.": Recipe(
        select="none", format="keywords", ask="calibrated"
    ),
    "One example each of several labels shows what there is to choose from.": Recipe(
        like="fused", select="quota", count="6", format="arrow"
    ),
    "Of the labels that similar examples leave, the one above its usual score is right.": Recipe(
        like="bm25", select="none", format="keywords", ask="standardised", shortlist="6", trust="1"
    ),
}
"""The first recipes, by hypothesis."""
