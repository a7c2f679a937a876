"""Building blocks of candidates, which a benchmark provides, and the recipes made of them.

A recipe has one block in each slot: for example, in the slot `ask` the block `choose`. A benchmark
provides its slots, blocks and the files they make up as `BuildingBlocks`; the offline proposer
searches over the recipes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from coevolve.errors import InputError, nearest
from coevolve.search.candidate import Files
from coevolve.search.proposal import Standing, View

REMEMBERED = 50_000
"""Recipes that a space remembers, at most; a search asks for the same ones again and again."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A block for each slot, as `RecipeSpace.recipe` makes it.

    A slot without effect has its first block, so two recipes differ only if their candidates do.

    Args:
        blocks: Pairs of slot and block, for every slot.
        components: The blocks with an effect, as `slot:block`.

    Attributes:
        idle: The numbers of the slots without effect.
    """

    blocks: tuple[tuple[str, str], ...]
    components: tuple[str, ...]
    _by_slot: Mapping[str, str] = field(init=False, repr=False, compare=False)
    _active: frozenset[str] = field(init=False, repr=False, compare=False)
    idle: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_slot", dict(self.blocks))
        slots = (component.partition(":")[0] for component in self.components)
        object.__setattr__(self, "_active", frozenset(slots))
        idle = (n for n, (slot, _) in enumerate(self.blocks) if slot not in self._active)
        object.__setattr__(self, "idle", tuple(idle))

    def __getitem__(self, slot: str) -> str:
        return self._by_slot[slot]

    def has(self, slot: str) -> bool:
        """Whether a slot has an effect."""
        return slot in self._active

    def differs(self, other: "Recipe") -> tuple[str, ...]:
        """The slots in which another recipe differs."""
        pairs = zip(self.blocks, other.blocks, strict=True)
        return tuple(mine[0] for mine, theirs in pairs if mine != theirs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What many failures of a candidate have in common.

    Args:
        says: The finding in words; it begins a hypothesis.
        weight: The share of failures, times the confidence in the remedies.
        remedies: Blocks that may help, as (slot, block), with what they do in words.
    """

    says: str
    weight: float
    remedies: Mapping[tuple[str, str], str]


@runtime_checkable
class BuildingBlocks(Protocol):
    """The slots and blocks of a benchmark's candidates, and the files that they make up.

    Subclass it: `slots`, `seeds` and `render` are required, the rest has defaults.
    """

    @property
    def slots(self) -> Mapping[str, Sequence[str]]:
        """The blocks of each slot; the first one fills a slot that has no effect."""
        ...

    @property
    def seeds(self) -> Mapping[str, Mapping[str, str]]:
        """The first recipes by hypothesis: cheap ones, as different as possible."""
        ...

    def render(self, recipe: Recipe, hypothesis: str) -> Files:
        """The files of a candidate."""
        ...

    def name(self, recipe: Recipe) -> str:
        """The name of a candidate; names need not be unique."""
        return "-".join(component.partition(":")[2] for component in recipe.components)

    def settle(self, blocks: Mapping[str, str]) -> Mapping[str, str]:
        """The slots that have an effect, with their blocks.

        Replace a block that does not work with the others, and leave out slots without effect.
        """
        return blocks

    def cost(self, recipe: Recipe) -> float:
        """The cost of a recipe, as the gain in score that would justify it."""
        return 0.0

    def prior(self, components: Collection[str]) -> float:
        """The gain in score expected from components (`slot:block`) before the search."""
        return 0.0

    def findings(
        self, view: View, standing: Standing, recipes: Mapping[str, Recipe]
    ) -> Sequence[Finding]:
        """What the failures of a candidate have in common, most important first.

        Args:
            view: Has the traces of trials.
            standing: The candidate.
            recipes: The recipes of all candidates by name, this one's included.
        """
        return ()


