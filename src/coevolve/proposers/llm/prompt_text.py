"""Texts of a prompt, shortened to a number of bytes."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

BYTES = 3
"""Bytes of a token, roughly: fewer than in code and English, and one character of Chinese."""


def tokens(text: str) -> int:
    """An estimate of the tokens of a text, rather too high; it needs no model.

    >>> tokens("def answer(question):")
    7
    """
    return -(-size(text) // BYTES)


def size(text: str) -> int:
    """The number of bytes of a text."""
    return len(text.encode(errors="replace"))


def clip(text: str, most: int) -> str:
    """A text of at most `most` bytes; of a longer one both ends.

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
    """A text of at most `most` bytes; of a longer one the beginning, with a mark.

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


_BETWEEN = 2
"""Bytes of the empty line between two texts."""


class Part(NamedTuple):
    """A part of a prompt: its share of the bytes, and a function that writes it."""

    share: float
    write: Callable[[int], str]


def fitted(parts: Sequence[Part], room: int) -> list[str]:
    """The texts of some parts, of at most `room` bytes with an empty line between any two.

    If not all fit, each gets its share. What one does not need goes to the others, in order.

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


_LENGTHS = (4_000, 2_000, 1_000, 500, 250, 120, 60)
_MOST_ITEMS = 40


def shortened(trace: str | None, most: int) -> str:
    """A trace as lines of at most `most` bytes.

    >>> print(shortened('{"trace": {"question": "6 x 7?", "calls": [{"answer": "42"}]}}', 200))
    question: 6 x 7?
    calls:
      - answer: 42
    >>> shortened(None, 200)
    '(no trace)'
    """
    if trace is None:
        return clip("(no trace)", most)
    try:
        value = json.loads(trace)
    except (ValueError, RecursionError):
        return clip(trace, most)
    if isinstance(value, dict) and isinstance(value.get("trace"), dict):
        value = {**value.pop("trace"), **value}  # output and errors come last
    text = trace
    for longest in _LENGTHS:
        try:
            text = "\n".join(_lines(value, longest))
        except RecursionError:
            break
        if size(text) <= most:
            break
    return clip(text, most)


def _lines(value: Any, longest: int, indent: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _entry(f"{indent}{key}:", part, longest, indent)
    elif isinstance(value, list):
        for part in value[:_MOST_ITEMS]:
            inner = list(_lines(part, longest, f"{indent}  "))
            if inner:
                yield f"{indent}- {inner[0].removeprefix(f'{indent}  ')}"
                yield from inner[1:]
        if len(value) > _MOST_ITEMS:
            yield f"{indent}… {len(value) - _MOST_ITEMS:,} more …"
    else:
        yield f"{indent}{_scalar(value, longest)}"


def _entry(head: str, part: Any, longest: int, indent: str) -> Iterator[str]:
    if part is None or part in ("", [], {}):
        return
    if isinstance(part, dict | list):
        yield head
        yield from _lines(part, longest, f"{indent}  ")
        return
    text = _scalar(part, longest)
    if "\n" not in text:
        yield f"{head} {text}"
        return
    yield f"{head} |"
    yield from (f"{indent}  {line}" for line in text.split("\n"))


def _scalar(value: Any, longest: int) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clip(text.strip("\n"), longest)
