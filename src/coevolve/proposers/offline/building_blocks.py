"""Building blocks of candidates, which a benchmark provides, and the recipes made of them.

A recipe has one block in each slot: for example, in the slot `ask` the block `choose`. A benchmark
provides its slots, blocks and the files they make up as `BuildingBlocks`; the offline proposer
searches over the recipes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from coevolve.core.arrays import Bools, Floats, Indices
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
        facts: What its space knows of it.
    """

    blocks: tuple[tuple[str, str], ...]
    components: tuple[str, ...]
    facts: "Facts" = field(repr=False, compare=False)
    _by_slot: Mapping[str, str] = field(init=False, repr=False, compare=False)
    _active: frozenset[str] = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_slot", dict(self.blocks))
        slots = (component.partition(":")[0] for component in self.components)
        object.__setattr__(self, "_active", frozenset(slots))
        object.__setattr__(self, "_hash", hash((self.blocks, self.components)))

    def __hash__(self) -> int:
        return self._hash

    def __getitem__(self, slot: str) -> str:
        return self._by_slot[slot]

    def has(self, slot: str) -> bool:
        """Whether a slot has an effect."""
        return slot in self._active

    def differs(self, other: "Recipe") -> tuple[str, ...]:
        """The slots in which another recipe differs."""
        pairs = zip(self.blocks, other.blocks, strict=True)
        return tuple(mine[0] for mine, theirs in pairs if mine != theirs)


