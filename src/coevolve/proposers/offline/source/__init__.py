"""The source of a harness, from its recipe."""

from coevolve.proposers.offline.recipe import Recipe
from coevolve.proposers.offline.source.answering import answering
from coevolve.proposers.offline.source.asking import asking
from coevolve.proposers.offline.source.examples import examples
from coevolve.proposers.offline.source.likeness import likeness
from coevolve.proposers.offline.source.notes import notes
from coevolve.proposers.offline.source.parts import joined
from coevolve.proposers.offline.source.wording import class_of, docstring, name_of, summary

__all__ = ["harness_source", "name_of"]


def harness_source(recipe: Recipe, *, hypothesis: str, characters: int = 4000) -> str:
    """The file of a harness: self-contained, of the standard library alone.

    Args:
        recipe: Its blocks.
        hypothesis: Why it should be good; the first line of the file.
        characters: How many characters of examples a prompt may have.
    """
    parts = [
        answering(recipe),
        asking(recipe, characters),
        examples(recipe),
        notes(recipe),
        likeness(recipe),
    ]
    return joined(
        parts,
        docstring=docstring(recipe, hypothesis),
        name=class_of(recipe),
        summary=summary(recipe),
    )
