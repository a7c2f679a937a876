"""Room shared out among texts that can be written shorter."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from coevolve.proposers.llm.clipping import size

_BETWEEN = 2
"""Bytes of the empty line between two texts."""


class Part(NamedTuple):
    """A text to be: its own share of the room, and who writes it in so many bytes at most."""

    share: float
    write: Callable[[int], str]


def fitted(parts: Sequence[Part], room: int) -> list[str]:
    """The texts, each as long as it likes if all fit, with an empty line between any two.

    Otherwise each has its share, and what one does not need goes to the others, in their order.

    >>> def word(letter):
    ...     return lambda most: letter * min(most, 20)
    >>> fitted([Part(0.5, word("a")), Part(0.3, word("b")), Part(0.2, lambda most: "c")], 36)
    ['aaaaaaaaaaaaaaaaaaaa', 'bbbbbbbbb', 'c']
    """
    whole = [part.write(room) for part in parts]
    wanted = [size(text) + _BETWEEN if text else 0 for text in whole]
    granted = [min(want, int(part.share * room)) for part, want in zip(parts, wanted, strict=True)]
    for place, want in enumerate(wanted):
        granted[place] += max(0, min(room - sum(granted), want - granted[place]))
    return [
        text if given >= want else part.write(max(0, given - _BETWEEN))
        for part, text, want, given in zip(parts, whole, wanted, granted, strict=True)
    ]
