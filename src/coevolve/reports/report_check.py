"""The check of a report: its numbers again from the journal, its text again from them."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from coevolve.errors import InputError
from coevolve.reports.html_report import NUMBERS_ID, html_report
from coevolve.reports.markdown_report import NUMBERS_MARK, markdown_report
from coevolve.reports.run_document import FORMAT, RunDocument

_CLOSE = 1e-6
"""Relative difference of numbers that are equal: other machines round in another way."""
_TINY, _HUGE = 1e-9, 1e300
_NEAR = 0.05
"""Difference of coordinates in a picture that are equal."""
_HTML = re.compile(rf'<script type="application/json" id="{NUMBERS_ID}">(.*?)</script>', re.DOTALL)
_MARKDOWN = re.compile(rf"{re.escape(NUMBERS_MARK)}(.*?) -->", re.DOTALL)
_PARTS = re.compile(r'(?=<section id=")|(?=<figure id=")|(?=</figure>)|(?=^## )', re.MULTILINE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_WORDS = re.compile(r'>[^<]+<|data-[a-z-]+="[^"]*"')
"""What people read in a picture; it must be the same to the letter."""
_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""Errors of rendering numbers that somebody has changed."""
_MOST = 50
"""Findings that are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A number or a text of a report that is not what the journal says."""

    where: str
    reported: str
    recorded: str

    def __str__(self) -> str:
        return f"{self.where}: the report has {self.reported}, the journal {self.recorded}"


def embedded_numbers(report: str) -> dict[str, Any]:
    """The numbers in a report.

    Raises:
        InputError: It has none, or they cannot be read.
    """
    found = _HTML.search(report) or _MARKDOWN.search(report)
    if found is None:
        raise InputError(
            "the file has no numbers of a report; write it with `coevolve report` first."
        )
    try:
        numbers = json.loads(found[1])
    except (ValueError, RecursionError) as error:
        raise InputError(f"the numbers in the report are not JSON: {error}.") from error
    if not isinstance(numbers, dict) or numbers.get("format") != FORMAT:
        raise InputError(
            f"the report has another form than this version of coevolve writes ({FORMAT}); write "
            "it again."
        )
    return numbers


def events_of(report: str) -> int:
    """How many events a report was made from.

    Raises:
        InputError: It does not say so.
    """
    found = embedded_numbers(report).get("provenance")
    number = found.get("events") if isinstance(found, dict) else None
    if type(number) is not int or number < 1:
        raise InputError(f"the report does not say from how many events it was made: {number!r}.")
    return number


def check_report(report: str, again: RunDocument) -> list[Finding]:
    """What in a report is not what the journal says.

    The numbers in the report are compared with those made again. The visible text must be the one
    that follows from the numbers in the report, and the pictures those that were drawn again.

    Args:
        report: The HTML or Markdown of the report.
        again: The same document, made from the journal up to the same event.
    """
    numbers = embedded_numbers(report)
    found = list(_differences("", numbers, again.numbers))
    if numbers.get("version") != again.numbers["version"]:
        return found[:_MOST]  # another version words the text in another way
    try:
        expected = _rendered(report, numbers, again)
    except _UNREADABLE as error:
        gap = Finding(where="numbers", reported=f"another form ({error!r:.80})", recorded="ours")
        return [*found, gap][:_MOST]
    return [*found, *_visible(report, expected)][:_MOST]


def _rendered(report: str, numbers: Mapping[str, Any], again: RunDocument) -> str:
    """The report that follows from its own numbers, with pictures from the journal."""
    if _HTML.search(report):
        return html_report(numbers, {name: one.svg for name, one in again.figures.items()})
    pictures = dict(re.findall(r"^!\[.*\]\((.*?([a-z]+)\.svg)\)$", report, re.MULTILINE))
    return markdown_report(numbers, {name: path for path, name in pictures.items()})


