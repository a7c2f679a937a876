"""Log-probabilities of choices after a prompt.

The log-probability of a choice is the sum, over its tokens, of the log-probability that the model
gives to the token after the prompt and the tokens before it. Choices that begin alike share what
is computed for their beginning.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from coevolve.models.embedded.choices import Node

MANY = 1_000
"""Most likely tokens to be told where several may follow; rarer ones are asked for singly."""


class Ask(Protocol):
    """Has the model write tokens, and tell how likely they were."""

    async def __call__(
        self, prompt: Sequence[int], tokens: Sequence[int], /, *, likely: int
    ) -> Sequence[Mapping[str, Any]]:
        """For each token its `logprob`, and the `top_logprobs` of the likely ones in its place."""
        ...


async def score(root: Node, prompt: Sequence[int], ask: Ask) -> dict[str, float]:
    """The log-probability of every choice of a tree."""
    scores: dict[str, float] = {}
    waiting = [(root, list(prompt), 0.0)]
    while waiting:
        node, path, so_far = waiting.pop()
        if node.choice is not None:
            scores[node.choice] = so_far
        if len(node.after) == 1:
            tokens, node = node.chain()
            told = await ask(path, tokens, likely=1)
            so_far += sum(entry["logprob"] for entry in told)
            waiting.append((node, [*path, *tokens], so_far))
            continue
        likely = await _likely(node, path, ask) if node.after else {}
        for token, below in node.after.items():
            waiting.append((below, [*path, token], so_far + likely[token]))
    return scores


async def _likely(node: Node, path: list[int], ask: Ask) -> dict[int, float]:
    """Log-probabilities of the tokens that may follow."""
    first = next(iter(node.after))
    (told,) = await ask(path, [first], likely=MANY)
    found = {entry["id"]: entry["logprob"] for entry in told["top_logprobs"]}
    found[first] = told["logprob"]
    for token in node.after.keys() - found.keys():
        (alone,) = await ask(path, [token], likely=1)
        found[token] = alone["logprob"]
    return found
