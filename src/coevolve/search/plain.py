"""Text that may be recorded and shown, from whoever wrote it."""

import unicodedata


def plain(text: str, most: int) -> str:
    r"""A text without what a terminal would obey or UTF-8 cannot hold, cut to a length.

    >>> plain("red\x1b[31m \ud800 two\r\nlines", 40)
    'red�[31m � two\nlines'
    >>> plain("a long story", 8)
    'a lon...'
    """
    kept = "".join(map(_shown, text[: 2 * most].replace("\r\n", "\n")))
    return kept if len(kept) <= most else f"{kept[: most - 3]}..."


def _shown(character: str) -> str:
    if character.isprintable() or character in "\n\t":
        return character
    if character.isspace():
        return " "
    return "" if unicodedata.category(character) == "Cf" else "\ufffd"
