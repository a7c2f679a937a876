"""A proposer that needs no model."""

from coevolve.errors import InputError
from coevolve.proposers.base import Proposal, Proposed, View, in_thread
from coevolve.proposers.offline.policy import Idea, drawn, ideas
from coevolve.proposers.offline.source import harness_source, name_of


class OfflineProposer:
    """Evolves harnesses for text classification out of building blocks, without a model.

    It begins with a few recipes as different as can be. From then on it refines good candidates,
    crosses those that fail different tasks, and tries what nobody has tried. What blocks are worth
    it learns from the estimates; what to change, from the traces of failures. Nothing is proposed
    twice. All follows from the view: the recipe of a candidate is read in its components.

    Args:
        characters: How many characters of examples the prompts may have.
        independent: Draws every candidate by chance instead, whatever was evaluated: the control
            that tells what the search gains.

    >>> import asyncio
    >>> view = View(round=1, seed=0, tasks=(), standings=(), best=None, parent="", read=bytes,
    ...     trace=lambda candidate, task: None)
    >>> made = asyncio.run(OfflineProposer().propose(view, 2)).proposals
    >>> [sorted(proposal.files) for proposal in made]
    [['harness.py'], ['harness.py']]
    """

    def __init__(self, *, characters: int = 4000, independent: bool = False) -> None:
        if characters < 1000:
            raise InputError(f"characters must be 1,000 at least, got {characters}.")
        self._characters, self._ideas = characters, drawn if independent else ideas

    async def propose(self, view: View, count: int) -> Proposed:
        """Up to `count` new harnesses."""
        found = await in_thread(self._ideas, view, count)
        return Proposed(proposals=tuple(self._proposal(idea) for idea in found))

    def _proposal(self, idea: Idea) -> Proposal:
        source = harness_source(
            idea.recipe, hypothesis=idea.hypothesis, characters=self._characters
        )
        return Proposal(
            files={"harness.py": source.encode()},
            name=name_of(idea.recipe),
            parents=idea.parents,
            hypothesis=idea.hypothesis,
            kind=idea.kind,
            components=idea.recipe.components,
        )
