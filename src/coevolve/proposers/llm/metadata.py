"""What a model says of a candidate beside its files: JSON as it is meant, or words as lines."""

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

KEYS = ("name", "parent", "parents", "hypothesis", "kind", "components")
_HEADING = re.compile(
    r"^\s*(?:#{1,6}\s*|\*\*\s*|=+\s*)(?:new\s+)?candidate\b(?:\s*\d+)?[\s:.—–*=-]*(?P<name>.*)$",
    re.IGNORECASE,
)
_LINE = re.compile(
    r"^[\s>*_-]*(?P<key>name|parents?|hypothesis|kind|components)[\s*_`\"]*:[\s*_]*(?P<said>\S.*)$",
    re.IGNORECASE,
)
_QUOTED = re.compile(r'"(?P<key>name|parent|hypothesis|kind)"\s*:\s*"(?P<said>(?:[^"\\]|\\.)*)"')
_COMMA = re.compile(r",(\s*[}\]])")
_TRIES = 100
"""Beginnings of JSON in a text that may turn out to be none, lest rubbish take minutes."""


def as_json(text: str) -> Any | None:
    """A value from JSON with the usual slips: trailing commas, raw line ends, Python's quotes.

    >>> as_json("{'name': 'new', 'parent': None,}")
    {'name': 'new', 'parent': None}
    """
    for attempt in (text, _COMMA.sub(r"\1", text)):
        try:
            return json.loads(attempt, strict=False)
        except (ValueError, RecursionError):
            continue
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


def is_metadata(value: object) -> bool:
    """Whether a value describes a candidate."""
    return isinstance(value, dict) and any(key in value for key in (*KEYS, "files"))


def heading(text: str) -> str | None:
    r"""The name in the last heading that announces a candidate; empty if it has none.

    >>> heading("Some thoughts.\n## Candidate 2: `short-list`\n"), heading("## Analysis")
    ('short-list', None)
    """
    found = [match for line in text.splitlines() if (match := _HEADING.match(line[:200]))]
    return found[-1]["name"].strip(" `*:=\"'") if found else None


def said_in(text: str) -> dict[str, Any]:
    r"""What prose says of a candidate: an object of JSON, or lines such as "Hypothesis: ...".

    >>> said_in("Parent: nearest\n- **Hypothesis:** the last example counts most")
    {'parent': 'nearest', 'hypothesis': 'the last example counts most'}
    """
    for value in objects(text):
        if is_metadata(value):
            return dict(value)
    if quoted := {found["key"]: found["said"] for found in _QUOTED.finditer(text)}:
        return quoted
    lines = (_LINE.match(line[:2_000]) for line in text.splitlines())
    return {found["key"].lower(): found["said"].strip(' `"') for found in lines if found}


def objects(text: str) -> Iterator[Any]:
    """The values of JSON that begin a line of a text, as long as they are whole."""
    decoder = json.JSONDecoder(strict=False)
    at, tries = 0, _TRIES
    for found in re.finditer(r"^[ \t]*(?=[{\[])", text, re.MULTILINE):
        if found.end() < at:
            continue
        try:
            value, at = decoder.raw_decode(text, found.end())
        except (ValueError, RecursionError):
            tries -= 1
            if not tries:
                return
        else:
            yield value


def parents(said: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The parents that are named: none if it says so, None if it says nothing of them.

    >>> parents({"parent": "`nearest`"}), parents({"parent": None}), parents({})
    (('nearest',), (), None)
    """
    if "parent" not in said and "parents" not in said:
        return None
    given = said.get("parents") or said.get("parent")
    return tuple(name for name in words(given) if name.lower() not in ("null", "none", "-"))


def words(given: object) -> tuple[str, ...]:
    """A list of words, from one or from a text with commas.

    >>> words("nearest, `quota`"), words(["a", 1, ""]), words(None)
    (('nearest', 'quota'), ('a', '1'), ())
    """
    if isinstance(given, str):
        given = given.strip("[] ").split(",")
    if not isinstance(given, list | tuple):
        return ()
    plain = (str(one).strip(" `\"'*") for one in given if isinstance(one, str | int | float))
    return tuple(word for word in plain if word)


def sentence(given: object) -> str:
    r"""A text on one line, or nothing.

    >>> sentence("so \n it is"), sentence({"a": 1}), sentence(None)
    ('so it is', '', '')
    """
    return " ".join(given.split()) if isinstance(given, str) else ""
