"""Escapes in string literals."""

import re
from unicodedata import lookup

_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})"
    r"|N\{([^{}\\\n]{1,90})\}|(.))",
    re.DOTALL,
)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "", "f": "", "v": "", "a": "", "\n": ""}


def unescaped(text: str) -> str:
    r"""A text with its escapes undone, in the ways of Python and JSON.

    >>> unescaped(r"Gr\u00f6\xdfe \N{DIGIT TWO}\!")
    'Größe 2!'
    """
    return _ESCAPE.sub(_meant, text) if "\\" in text else text


def from_bytes(text: str) -> str:
    r"""The text whose bytes these are, one for each sign.

    >>> from_bytes("Gr\xc3\xb6\xc3\x9fe")
    'Größe'
    """
    return text if text.isascii() else text.encode("latin-1", "ignore").decode(errors="ignore")


def _meant(match: re.Match[str]) -> str:
    two, four, eight, octal, name, other = match.groups()
    if other is not None:
        return _CONTROLS.get(other, other)
    if name is not None:
        return _named(name)
    number = int(octal, 8) if octal is not None else int(two or four or eight, 16)
    return chr(number) if number <= 0x10FFFF else ""


def _named(name: str) -> str:
    try:
        return lookup(name)
    except KeyError:
        return name
