"""Choices as sequences of tokens, and how the model chooses among them.

The model is asked only where the choices part: it picks, among the tokens with which one of them
can go on, the one it finds likeliest (or draws one, at a temperature).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


class Picks(Protocol):
    """Has the model pick one of some tokens."""

    async def pick(
        self, path: Sequence[int], allowed: Sequence[int], *, temperature: float, seed: int
    ) -> int:
        """The token it would write after a text, of those that are allowed."""
        ...


@dataclass(slots=True)
class Node:
    """A place in the tree of choices; `choice` ends here, if one does."""

    choice: str | None = None
    after: dict[int, "Node"] = field(default_factory=dict)


def tree(tokens: Mapping[str, Sequence[int]]) -> Node:
    """The choices by their tokens; where two have the same tokens, the first counts."""
    root = Node()
    for choice, sequence in tokens.items():
        node = root
        for token in sequence:
            node = node.after.setdefault(token, Node())
        if node.choice is None:
            node.choice = choice
    return root


def follows(prompt: str, choice: str) -> str:
    r"""A choice as it stands after a prompt, with a space before it where one is due.

    >>> follows("Answer:", "yes"), follows("Answer:\n", "yes"), follows("Answer:", " yes")
    (' yes', 'yes', ' yes')
    """
    return choice if prompt[-1:].isspace() or choice[:1].isspace() else f" {choice}"


async def choose(
    root: Node,
    prompt: Sequence[int],
    model: Picks,
    *,
    ends: Sequence[int],
    temperature: float,
    seed: int,
) -> tuple[str, int]:
    """The model's choice, and how many tokens it has.

    Where a choice is the beginning of another one, the model ends it with one of `ends`.
    """
    node, path = root, list(prompt)
    while node.after:
        closing = [end for end in ends if end not in node.after and node.choice is not None]
        allowed = [*node.after, *closing]
        token = allowed[0]
        if len(allowed) > 1:
            # Each draw has a generator of its own, for two alike would draw alike.
            own = seed * 1_000 + len(path) - len(prompt)
            token = await model.pick(path, allowed, temperature=temperature, seed=own)
        if token not in node.after:
            break
        node = node.after[token]
        path.append(token)
    assert node.choice is not None
    return node.choice, len(path) - len(prompt)