class RecipeSpace:
    """The recipes of some building blocks, and ways from one to another.

    Args:
        blocks: The building blocks.

    Raises:
        InputError: They have no slots or seeds, or a seed has an unknown block.
    """

    def __init__(self, blocks: BuildingBlocks) -> None:
        if not isinstance(blocks, BuildingBlocks):
            raise InputError(f"{blocks!r} is not a BuildingBlocks object.")
        self.blocks = blocks
        self.slots = {slot: tuple(known) for slot, known in blocks.slots.items()}
        if not self.slots or not all(self.slots.values()) or not blocks.seeds:
            raise InputError(
                f"{type(blocks).__name__} needs at least one slot, a block in every slot, and one "
                "seed."
            )
        self.components = tuple(
            f"{slot}:{block}" for slot, known in self.slots.items() for block in known
        )
        self._firsts = {slot: known[0] for slot, known in self.slots.items()}
        self._listed = tuple(self.slots.items())
        sizes = [len(known) for known in self.slots.values()]
        self._sizes = np.array(sizes)
        self._sizes_after = [np.array([size, *sizes]) for size in sizes]
        self._settled: dict[tuple[str, ...], Recipe] = {}
        self.seeds = {text: self.recipe(seed) for text, seed in blocks.seeds.items()}

    def recipe(self, given: Mapping[str, str]) -> Recipe:
        """The recipe of some blocks; slots that are left out get their first block.

        Raises:
            InputError: There is no such slot or block.
        """
        for slot, block in given.items():
            known = self.slots.get(slot, ())
            if block not in known:
                if not known:
                    raise InputError(f"there is no slot {slot!r}.{nearest(slot, self.slots)}")
                raise InputError(f"slot {slot!r} has no block {block!r}.{nearest(block, known)}")
        return self._known(self._firsts | dict(given))

    def _known(self, blocks: dict[str, str]) -> Recipe:
        """The recipe of known blocks, one for every slot in the order of `slots`."""
        key = tuple(blocks.values())
        if key not in self._settled:
            if len(self._settled) >= REMEMBERED:
                self._settled.clear()
            self._settled[key] = self._made(blocks)
        return self._settled[key]

    def _made(self, blocks: dict[str, str]) -> Recipe:
        active = self.blocks.settle(blocks)
        firsts = self._firsts.items()
        return Recipe(
            blocks=tuple((slot, active.get(slot, first)) for slot, first in firsts),
            components=tuple(f"{slot}:{active[slot]}" for slot in self.slots if slot in active),
        )

    def of(self, components: Iterable[str]) -> Recipe | None:
        """The recipe with these components; None if no recipe has them."""
        listed = tuple(components)
        if len(set(listed)) < len(listed) or not set(listed).issubset(self.components):
            return None
        blocks = dict(component.split(":", 1) for component in listed)
        found = self.recipe(blocks)
        return found if set(found.components) == set(listed) else None

    def changed(self, recipe: Recipe, blocks: Mapping[str, str]) -> Recipe:
        """The recipe with other blocks in some slots."""
        return self.recipe(dict(recipe.blocks) | dict(blocks))

    def drawn(self, generator: np.random.Generator) -> Recipe:
        """A recipe of random blocks."""
        return self.recipe(self._random(generator))

    def neighbours(
        self, recipe: Recipe, generator: np.random.Generator, doubles: int = 150
    ) -> list[Recipe]:
        """All recipes with one other block, and some with two.

        A slot that has no effect before the change, and has one after it, gets a random block.
        """
        single = list(dict.fromkeys(self._single(recipe, generator)))
        found = dict.fromkeys(single)
        for _ in range(doubles if single else 0):
            first = single[generator.integers(len(single))]
            number = int(generator.integers(len(self.slots)))
            # One call draws the numbers that one call each would draw, in a fifth of the time.
            place, *places = generator.integers(self._sizes_after[number]).tolist()
            found.setdefault(self._filled(first, {number: place}, places))
        found.pop(recipe, None)
        return list(found)

    def crossings(
        self, one: Recipe, other: Recipe, generator: np.random.Generator, count: int = 100
    ) -> list[Recipe]:
        """Recipes with some blocks of the one and the rest of the other.

        A block without effect in a parent is not taken from it.
        """
        only = {slot: other[slot] for slot in self.slots if not one.has(slot)}
        both = [slot for slot in one.differs(other) if one.has(slot) and other.has(slot)]
        found: dict[Recipe, None] = {}
        for _ in range(count):
            taken = zip(both, generator.random(len(both)) < 0.5, strict=True)
            blocks = {slot: other[slot] for slot, take in taken if take}
            found.setdefault(self.changed(one, only | blocks))
        return [made for made in found if made not in (one, other)]

    def wide(
        self, recipe: Recipe, generator: np.random.Generator, count: int = 300
    ) -> list[Recipe]:
        """Recipes with new random blocks in a quarter of the slots."""
        found: dict[Recipe, None] = {}
        for _ in range(count):
            drawn = generator.integers(self._sizes).tolist()
            anew = (generator.random(len(self.slots)) < 1 / 4).tolist()
            taken = {number: drawn[number] for number, new in enumerate(anew) if new}
            places = generator.integers(self._sizes).tolist()
            found.setdefault(self._filled(recipe, taken, places))
        found.pop(recipe, None)
        return list(found)

    def _single(self, recipe: Recipe, generator: np.random.Generator) -> Iterator[Recipe]:
        moves = [
            (number, place)
            for number, (slot, known) in enumerate(self.slots.items())
            for place, block in enumerate(known)
            if self.changed(recipe, {slot: block}) != recipe
        ]
        drawn = self._places(generator, len(moves))
        for (number, place), places in zip(moves, drawn, strict=True):
            yield self._filled(recipe, {number: place}, places)

    def _filled(self, recipe: Recipe, taken: Mapping[int, int], drawn: Sequence[int]) -> Recipe:
        """The recipe with other blocks, and drawn ones in the slots that had no effect.

        `taken` has places of blocks by number of slot, and `drawn` those of all slots.
        """
        blocks = dict(recipe.blocks)
        for number in recipe.idle:
            slot, known = self._listed[number]
            blocks[slot] = known[drawn[number]]
        for number, place in taken.items():
            slot, known = self._listed[number]
            blocks[slot] = known[place]
        return self._known(blocks)

    def _random(self, generator: np.random.Generator) -> dict[str, str]:
        places = generator.integers(self._sizes).tolist()
        pairs = zip(self.slots.items(), places, strict=True)
        return {slot: known[place] for (slot, known), place in pairs}

    def _places(self, generator: np.random.Generator, count: int) -> list[list[int]]:
        """Random places of blocks for all slots, `count` times."""
        drawn = generator.integers(self._sizes, size=(count, len(self.slots)))
        listed: list[list[int]] = drawn.tolist()
        return listed
