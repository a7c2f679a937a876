"""What a recipe is called, and what it does, in words."""

import textwrap

from coevolve.proposers.offline.recipe import Recipe
from coevolve.proposers.offline.source.parts import WIDTH

_LIKE = {
    "words": "TF-IDF of words and pairs of words",
    "pieces": "TF-IDF of pieces of words",
    "characters": "TF-IDF of runs of characters",
    "bm25": "BM25",
    "fused": "the rankings by words and by pieces of words, fused",
}
_SELECT = {
    "none": "No examples are shown",
    "all": "The first examples are shown, as many as fit, always the same",
    "nearest": "The {count} nearest examples are shown",
    "quota": "The nearest examples of {count} labels are shown, one of each",
    "diverse": "{count} examples are shown that are like the question and unlike each other",
}
_ORDER = {
    "nearest-last": ", the nearest last",
    "nearest-first": ", the nearest first",
    "shuffled": ", shuffled",
    "grouped": ", grouped by label",
}
_ASK = {
    "free": "The model answers in its own words, and the label is read in them",
    "choose": "The model chooses among {labels}",
    "scores": "The model scores {labels}",
    "calibrated": "The model scores {labels}, and what each gets after an empty question is taken "
    "off",
    "standardised": "The model scores {labels}, and each score is measured on the label's own "
    "scale, which is learned from some of the examples",
}
_SHOWS = {
    "all": "Shows all examples that fit",
    "nearest": "Shows the nearest examples",
    "quota": "Shows the nearest example of several labels",
    "diverse": "Shows examples that are not too much alike",
}
_ASKS = {
    "free": "the model writes",
    "choose": "the model chooses",
    "scores": "the model's scores decide",
    "calibrated": "what an empty question scores is taken off",
    "standardised": "scores are standardised",
}
_REPEAT = {
    "orders": "It is asked with the examples in three orders",
    "samples": "Three answers are sampled, and the most common one counts",
}
_NOTES = {
    "keywords": "Above the question stand the key words of the labels that it may be about",
    "mistakes": "Above the question stand the labels that were mixed up while learning",
}


def name_of(recipe: Recipe) -> str:
    """A name that tells most recipes apart.

    >>> name_of(Recipe(like="bm25", select="quota", ask="standardised", trust="2"))
    'bm25-quota-standardised-weighed'
    """
    how = [recipe.select] if recipe.select in ("quota", "diverse") else []
    notes = [recipe.notes] if recipe.notes != "none" else []
    shown, *rest = _words(recipe)
    return "-".join([shown, *how, *rest, *notes])


def class_of(recipe: Recipe) -> str:
    """The name of the harness's class.

    >>> class_of(Recipe(like="bm25", ask="standardised", trust="2"))
    'Bm25StandardisedWeighed'
    """
    return "".join(map(str.capitalize, _words(recipe)))


def _words(recipe: Recipe) -> list[str]:
    shown = recipe.like if recipe.searches else {"none": "bare", "all": "all"}[recipe.select]
    return [shown, recipe.ask, *(["weighed"] if recipe.trust != "none" else [])]


def told(recipe: Recipe) -> list[str]:
    """What the harness does, in sentences."""
    said = [_SELECT[recipe.select].format(count=recipe.count if recipe.count != "1" else "one")]
    if recipe.count == "1" and recipe.searches:
        said = ["The nearest example is shown"]
    elif recipe.searches:
        said[0] += _ORDER[recipe.order]
    kept = f"the {recipe.shortlist} labels that similar examples speak for the most"
    said.append(
        _ASK[recipe.ask].format(labels="the labels" if recipe.shortlist == "all" else kept)
    )
    if recipe.trust != "none":
        said.append("To that is added how similar the nearest examples of each label are")
    said += [_REPEAT[recipe.repeat]] if recipe.repeat != "once" else []
    said += [_NOTES[recipe.notes]] if recipe.notes != "none" else []
    if recipe.compares:
        said.append(f"Texts are alike by {_LIKE[recipe.like]}")
    return [f"{sentence}." for sentence in said]


def summary(recipe: Recipe) -> str:
    """What the harness does, in a line."""
    shown = _SHOWS[recipe.select] if recipe.shows else "Shows no examples"
    return f"{shown}; {_ASKS[recipe.ask]}."


def docstring(recipe: Recipe, hypothesis: str) -> str:
    """The hypothesis, and what the harness does."""
    safe = hypothesis.replace("\\", "/").replace('"', "'")
    first = textwrap.fill(safe, WIDTH - 3, subsequent_indent="")
    return f"{first}\n\n{textwrap.fill(' '.join(told(recipe)), WIDTH)}"
