"""Shingles: runs of letters by which a text is recognised."""

from collections.abc import Container, Iterator

Found = tuple[str, int]
"""A task, and the line in which it was found."""

LENGTH = 16
"""Letters of a shingle."""
ENOUGH = 8
"""Shingles that make a quotation."""
LONG = LENGTH + ENOUGH - 1
"""Letters in a row that have so many shingles."""
SHARED = 2
"""Texts that may have a shingle in common; what more of them have is boilerplate."""


def shingles(text: str) -> Iterator[str]:
    """The runs of `LENGTH` letters in a squeezed text."""
    return (text[start : start + LENGTH] for start in range(len(text) - LENGTH + 1))


def probes(text: str, index: Container[str]) -> list[tuple[int, str]]:
    """Some of the shingles that an index knows, with where they are.

    Every `ENOUGH`-th shingle is looked up, which meets every quotation of `LONG` letters once.

    >>> probes("a" * LENGTH + "b" * LENGTH, {"b" * LENGTH})
    [(16, 'bbbbbbbbbbbbbbbb')]
    """
    starts = range(0, len(text) - LENGTH + 1, ENOUGH)
    return [(at, text[at : at + LENGTH]) for at in starts if text[at : at + LENGTH] in index]
