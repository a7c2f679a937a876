"""Texts made shorter in sight of the reader: what is left out is counted where it was."""

BYTES = 3
"""Of a token, roughly: fewer than code and English have, and a whole character of Chinese."""


def tokens(text: str) -> int:
    """About how many tokens a text has, rather too many than too few.

    A model's own count takes seconds or a connection, and need not be had.

    >>> tokens("def answer(question):")
    7
    """
    return -(-size(text) // BYTES)


def size(text: str) -> int:
    """The bytes of a text, by which it is clipped."""
    return len(text.encode(errors="replace"))


def clip(text: str, most: int) -> str:
    """A text of that many bytes at most: of a longer one its two ends.

    >>> clip("x" * 5_000, 40)
    'xxxxxxx … 4,986 characters … xxxxxxx'
    """
    if size(text) <= most:
        return text
    room = most - size(_gap(len(text)))
    if room < 2:
        return clip_end(text, most)
    start, end = _first(text, room - room // 2), _last(text, room // 2)
    return f"{start}{_gap(len(text) - len(start) - len(end))}{end}"


def clip_end(text: str, most: int) -> str:
    """The beginning of a text, with a mark if that is not all of it.

    >>> clip_end("because the nearest example belongs last", 14)
    'because the…'
    """
    if size(text) <= most:
        return text
    return f"{_first(text, most - size('…')).rstrip()}…" if most >= size("…") else ""


def line(text: str, most: int) -> str:
    r"""A text on one line, clipped at its end.

    >>> line(" two\n lines ", 80)
    'two lines'
    """
    return clip_end(" ".join(text.split()), most)


def _gap(characters: int) -> str:
    return f" … {characters:,} characters … "


def _first(text: str, most: int) -> str:
    return text.encode(errors="replace")[: max(most, 0)].decode(errors="ignore")


def _last(text: str, most: int) -> str:
    data = text.encode(errors="replace")
    return data[len(data) - max(most, 0) :].decode(errors="ignore")
