"""Choices as sequences of tokens: which may follow which, and as a grammar."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Node:
    """A place in the tree of choices; `choice` ends here, if one does."""

    choice: str | None = None
    after: dict[int, "Node"] = field(default_factory=dict)

    def chain(self) -> tuple[list[int], "Node"]:
        """The tokens that must follow, and where several may follow or a choice can end."""
        tokens: list[int] = []
        node = self
        while len(node.after) == 1 and (node is self or node.choice is None):
            ((token, node),) = node.after.items()
            tokens.append(token)
        return tokens, node


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


def grammar(root: Node, end: int) -> str:
    """A grammar, in llama.cpp's notation, of exactly these sequences of tokens.

    Where a choice is the beginning of another one, the token `end` can follow it as well, for
    the model to say that the choice ends there.

    >>> print(grammar(tree({"a": [1], "ab": [1, 2], "cde": [3, 4, 5]}), end=9))
    root ::= <[1]> rule-1 | <[3]> <[4]> <[5]>
    rule-1 ::= <[2]> | <[9]>
    """
    rules, waiting = [], [("root", root)]
    for name, node in waiting:  # grows meanwhile
        ways = []
        for token, below in node.after.items():
            more, last = ([], below) if below.choice is not None else below.chain()
            way = [f"<[{number}]>" for number in (token, *more)]
            if last.after:
                way.append(f"rule-{len(waiting)}")
                waiting.append((way[-1], last))
            ways.append(" ".join(way))
        if node.choice is not None:
            ways.append(f"<[{end}]>")
        rules.append(f"{name} ::= {' | '.join(ways)}")
    return "\n".join(rules)


def walk(root: Node, tokens: Sequence[int]) -> str | None:
    """The choice that the model's tokens spell; None if they spell none."""
    node = root
    for token in tokens:
        if token not in node.after:
            break
        node = node.after[token]
    return node.choice
