"""Trees of tokens: prompts with a common beginning and the labels after them, in packs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from coevolve.models.embedded.scoring import common

NONE = -1
"""The parent of a node that begins a tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelTree:
    """The labels of a set as a tree of tokens, and which log-probabilities it needs.

    Args:
        steps: The tokens of the inner nodes, each with the number of its parent in this list, or
            `NONE` for the prompt.
        wanted: Pairs of an inner node, or `NONE` for the prompt, and a token after it.
    """

    steps: tuple[tuple[int, int], ...]
    wanted: tuple[tuple[int, int], ...]


def label_tree(labels: Iterable[Sequence[int]], ends: Sequence[int]) -> LabelTree:
    """The tree of some labels; where one begins another, the ends of an answer are wanted too.

    >>> label_tree([(1, 2), (1, 3), (4,)], ends=(9,))
    LabelTree(steps=((1, -1),), wanted=((-1, 1), (-1, 4), (0, 2), (0, 3)))
    """
    after: dict[tuple[int, ...], dict[int, None]] = {}
    whole = [tuple(label) for label in labels]
    for label in whole:
        for length, token in enumerate(label):
            after.setdefault(label[:length], {}).setdefault(token)
    for label in whole:
        if label in after:
            after[label].update(dict.fromkeys(ends))
    inner = {path: number for number, path in enumerate(path for path in after if path)}
    return LabelTree(
        steps=tuple((path[-1], inner.get(path[:-1], NONE)) for path in inner),
        wanted=tuple(
            (inner.get(path, NONE), token)
            for path in sorted(after, key=lambda p: inner.get(p, NONE))
            for token in after[path]
        ),
    )


@dataclass(slots=True)
class Pack:
    """Nodes in a row: their tokens and parents, and what is wanted after which of them."""

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    wanted: list[tuple[int, int]] = field(default_factory=list)
    prompts: list[int] = field(default_factory=list)

    def grow(self, path: Sequence[int], parent: int) -> int:
        """Add nodes in a row below a parent; returns the last one."""
        for token in path:
            self.tokens.append(token)
            self.parents.append(parent)
            parent = len(self.tokens) - 1
        return parent

    def label(self, tree: LabelTree, prompt: int, number: int) -> None:
        """Add the labels after the node that ends a prompt."""
        start = len(self.tokens)
        for token, parent in tree.steps:
            self.tokens.append(token)
            self.parents.append(prompt if parent == NONE else start + parent)
        self.wanted += [(prompt if n == NONE else start + n, token) for n, token in tree.wanted]
        self.prompts.append(number)


def packs(
    prompts: Sequence[Sequence[int]], trees: Sequence[LabelTree], room: int
) -> Iterator[Pack]:
    """Packs of about `room` nodes with all prompts; neighbours share their common beginnings.

    Args:
        prompts: The tokens of each prompt, at least one.
        trees: The labels after each prompt.
        room: Nodes of a pack; a prompt that needs more gets a pack of its own.
    """
    order = sorted(range(len(prompts)), key=lambda number: tuple(prompts[number]))
    pack, path = Pack(), list[int]()  # nodes of the last prompt
    last: Sequence[int] = ()
    for number in order:
        prompt, tree = prompts[number], trees[number]
        shared = min(common(last, prompt), len(path))
        if pack.tokens and len(pack.tokens) + len(prompt) - shared + len(tree.steps) > room:
            yield pack
            pack, path, shared = Pack(), [], 0
        start = len(pack.tokens)
        end = pack.grow(prompt[shared:], path[shared - 1] if shared else NONE)
        path = [*path[:shared], *range(start, len(pack.tokens))]
        pack.label(tree, end if len(prompt) > shared else path[-1], number)
        last = prompt
    if pack.tokens:
        yield pack
