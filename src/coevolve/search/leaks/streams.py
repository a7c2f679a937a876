"""Texts as they are compared: their letters and digits in a row."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from string import ascii_lowercase, ascii_uppercase, digits
from unicodedata import normalize

from coevolve.search.leaks.literals import Part

_NOT_WORDS = re.compile(r"[\W_]+")
_MARKS = re.compile(r"[^\w\x00-\x7f]{30}")
"""More marks in a row than a letter has; to sort them takes the square of their number."""
_HUGE = re.compile("[\u3300-\u3357\ufdfa\ufdfb]")
"""Signs that stand for whole words and phrases, and would grow to these."""
_KEPT = (ascii_lowercase + ascii_uppercase + digits).encode()
_DROPPED = bytes(set(range(128)) - set(_KEPT))
_FOLDED = bytes.maketrans(ascii_uppercase.encode(), ascii_lowercase.encode())


def squeezed(text: str) -> str:
    r"""The letters and digits of a text alone, without regard to case and width.

    What is left is the same for a text in one piece and for one that is broken into lines or
    strings, in whatever quotes.

    >>> squeezed("I've been\n  Ｄizzy, a lot!")
    'ivebeendizzyalot'
    """
    if text.isascii():
        return text.encode().translate(_FOLDED, _DROPPED).decode()
    calm = _MARKS.sub(r"\g<0> ", _HUGE.sub("", text))
    return _NOT_WORDS.sub("", normalize("NFKC", calm).casefold())


def weight(text: str) -> int:
    """How much a squeezed text says: a sign of a script like Chinese counts for two letters.

    >>> weight("dizzy"), weight("头晕")
    (5, 4)
    """
    return len(text) if text.isascii() else len(text) + sum(sign >= "\u2e80" for sign in text)


class Stream:
    """Parts of a file in a row, squeezed into one text; `plain` are they, squeezed one by one."""

    def __init__(
        self, parts: Sequence[Part], plain: Sequence[str], *, backwards: bool = False
    ) -> None:
        self._parts = parts
        self._step = -1 if backwards else 1
        self.text = "".join(text[:: self._step] for text in plain)

    def line(self, position: int) -> int:
        """The line of what stands at a position."""
        starts, lines = self._places
        return lines[bisect_right(starts, position) - 1]

    @cached_property
    def _places(self) -> tuple[list[int], list[int]]:
        """Where each line begins in the text; the lines of a long part count one by one."""
        lengths, lines = [0], []
        for part in self._parts:
            here = enumerate(part.text.split("\n"), start=part.line)
            for number, line in list(here)[:: self._step]:
                lengths.append(len(squeezed(line)))
                lines.append(number)
        return list(accumulate(lengths))[:-1], lines
