"""Recipes to begin with: as different from each other as can be, and cheap."""

from collections.abc import Mapping

from coevolve.proposers.offline.recipe import Recipe

SEEDS: Mapping[str, Recipe] = {
    "A few examples found by pieces of words, the nearest last, are enough to go by.": Recipe(
        like="pieces", count="4"
    ),
    "A label says the more the further its score is above what it usually gets.": Recipe(
        select="none", format="keywords", ask="standardised"
    ),
    "Similar examples and the model's scores know different things, so they are added.": Recipe(
        like="pieces", select="none", format="topic", ask="scores", shortlist="6", trust="1"
    ),
    "One example each of several labels shows what there is to choose from.": Recipe(
        like="fused", select="quota", count="6", format="arrow"
    ),
    "What an empty question gets as well says nothing about a label.": Recipe(
        like="bm25", select="nearest", count="2", ask="calibrated", shortlist="6"
    ),
    "Key words of the likeliest labels remind the model of what they mean.": Recipe(
        like="bm25", count="2", format="topic", shortlist="6", notes="keywords"
    ),
}
"""The first recipes, by hypothesis."""
