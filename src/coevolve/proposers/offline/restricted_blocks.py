"""Some of the blocks of other building blocks: a smaller space of recipes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from coevolve.errors import InputError, nearest
from coevolve.proposers.offline.building_blocks import BuildingBlocks, Finding, Recipe
from coevolve.search.candidate import Files
from coevolve.search.proposal import Standing, View


class RestrictedBlocks(BuildingBlocks):
    """Building blocks with fewer blocks in some slots.

    Every move, crossing and draw of the offline proposer stays within them, because it takes its
    blocks from `slots`. A seed with a block that is left out is left out too.

    Args:
        whole: The building blocks to take from.
        kept: The blocks to keep in each slot, in their order; a slot that is not named keeps all.

    Raises:
        InputError: A slot or block is unknown, a slot keeps nothing, or no seed is left.
    """

    def __init__(self, whole: BuildingBlocks, kept: Mapping[str, Sequence[str]]) -> None:
        slots = {slot: tuple(blocks) for slot, blocks in whole.slots.items()}
        for slot, blocks in kept.items():
            if slot not in slots:
                raise InputError(f"there is no slot {slot!r}.{nearest(slot, slots)}")
            for block in blocks:
                if block not in slots[slot]:
                    known = nearest(block, slots[slot])
                    raise InputError(f"slot {slot!r} has no block {block!r}.{known}")
            if not blocks:
                raise InputError(f"slot {slot!r} must keep at least one block.")
            slots[slot] = tuple(blocks)
        self._whole, self._slots = whole, slots
        self._seeds = {
            text: seed
            for text, seed in whole.seeds.items()
            if all(block in slots[slot] for slot, block in whole.settle(seed).items())
        }
        if not self._seeds:
            raise InputError("every seed has a block that is left out; keep the blocks of one.")

    @property
    def slots(self) -> Mapping[str, Sequence[str]]:
        return self._slots

    @property
    def seeds(self) -> Mapping[str, Mapping[str, str]]:
        return self._seeds

    def render(self, recipe: Recipe, hypothesis: str) -> Files:
        return self._whole.render(recipe, hypothesis)

    def name(self, recipe: Recipe) -> str:
        return self._whole.name(recipe)

    def settle(self, blocks: Mapping[str, str]) -> Mapping[str, str]:
        settled = self._whole.settle(blocks)
        for slot, block in settled.items():
            if block not in self._slots[slot]:
                raise InputError(
                    f"{dict(blocks)} need the block {block!r} in slot {slot!r}, which is left out."
                )
        return settled

    def cost(self, recipe: Recipe) -> float:
        return self._whole.cost(recipe)

    def prior(self, components: Collection[str]) -> float:
        return self._whole.prior(components)

    def findings(
        self, view: View, standing: Standing, recipes: Mapping[str, Recipe]
    ) -> Sequence[Finding]:
        """The findings whose remedies are among the blocks."""
        found = []
        for finding in self._whole.findings(view, standing, recipes):
            remedies = {
                (slot, block): why
                for (slot, block), why in finding.remedies.items()
                if block in self._slots[slot]
            }
            if remedies:
                found.append(replace(finding, remedies=remedies))
        return tuple(found)
