"""The space of a table: a factorial of building blocks, in stages that are closed themselves.

A stage keeps some blocks of every slot and contains the stages before it. The moves and crossings
of the offline proposer within a stage lead to recipes of that stage, so a table that is filled up
to a stage is a whole space for searches.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Self

from coevolve.benchmarks.textclass.blocks import TextBlocks
from coevolve.core.outcomes import is_whole
from coevolve.errors import InputError, nearest
from coevolve.proposers.offline.building_blocks import Recipe, RecipeSpace
from coevolve.proposers.offline.restricted_blocks import RestrictedBlocks

CHARACTERS = 1500
"""Characters of examples in a prompt, as in the whole searches of docs/searches.md."""

STARTS = ("zero-shot", "nearest", "vote")
"""The starting harnesses, which a table has beside its recipes."""

AFTER = ("ask", "parse", "shortlist", "trust")
"""Slots that change what is done with the model's scores, but not the prompt of a question."""

_ONE: Mapping[str, Sequence[str]] = {
    "like": ("pieces", "bm25", "fused"),
    "select": ("none",),
    "count": ("4",),
    "order": ("nearest-last",),
    "format": ("question", "keywords", "arrow"),
    "lead": ("bare",),
    "ask": ("choose", "scores", "calibrated", "standardised"),
    "parse": ("first",),
    "shortlist": ("all", "12", "6", "3"),
    "trust": ("none", "0.5", "1", "2", "4"),
    "repeat": ("once",),
    "notes": ("none",),
}
STAGES: Sequence[Mapping[str, Sequence[str]]] = (
    _ONE,
    {**_ONE, "select": ("none", "nearest")},
    {**_ONE, "select": ("none", "nearest", "quota")},
    {**_ONE, "select": ("none", "nearest", "quota"), "count": ("4", "6")},
    {
        **_ONE,
        "select": ("none", "nearest", "quota"),
        "count": ("4", "6"),
        "ask": (*_ONE["ask"], "free"),
        "parse": ("first", "closest"),
    },
)
"""The blocks of each stage, which begins with the cheapest prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A harness of a table.

    Args:
        key: Its components, joined; the name of a starting harness.
        recipe: Its recipe; None for a starting harness.
        stage: The number of the first stage that has it, from 1.
    """

    key: str
    recipe: Recipe | None
    stage: int


class TableSpace:
    """The harnesses of a table.

    Args:
        stages: The blocks of every stage; each contains the one before it.
        characters: Characters of examples in a prompt, at most.

    >>> space = TableSpace()
    >>> [len(space.recipes(stage)) for stage in (1, 2, 3, 4, 5)]
    [552, 1128, 1704, 2856, 2934]
    """

    def __init__(
        self,
        stages: Sequence[Mapping[str, Sequence[str]]] = STAGES,
        characters: int = CHARACTERS,
    ) -> None:
        if not stages:
            raise InputError("a space needs at least one stage.")
        for before, after in pairwise(stages):
            if any(not set(blocks) <= set(after.get(slot, ())) for slot, blocks in before.items()):
                raise InputError(f"a stage must contain the one before it; {after} does not.")
        self.stages, self._whole = tuple(stages), TextBlocks(characters=characters)
        self.characters = characters

    @classmethod
    def read(cls, file: Path) -> Self:
        """The space that a TOML file describes: `characters`, and a table `stages` for each stage.

        Raises:
            InputError: The file cannot be read, or has an unknown key, slot or block.
        """
        try:
            given = tomllib.loads(file.read_text())
        except (OSError, ValueError) as error:
            raise InputError(f"the space {file} cannot be read: {error}.") from error
        for key in given:
            if key not in ("characters", "stages"):
                raise InputError(
                    f"{file}: {key!r} is not a key of a space; use characters and stages."
                    f"{nearest(key, ('characters', 'stages'))}"
                )
        stages, characters = given.get("stages", []), given.get("characters", CHARACTERS)
        if not is_whole(characters, least=1000):
            raise InputError(f"{file}: characters must be at least 1000, got {characters!r}.")
        if not isinstance(stages, list) or not all(map(_is_stage, stages)):
            raise InputError(f"{file}: each of [[stages]] must map slots to lists of blocks.")
        try:
            made = cls(stages, int(characters))
            made.blocks(len(stages))
        except InputError as error:
            raise InputError(f"{file}: {error}") from error
        return made

    def blocks(self, stage: int) -> RestrictedBlocks:
        """The building blocks of a stage."""
        if not 1 <= stage <= len(self.stages):
            raise InputError(f"there are stages 1 to {len(self.stages)}, got {stage}.")
        return RestrictedBlocks(self._whole, self.stages[stage - 1])

    def recipes(self, stage: int) -> tuple[Recipe, ...]:
        """All recipes of a stage, those of its earlier stages included."""
        space = RecipeSpace(self.blocks(stage))
        every = product(*space.slots.values())
        made = (space.recipe(dict(zip(space.slots, blocks, strict=True))) for blocks in every)
        return tuple(dict.fromkeys(made))

    def rows(self) -> Iterator[Row]:
        """All harnesses by stage, the starting ones first; those that share prompts together."""
        for name in STARTS:
            yield Row(key=name, recipe=None, stage=1)
        seen: set[str] = set()
        for stage in range(1, len(self.stages) + 1):
            new = [recipe for recipe in self.recipes(stage) if key_of(recipe) not in seen]
            seen.update(map(key_of, new))
            for recipe in sorted(new, key=_place):
                yield Row(key=key_of(recipe), recipe=recipe, stage=stage)


def _is_stage(given: object) -> bool:
    return isinstance(given, dict) and all(
        isinstance(blocks, list) and all(isinstance(block, str) for block in blocks)
        for blocks in given.values()
    )


def key_of(recipe: Recipe) -> str:
    """The components of a recipe in one text."""
    return " ".join(recipe.components)


def prompts_of(recipe: Recipe) -> tuple[str, ...]:
    """What the prompt of a question depends on: recipes with equal ones share their requests."""
    bare = recipe["select"] == "none"
    return tuple(
        component
        for component in recipe.components
        if component.partition(":")[0] not in (*AFTER, *(("like",) if bare else ()))
    )


_FIRST = ("calibrated", "standardised")


def _place(recipe: Recipe) -> tuple[tuple[str, ...], int]:
    """Harnesses that make all requests of their prompts come first."""
    whole = recipe["shortlist"] == "all" and recipe["trust"] == "none"
    rank = _FIRST.index(recipe["ask"]) if whole and recipe["ask"] in _FIRST else len(_FIRST)
    return prompts_of(recipe), rank
