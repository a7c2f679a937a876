"""Texts in a candidate's files, however they are written down there."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import PurePosixPath

from coevolve.search.leaks.archives import unpacked
from coevolve.search.leaks.literals import Part, literals
from coevolve.search.leaks.packing import decoded, text_of
from coevolve.search.leaks.streams import Stream, squeezed
from coevolve.search.leaks.work import Work

_LINE = re.compile(r"[^\n]{5,}+")
_FIELD = re.compile(r"[^\n\t,;|]{5,}+")
"""What stands between the commas or tabs of a line; nothing is told by less than five signs."""


@dataclass(frozen=True, kw_only=True)
class Texts:
    """A file as the scan reads it.

    Args:
        raw: Its text.
        streams: Its text, its literals and what is encoded in them.
        units: Texts that stand alone: literals, and in data also lines and fields.
        squeezed_units: The same, squeezed, without those of which nothing is left.
    """

    raw: str
    streams: tuple[Stream, ...]
    units: tuple[Part, ...]
    squeezed_units: tuple[Part, ...]


def texts_of(path: str, data: bytes, work: Work | None = None) -> Texts:
    """The texts in a file, those in archives and encoded literals included.

    `work` is what reading may cost, of this file and of others that share it.
    """
    work = Work() if work is None else work
    first = _read(Part(1, text_of(data)), work, python=path.endswith(".py"))
    packed = (Part(1, text_of(inner)) for inner in unpacked(data, work))
    return _together(first, packed, work)


def names_of(path: str, work: Work | None = None) -> Texts:
    """The texts in the name of a file: all of it, and those of its folders, with line 0.

    >>> [unit.text for unit in names_of("known/trip-001.json").units]
    ['known/trip-001.json', 'known', 'trip-001.json', 'trip-001']
    """
    work = Work() if work is None else work
    steps = PurePosixPath(path).parts
    names = [path, *steps, *(step.partition(".")[0] for step in steps)]
    units = list(_paid((Part(0, name) for name in dict.fromkeys(names)), work))
    return _together(_texts(Part(0, work.text(path)), [], units), iter(()), work)


def _together(first: Texts, others: Iterator[Part], work: Work) -> Texts:
    """A text and others, with what is encoded in the first."""
    found = [first, *(_read(other, work) for other in others)]
    for part in (*first.units, Part(1, first.raw)):
        found += [_read(Part(part.line, text), work) for text in decoded(part.text, work)]
    return Texts(
        raw=first.raw,
        streams=tuple(stream for texts in found for stream in texts.streams),
        units=tuple(unit for texts in found for unit in texts.units),
        squeezed_units=tuple(unit for texts in found for unit in texts.squeezed_units),
    )


def _read(whole: Part, work: Work, *, python: bool = False) -> Texts:
    whole = Part(whole.line, work.text(whole.text))
    found = literals(whole.text, work, python=python)
    quoted = [Part(p.line + whole.line - 1, p.text) for p in _paid(found, work)]
    return _texts(whole, quoted, [] if python else list(_paid(_fields(whole), work)))


def _paid(parts: Iterator[Part], work: Work) -> Iterator[Part]:
    return takewhile(lambda part: work.piece(part.text), parts)


def _texts(whole: Part, quoted: list[Part], others: list[Part]) -> Texts:
    units = (*quoted, *others)
    plain = [squeezed(unit.text) for unit in units]
    said = plain[: len(quoted)]
    streams = (
        Stream([whole], [squeezed(whole.text)]),
        Stream(quoted, said),
        Stream(quoted, said, backwards=True),
    )
    return Texts(
        raw=whole.text,
        streams=tuple(stream for stream in streams if stream.text),
        units=units,
        squeezed_units=tuple(
            Part(unit.line, text) for unit, text in zip(units, plain, strict=True) if text
        ),
    )


def _fields(whole: Part) -> Iterator[Part]:
    """The lines of a text, and what stands between the commas or tabs of each."""
    text, number, read = whole.text, whole.line, 0
    for line in _LINE.finditer(text):
        number += text.count("\n", read, line.start())
        read = line.start()
        yield Part(number, line[0])
        for field in _FIELD.finditer(text, *line.span()):
            if field.span() != line.span():
                yield Part(number, field[0])
