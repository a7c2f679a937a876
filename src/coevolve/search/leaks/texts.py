"""Texts in a candidate's files, however they are written down there."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from unicodedata import normalize

from coevolve.search.leaks.literals import Part, literals
from coevolve.search.leaks.packing import Room, decoded, text_of, unpacked

LONGEST = 2_000_000
"""Characters of a text that is read part by part; a longer one is read as a whole alone."""

_NOT_WORDS = re.compile(r"[\W_]+")
_BETWEEN_FIELDS = re.compile(r"[\t,;|]")


def squeezed(text: str) -> str:
    r"""The letters and digits of a text alone, without regard to case and width.

    What is left is the same for a text in one piece and for one that is broken into lines or
    strings, in whatever quotes.

    >>> squeezed("I've been\n  Ｄizzy, a lot!")
    'ivebeendizzyalot'
    """
    plain = text if text.isascii() else normalize("NFKC", text)
    return _NOT_WORDS.sub("", plain.casefold())


def weight(text: str) -> int:
    """How much a squeezed text says: a sign of a script like Chinese counts for two letters.

    >>> weight("dizzy"), weight("头晕")
    (5, 4)
    """
    return len(text) if text.isascii() else len(text) + sum(sign >= "\u2e80" for sign in text)


class Stream:
    """Parts of a file in a row, squeezed into one text."""

    def __init__(self, parts: Sequence[Part], *, backwards: bool = False) -> None:
        self._parts = parts
        self._step = -1 if backwards else 1
        self.text = "".join(squeezed(part.text)[:: self._step] for part in parts)

    def line(self, position: int) -> int:
        """The line of what stands at a position."""
        starts, lines = self._places
        return lines[bisect_right(starts, position) - 1]

    @cached_property
    def _places(self) -> tuple[list[int], list[int]]:
        """Where each line begins in the text; the lines of a long part count one by one."""
        lengths, lines = [0], []
        for part in self._parts:
            for number, line in enumerate(part.text.split("\n")[:: self._step]):
                lengths.append(len(squeezed(line)))
                lines.append(part.line + number)
        return list(accumulate(lengths))[:-1], lines


@dataclass(frozen=True, kw_only=True)
class Texts:
    """A file as the scan reads it.

    Args:
        raw: Its text.
        streams: Its text, its literals and what is encoded in them.
        units: Texts that stand alone: literals, and in data also lines and fields. Those of a
            very long file are left out.
    """

    raw: str
    streams: tuple[Stream, ...]
    units: tuple[Part, ...]

    @cached_property
    def squeezed_units(self) -> tuple[Part, ...]:
        """The units, squeezed, without those of which nothing is left."""
        found = (Part(unit.line, squeezed(unit.text)) for unit in self.units)
        return tuple(unit for unit in found if unit.text)


def texts_of(path: str, data: bytes, room: Room | None = None) -> Texts:
    """The texts in a file, those in archives and encoded literals included.

    `room` is what may be unpacked, of this file and of others that share it.
    """
    room = Room() if room is None else room
    raw = text_of(data)
    found = [_read(Part(1, raw), python=path.endswith(".py"))]
    found += [_read(Part(1, text_of(inner))) for inner in unpacked(data, room)]
    coded = [*found[0].units, Part(1, raw)]
    found += [_read(Part(part.line, text)) for part in coded for text in decoded(part.text, room)]
    return Texts(
        raw=raw,
        streams=tuple(stream for texts in found for stream in texts.streams),
        units=tuple(unit for texts in found for unit in texts.units),
    )


def _read(whole: Part, *, python: bool = False) -> Texts:
    first, raw = whole
    streams = [Stream([whole])]
    if len(raw) > LONGEST:
        # Without escapes and code between them, literals say what the whole says.
        if python or "\\" in raw:
            streams.append(Stream([Part(first, "".join(p.text for p in literals(raw)))]))
        return Texts(raw=raw, streams=tuple(streams), units=())
    quoted = [Part(part.line + first - 1, part.text) for part in literals(raw, python=python)]
    streams += [Stream(quoted), Stream(quoted, backwards=True)]
    units = quoted if python else [*quoted, *_fields(whole)]
    return Texts(raw=raw, streams=tuple(streams), units=tuple(units))


def _fields(whole: Part) -> Iterator[Part]:
    """The lines of a text, and what stands between the commas or tabs of each."""
    for number, line in enumerate(whole.text.split("\n"), start=whole.line):
        yield Part(number, line)
        if len(fields := _BETWEEN_FIELDS.split(line)) > 1:
            yield from (Part(number, field) for field in fields)