def _differences(where: str, reported: Any, recorded: Any) -> Iterator[Finding]:
    """The values that differ, with their names."""
    if isinstance(reported, dict) and isinstance(recorded, dict):
        for key in dict.fromkeys((*recorded, *reported)):
            name = f"{where}.{key}" if where else str(key)
            if key not in reported or key not in recorded:
                yield _finding(name, reported.get(key), recorded.get(key))
            elif key == "rows" and "columns" in recorded:
                yield from _rows(name, reported, recorded)
            else:
                yield from _differences(name, reported[key], recorded[key])
    elif isinstance(reported, list) and isinstance(recorded, list):
        if len(reported) != len(recorded):
            yield _finding(f"number of {where}", len(reported), len(recorded))
        for at, (one, other) in enumerate(zip(reported, recorded, strict=False)):
            yield from _differences(f"{where}[{at}]", one, other)
    elif not _same(reported, recorded):
        yield _finding(where, reported, recorded)


def _rows(
    where: str, reported: Mapping[str, Any], recorded: Mapping[str, Any]
) -> Iterator[Finding]:
    """The cells of a table that differ, named by row and column."""
    mine, theirs, columns = reported["rows"], recorded["rows"], recorded["columns"]
    if not isinstance(mine, list) or not all(isinstance(row, list) for row in mine):
        yield _finding(where, mine, theirs)
        return
    if len(mine) != len(theirs):
        yield _finding(f"number of {where}", len(mine), len(theirs))
        return
    for one, other in zip(mine, theirs, strict=True):
        for column, value, right in zip(columns, one, other, strict=False):
            if not _same(value, right):
                yield _finding(f"{where}, row {other[0]}, {column}", value, right)
        if len(one) != len(other):
            yield _finding(f"{where}, row {other[0]}, cells", len(one), len(other))


def _finding(where: str, reported: Any, recorded: Any) -> Finding:
    return Finding(where=where, reported=_short(reported), recorded=_short(recorded))


def _short(value: Any) -> str:
    try:
        text = json.dumps(value)
    except RecursionError:
        text = "something deep"
    return text if len(text) <= 80 else f"{text[:77]}..."


def _same(reported: Any, recorded: Any) -> bool:
    """Whether two values are equal; measured ones up to rounding, counts exactly."""
    plain = type(reported) in (int, float) and type(recorded) is float
    if plain and abs(reported) < _HUGE:
        return math.isclose(reported, recorded, rel_tol=_CLOSE, abs_tol=_TINY)
    return type(reported) is type(recorded) and bool(reported == recorded)


def _visible(report: str, expected: str) -> Iterator[Finding]:
    """The parts of the visible document that are not as expected."""
    mine, theirs = _PARTS.split(report), _PARTS.split(expected)
    if len(mine) != len(theirs):
        yield Finding(
            where="visible text",
            reported=f"{len(mine)} sections and figures",
            recorded=f"{len(theirs)}",
        )
        return
    place = "the head of the document"
    for one, other in zip(mine, theirs, strict=True):
        place = _named(other) or place
        if one == other or _alike(one, other):
            continue
        at = next(
            (n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
            min(len(one), len(other)),
        )
        yield Finding(
            where=f"visible text of {place}",
            reported=repr(one[max(0, at - 20) : at + 40]),
            recorded=repr(other[max(0, at - 20) : at + 40]),
        )


def _named(part: str) -> str:
    found = re.match(r'<(section|figure) id="(?:figure-)?([\w-]+)"', part)
    if found is not None:
        return f"{found[1]} {found[2]}"
    head = re.match(r"## (.*)", part)
    return "" if head is None else f"section {head[1]}"


def _alike(one: str, other: str) -> bool:
    """Whether two pictures differ in coordinates by less than a twentieth of a point."""
    if "<svg" not in one or "<svg" not in other:
        return False
    if _WORDS.findall(one) != _WORDS.findall(other) or _NUMBER.split(one) != _NUMBER.split(other):
        return False
    pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    return all(a == b or abs(float(a) - float(b)) <= _NEAR for a, b in pairs)
