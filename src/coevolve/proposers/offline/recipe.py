"""Recipes: of which blocks a harness for text classification is made."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

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
"""The blocks that each slot of a recipe may have; the first one stands where none matters."""

SCORED = ("scores", "calibrated", "standardised")
"""Ways to ask that compare the log-probabilities of labels."""

SEARCHED = ("nearest", "quota", "diverse")
"""Selections that look for examples like the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The blocks of a harness, one for each slot.

    A slot that has no effect beside the others has its first block, so that two recipes differ
    only if their harnesses do. `components` lists the slots that matter.

    Args:
        like: What makes a text like another: TF-IDF of words, of pieces of words or of runs of
            characters, BM25, or the rankings by words and by pieces, fused.
        select: Which examples the model is shown.
        count: How many of them, where they are searched for.
        order: In which order they stand.
        format: How an example is written.
        lead: What stands above the examples.
        ask: How the model is asked: to write, to choose, or for the scores of labels, as they
            are, less those after an empty question, or standardised for each label.
        parse: How a label is read in what the model writes.
        shortlist: Of how many labels the model chooses, those of similar examples first.
        trust: The weight of similar examples beside the model's scores.
        repeat: Whether several orders of the examples or samples of the answer are taken.
        notes: What is told of labels: their key words, or which of them were mistaken.

    >>> Recipe(select="none", order="shuffled", ask="choose").components
    ('select:none', 'format:question', 'lead:bare', 'ask:choose', 'shortlist:all', 'notes:none')
    >>> Recipe.of(Recipe(ask="standardised", trust="2").components).trust
    '2'
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
        for slot in SLOTS:
            if getattr(self, slot) not in SLOTS[slot]:
                raise ValueError(f"{slot} has no block {getattr(self, slot)!r}")
        if self.repeat == "samples" and self.ask != "free":
            object.__setattr__(self, "repeat", "once")
        if self.repeat == "orders" and not (self.searches and self.count != "1"):
            object.__setattr__(self, "repeat", "once")
        if self.select == "quota" and self.order == "grouped":  # one of each label is no group
            object.__setattr__(self, "order", "nearest-last")
        for slot in reversed(tuple(SLOTS)):  # a slot may depend on later ones
            if not self.has(slot):
                object.__setattr__(self, slot, SLOTS[slot][0])

    @property
    def shows(self) -> bool:
        """Whether the model is shown examples."""
        return self.select != "none"

    @property
    def searches(self) -> bool:
        """Whether the examples shown are searched for."""
        return self.select in SEARCHED

    @property
    def compares(self) -> bool:
        """Whether likeness matters for anything."""
        return self.searches or self.shortlist != "all" or self.trust != "none"

    def has(self, slot: str) -> bool:
        """Whether a slot has an effect."""
        matters = {
            "like": self.compares,
            "count": self.searches,
            "order": self.searches and self.count != "1",
            "parse": self.ask == "free",
            "shortlist": self.ask != "free",
            "trust": self.ask in SCORED,
            "repeat": (self.searches and self.count != "1") or self.ask == "free",
        }
        return matters.get(slot, True)

    @property
    def components(self) -> tuple[str, ...]:
        """The blocks that matter, as `slot:block`."""
        return tuple(f"{slot}:{getattr(self, slot)}" for slot in SLOTS if self.has(slot))

    @classmethod
    def of(cls, components: Iterable[str]) -> Self | None:
        """The recipe that has these components; None if they are none of a recipe."""
        listed = tuple(components)
        pairs = [component.partition(":")[::2] for component in listed]
        blocks = dict(pairs)
        known = all(slot in SLOTS and block in SLOTS[slot] for slot, block in pairs)
        if not known or len(blocks) < len(pairs) or "select" not in blocks:
            return None
        found = cls(**{slot: blocks.get(slot, first[0]) for slot, first in SLOTS.items()})
        return found if set(found.components) == set(listed) else None

    @classmethod
    def drawn(cls, generator: np.random.Generator) -> Self:
        """A recipe of random blocks."""
        return cls(**cls.blocks(generator))

    @staticmethod
    def blocks(generator: np.random.Generator) -> dict[str, str]:
        """A random block for each slot."""
        return {slot: blocks[generator.integers(len(blocks))] for slot, blocks in SLOTS.items()}

    def given(self, slot: str, block: str) -> Self:
        """The recipe with another block in one slot."""
        return replace(self, **{slot: block})

    def differs(self, other: "Recipe") -> tuple[str, ...]:
        """The slots in which another recipe differs."""
        names = (field.name for field in fields(self))
        return tuple(name for name in names if getattr(self, name) != getattr(other, name))


def effort(recipe: Recipe) -> float:
    """About how much a model reads for a prediction, as a multiple of a question alone.

    Two examples count as much as a question, and so do all the labels if they are scored. What
    is asked several times costs as often, and what is asked while learning is spread over twenty
    predictions.

    >>> effort(Recipe(select="none")), effort(Recipe(count="8", ask="calibrated"))
    (1.0, 12.0)
    """
    labels = {"all": 1.0, "12": 0.5, "6": 0.25, "3": 0.125}[recipe.shortlist]
    asked = 1 + labels if recipe.ask in SCORED else 2.0 if recipe.ask == "free" else 1.0
    read = {"none": 0.0, "all": 8.0}.get(recipe.select, int(recipe.count) / 2)
    times = (1 if recipe.repeat == "once" else 3) * (2 if recipe.ask == "calibrated" else 1)
    predicted = times * (asked + read + (recipe.notes != "none") / 2)
    probed = 1.2 * times * (2 + read) if recipe.ask == "standardised" else 0.0
    return predicted + probed + (1.5 * predicted if recipe.notes == "mistakes" else 0.0)
