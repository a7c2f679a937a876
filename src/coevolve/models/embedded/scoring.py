"""Log-probabilities of choices after a prompt.

The log-probability of a choice is the sum, over its tokens, of the log-probability that the model
gives to the token after the prompt and the tokens before it. Choices that begin alike share what
is computed for their beginning.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from coevolve.models.embedded.choices import Node

MANY = 100
"""Likely tokens to be told of where several may follow."""


class Tells(Protocol):
    """Tells how likely tokens are after a text."""

    async def likely(
        self, path: Sequence[int], forced: int, count: int
    ) -> Mapping[int, float] | None:
        """Log-probabilities of a token and of the `count` likeliest.

        None if the token is no whole character, for then the model's server keeps silent.
        """
        ...

    async def against(
        self, path: Sequence[int], forced: int, tokens: Collection[int]
    ) -> Mapping[int, float]:
        """How much the log-probability of each token is above that of another one."""
        ...


class Scorer:
    """Scores trees of choices.

    Args:
        whole: A token that is a whole character.
    """

    def __init__(self, whole: int) -> None:
        self._whole = whole
        self._partial: set[int] = set()

    async def score(self, root: Node, prompt: Sequence[int], model: Tells) -> dict[str, float]:
        """The log-probability of every choice."""
        scores: dict[str, float] = {}
        waiting = [(root, list(prompt), 0.0)]
        while waiting:  # depth first, so that the model goes on from where it is
            node, path, so_far = waiting.pop()
            if node.choice is not None:
                scores[node.choice] = so_far
            if node.after:
                likely = await self._likely(list(node.after), path, model)
                for token, below in node.after.items():
                    waiting.append((below, [*path, token], so_far + likely[token]))
        return scores

    async def _likely(
        self, tokens: list[int], path: list[int], model: Tells
    ) -> Mapping[int, float]:
        forced = next((token for token in tokens if token not in self._partial), self._whole)
        told = await model.likely(path, forced, 1 if tokens == [forced] else MANY)
        if told is None:
            self._partial.add(forced)
            return await self._likely(tokens, path, model)
        missing = [token for token in tokens if token not in told]
        if not missing:
            return told
        above = await model.against(path, forced, missing)
        return {**told, **{token: told[forced] + above[token] for token in missing}}
