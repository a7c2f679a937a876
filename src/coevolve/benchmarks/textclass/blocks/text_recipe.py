"""Recipes of harnesses for text classification: their slots, costs, names and descriptions."""

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

SLOTS: Mapping[str, tuple[str, ...]] = {
    "like": ("words", "pieces", "characters", "bm25", "fused"),
    "select": ("none", "all", "nearest", "quota", "diverse"),
    "count": ("1", "2", "4", "6", "8", "12"),
    "order": ("nearest-last", "nearest-first", "shuffled", "grouped"),
    "format": ("question", "keywords", "arrow", "topic", "tags", "sections"),
    "lead": ("bare", "instructions", "labels"),
    "ask": ("choose", "free", "scores", "calibrated", "standardised"),
    "parse": ("first", "closest"),
    "shortlist": ("all", "12", "6", "3"),
    "trust": ("none", "0.5", "1", "2", "4"),
    "repeat": ("once", "orders", "samples"),
    "notes": ("none", "keywords", "mistakes"),
}
"""The blocks of each slot; the first one fills a slot that has no effect."""

WIDTH = 88
"""Columns of the files that are written: the width of the usual formatters."""

SCORED = ("scores", "calibrated", "standardised")
"""Ways to ask that compare the log-probabilities of labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRecipe:
    """The blocks of a harness, one for each slot.

    Args:
        like: How texts are compared: TF-IDF of words, of pieces of words or of runs of characters,
            BM25, or the rankings by words and by pieces, fused.
        select: Which examples the model is shown.
        count: How many of them, where they are searched for.
        order: The order of the examples.
        format: How an example is written.
        lead: The text above the examples.
        ask: How the model is asked: to write, to choose, or for the scores of labels: raw, less
            those after an empty question, or standardised for each label.
        parse: How a label is read in what the model writes.
        shortlist: Of how many labels the model chooses, those of similar examples first.
        trust: The weight of similar examples beside the model's scores.
        repeat: Whether several orders of the examples or samples of the answer are taken.
        notes: What the prompt says about labels: their key words, or which were mixed up.

    >>> TextRecipe(select="none", order="shuffled", ask="choose").active
    {'select': 'none', 'format': 'question', 'lead': 'bare', 'ask': 'choose', \
'shortlist': 'all', 'notes': 'none'}
    """

    like: str = "words"
    select: str = "nearest"
    count: str = "4"
    order: str = "nearest-last"
    format: str = "question"
    lead: str = "bare"
    ask: str = "choose"
    parse: str = "first"
    shortlist: str = "all"
    trust: str = "none"
    repeat: str = "once"
    notes: str = "none"

    def __post_init__(self) -> None:
        if self.repeat == "samples" and self.ask != "free":
            object.__setattr__(self, "repeat", "once")
        if self.repeat == "orders" and not self.orders:
            object.__setattr__(self, "repeat", "once")
        if self.select == "quota" and self.order == "grouped":  # one example of each label
            object.__setattr__(self, "order", "nearest-last")
        for slot, matters in reversed(list(MATTERS.items())):  # a slot may depend on later ones
            if not matters(self):
                object.__setattr__(self, slot, SLOTS[slot][0])

    @property
    def shows(self) -> bool:
        """Whether the model is shown examples."""
        return self.select != "none"

    @property
    def searches(self) -> bool:
        """Whether the examples shown are searched for."""
        return self.select in ("nearest", "quota", "diverse")

    @property
    def orders(self) -> bool:
        """Whether the examples found can be put in an order."""
        return self.searches and self.count != "1"

    @property
    def compares(self) -> bool:
        """Whether the harness compares texts."""
        return self.searches or self.shortlist != "all" or self.trust != "none"

    def has(self, slot: str) -> bool:
        """Whether a slot has an effect."""
        matters = MATTERS.get(slot)
        return matters is None or matters(self)

    @property
    def active(self) -> dict[str, str]:
        """The slots that have an effect, with their blocks."""
        return {slot: getattr(self, slot) for slot in SLOTS if self.has(slot)}

    def given(self, slot: str, block: str) -> Self:
        """The recipe with another block in one slot."""
        return replace(self, **{slot: block})


MATTERS: Mapping[str, Callable[[TextRecipe], bool]] = {
    "like": lambda recipe: recipe.compares,
    "count": lambda recipe: recipe.searches,
    "order": lambda recipe: recipe.orders,
    "parse": lambda recipe: recipe.ask == "free",
    "shortlist": lambda recipe: recipe.ask != "free",
    "trust": lambda recipe: recipe.ask in SCORED,
    "repeat": lambda recipe: recipe.orders or recipe.ask == "free",
}
"""Whether a slot has an effect; those that are not named always have one."""


def effort(recipe: TextRecipe) -> float:
    """About how much a model reads for a prediction, as a multiple of the question alone.

    Two examples count as much as a question, and so do all labels if they are scored. Repeated
    requests count as often as they are made. Requests while learning are spread over twenty
    predictions.

    >>> effort(TextRecipe(select="none")), effort(TextRecipe(count="8", ask="calibrated"))
    (1.0, 12.0)
    """
    labels = {"all": 1.0, "12": 0.5, "6": 0.25, "3": 0.125}[recipe.shortlist]
    asked = 1 + labels if recipe.ask in SCORED else 2.0 if recipe.ask == "free" else 1.0
    read = {"none": 0.0, "all": 8.0}.get(recipe.select, int(recipe.count) / 2)
    times = (1 if recipe.repeat == "once" else 3) * (2 if recipe.ask == "calibrated" else 1)
    predicted = times * (asked + read + (recipe.notes != "none") / 2)
    probed = 1.2 * times * (2 + read) if recipe.ask == "standardised" else 0.0
    return predicted + probed + (1.5 * predicted if recipe.notes == "mistakes" else 0.0)


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
    "calibrated": "The model scores {labels}, and the score after an empty question is subtracted",
    "standardised": "The model scores {labels}, and each score is measured on the label's own "
    "scale, which is learned from some of the examples",
}
_SHOWS = {
    "all": "Shows all examples that fit",
    "nearest": "Shows the nearest examples",
    "quota": "Shows the nearest example of several labels",
    "diverse": "Shows examples that differ from each other",
}
_ASKS = {
    "free": "the model writes",
    "choose": "the model chooses",
    "scores": "the model's scores decide",
    "calibrated": "empty-question scores are subtracted",
    "standardised": "scores are standardised",
}
_REPEAT = {
    "orders": "It is asked with the examples in three orders",
    "samples": "Three answers are sampled, and the most common one counts",
}
_NOTES = {
    "keywords": "Above the question are the key words of the labels that it may be about",
    "mistakes": "Above the question are the labels that were mixed up while learning",
}


def name_of(recipe: TextRecipe) -> str:
    """A name that tells most recipes apart.

    >>> name_of(TextRecipe(like="bm25", select="quota", ask="standardised", trust="2"))
    'bm25-quota-standardised-weighed'
    """
    how = [recipe.select] if recipe.select in ("quota", "diverse") else []
    notes = [recipe.notes] if recipe.notes != "none" else []
    shown, *rest = _words(recipe)
    return "-".join([shown, *how, *rest, *notes])


def class_of(recipe: TextRecipe) -> str:
    """The name of the harness's class.

    >>> class_of(TextRecipe(like="bm25", ask="standardised", trust="2"))
    'Bm25StandardisedWeighed'
    """
    return "".join(map(str.capitalize, _words(recipe)))


def _words(recipe: TextRecipe) -> list[str]:
    shown = recipe.like if recipe.searches else {"none": "bare", "all": "all"}[recipe.select]
    return [shown, recipe.ask, *(["weighed"] if recipe.trust != "none" else [])]


def _described(recipe: TextRecipe) -> list[str]:
    """What the harness does, in sentences."""
    said = [_SELECT[recipe.select].format(count=recipe.count if recipe.count != "1" else "one")]
    if recipe.count == "1" and recipe.searches:
        said = ["The nearest example is shown"]
    elif recipe.searches:
        said[0] += _ORDER[recipe.order]
    kept = f"the {recipe.shortlist} labels with the most similar examples"
    said.append(
        _ASK[recipe.ask].format(labels="the labels" if recipe.shortlist == "all" else kept)
    )
    if recipe.trust != "none":
        said.append("The similarity of the nearest examples of each label is added")
    said += [_REPEAT[recipe.repeat]] if recipe.repeat != "once" else []
    said += [_NOTES[recipe.notes]] if recipe.notes != "none" else []
    if recipe.compares:
        said.append(f"Texts are compared by {_LIKE[recipe.like]}")
    return [f"{sentence}." for sentence in said]


def summary(recipe: TextRecipe) -> str:
    """What the harness does, in a line."""
    shown = _SHOWS[recipe.select] if recipe.shows else "Shows no examples"
    return f"{shown}; {_ASKS[recipe.ask]}."


def docstring(recipe: TextRecipe, hypothesis: str) -> str:
    """The hypothesis, and what the harness does."""
    safe = hypothesis.replace("\\", "/").replace('"', "'")
    first = textwrap.fill(safe, WIDTH - 3, subsequent_indent="")
    return f"{first}\n\n{textwrap.fill(' '.join(_described(recipe)), WIDTH)}"