type Places = tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class Facts:
    """What a space knows of a recipe.

    `places` are the places of its blocks in their slots, `idle` says which slots have no effect,
    and `row` has 1 for each of its components. `moves` are the slots and places of blocks that
    change it, once they were asked for.
    """

    places: Places
    idle: Bools
    row: Floats
    prior: float
    cost: float = 0.0
    moves: tuple[Indices, Indices] | None = None


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
        self._sizes = np.array([len(known) for known in self.slots.values()])
        self._columns = {component: column for column, component in enumerate(self.components)}
        self._settled: dict[Places, Recipe] = {}
        self._made: dict[tuple[str, ...], Recipe] = {}
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
        blocks = self._firsts | dict(given)
        return self._at(tuple(known.index(blocks[slot]) for slot, known in self.slots.items()))

    def _at(self, places: "Places") -> Recipe:
        """The recipe of blocks by their places, one for every slot."""
        found = self._settled.get(places)
        if found is None:
            if len(self._settled) >= REMEMBERED:
                self._settled.clear()
                self._made.clear()
            pairs = zip(self._listed, places, strict=True)
            active = self.blocks.settle({slot: known[place] for (slot, known), place in pairs})
            found = self._settled[places] = self._of(active)
        return found

    def _of(self, active: Mapping[str, str]) -> Recipe:
        """The recipe of the blocks with an effect; one object for all ways to write it."""
        components = tuple(f"{slot}:{active[slot]}" for slot in self.slots if slot in active)
        found = self._made.get(components)
        if found is None:
            blocks = tuple((slot, active.get(slot, first)) for slot, first in self._firsts.items())
            pairs = zip(self._listed, blocks, strict=True)
            row = np.zeros(len(self.components))
            row[[self._columns[component] for component in components]] = 1
            facts = Facts(
                places=tuple(known.index(block) for (_, known), (_, block) in pairs),
                idle=np.array([slot not in active for slot in self.slots]),
                row=row,
                prior=self.blocks.prior(components),
            )
            found = self._made[components] = Recipe(blocks, components, facts)
            facts.cost = self.blocks.cost(found)
        return found

    def places(self, recipes: Sequence[Recipe]) -> Indices:
        """The places of the blocks of recipes: a row each, with a column for every slot."""
        listed = [recipe.facts.places for recipe in recipes]
        return np.array(listed, dtype=np.int64).reshape(len(listed), len(self._sizes))

    def rows(self, recipes: Sequence[Recipe]) -> Floats:
        """A row for each recipe, with 1 for each of its components."""
        listed = [recipe.facts.row for recipe in recipes]
        return np.array(listed, dtype=np.float64).reshape(len(listed), len(self.components))

    def priors(self, recipes: Sequence[Recipe]) -> Floats:
        """The gain expected from the components of each recipe before the search."""
        return np.array([recipe.facts.prior for recipe in recipes], dtype=np.float64)

    def costs(self, recipes: Sequence[Recipe]) -> Floats:
        """The cost of each recipe."""
        return np.array([recipe.facts.cost for recipe in recipes], dtype=np.float64)

    def having(self, slot: str, block: str) -> tuple[int, int]:
        """The column of a slot in `places`, and the place of a block in it."""
        return list(self.slots).index(slot), self.slots[slot].index(block)

    def of(self, components: Iterable[str]) -> Recipe | None:
        """The recipe with these components; None if no recipe has them."""
        listed = tuple(components)
        if (made := self._made.get(listed)) is not None:
            return made
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
        return self._at(tuple(generator.integers(self._sizes).tolist()))

    def neighbours(
        self, recipe: Recipe, generator: np.random.Generator, doubles: int = 150
    ) -> list[Recipe]:
        """All recipes with one other block, and some with two.

        A slot that has no effect before the change, and has one after it, gets a random block.
        """
        numbers, others = self._moves(recipe)
        drawn = generator.integers(self._sizes, size=(len(numbers) + doubles, len(self._sizes)))
        beside = drawn[: len(numbers)].copy()
        beside[np.arange(len(numbers)), numbers] = others
        own, idle = self.places([recipe]), self._idle([recipe])
        found = dict.fromkeys(self._moved(own, idle, numbers, beside))
        single = list(found)
        if single:
            firsts = generator.integers(len(single), size=doubles)
            numbers = generator.integers(len(self._sizes), size=doubles)
            own, idle = self.places(single)[firsts], self._idle(single)[firsts]
            found |= dict.fromkeys(self._moved(own, idle, numbers, drawn[len(beside) :]))
        found.pop(recipe, None)
        return list(found)

    def crossings(
        self, one: Recipe, other: Recipe, generator: np.random.Generator, count: int = 100
    ) -> list[Recipe]:
        """Recipes with some blocks of the one and the rest of the other.

        A block without effect in a parent is not taken from it.
        """
        (mine, theirs) = self.places([one, other])
        active = [[recipe.has(slot) for slot in self.slots] for recipe in (one, other)]
        taken = generator.random((count, len(mine))) < 0.5
        taken &= active[1]
        taken |= ~np.array(active[0])
        found = dict.fromkeys(map(self._at, _rows(np.where(taken, theirs, mine))))
        return [made for made in found if made not in (one, other)]

    def wide(
        self, recipe: Recipe, generator: np.random.Generator, count: int = 300
    ) -> list[Recipe]:
        """Recipes with new random blocks in a quarter of the slots.

        Slots without effect get random blocks too, in case they have one then.
        """
        anew = generator.random((count, len(self._sizes))) < 1 / 4
        anew[:, recipe.facts.idle] = True
        drawn = generator.integers(self._sizes, size=anew.shape)
        made = np.where(anew, drawn, self.places([recipe]))
        found = dict.fromkeys(map(self._at, _rows(made)))
        found.pop(recipe, None)
        return list(found)

    def _moves(self, recipe: Recipe) -> tuple[Indices, Indices]:
        """The slots and places of blocks that change a recipe."""
        facts = recipe.facts
        if facts.moves is None:
            own = facts.places
            changing = [
                (number, place)
                for number, size in enumerate(self._sizes.tolist())
                for place in range(size)
                if self._at((*own[:number], place, *own[number + 1 :])) != recipe
            ]
            listed = np.array(changing, dtype=np.int64).reshape(len(changing), 2)
            facts.moves = (listed[:, 0], listed[:, 1])
        return facts.moves

    def _moved(
        self, places: Indices, idle: Bools, numbers: Indices, drawn: Indices
    ) -> Iterator[Recipe]:
        """Recipes with a drawn block in one slot each, and in the slots that had no effect."""
        moved = np.where(idle, drawn, places)
        changed = np.arange(len(numbers))
        moved[changed, numbers] = drawn[changed, numbers]
        return map(self._at, _rows(moved))

    def _idle(self, recipes: Sequence[Recipe]) -> Bools:
        """Which slots of recipes have no effect: a row each."""
        return np.array([recipe.facts.idle for recipe in recipes], dtype=np.bool_)


def _rows(places: Indices) -> Iterator[Places]:
    return map(tuple, places.tolist())
