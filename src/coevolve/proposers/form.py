"""The form that comes with a candidate: `proposal.json`."""

import codecs
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coevolve.errors import nearest
from coevolve.search.candidate import Kind
from coevolve.search.plain import plain

FORM = "proposal.json"
KEYS = ("name", "parent", "parents", "hypothesis", "kind", "components")
MOST_BYTES = 1_000_000
MOST_COMPONENTS = 20
MOST_PARENTS = 20
_HYPOTHESIS = 4_000
_WORDS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a candidate says of itself; `given` is false where it says nothing."""

    given: bool = False
    name: str = ""
    parents: tuple[str, ...] = ()
    hypothesis: str = ""
    kind: Kind = ""
    components: tuple[str, ...] = ()


def read_form(data: bytes | None) -> tuple[Form, list[str]]:
    """A form, and what is wrong with it; what cannot be used is left out, the rest is kept.

    >>> read_form(b'{"name": "new", "hypothesis": "It is shorter.", "kind": "bold"}')[1]
    ["the kind must be 'exploit' or 'explore', got 'bold'; it was left out."]
    """
    if data is None:
        return Form(), [f"it has no {FORM}; it is called as its folder, without a hypothesis."]
    notes: list[str] = []
    said = _object(data, notes)
    if said is None:
        return Form(given=True), notes
    for key in [key for key in said if key not in KEYS][:5]:
        named = plain(key, _WORDS)
        notes.append(f"the key {named!r} of {FORM} is unknown; left aside.{nearest(named, KEYS)}")
    form = Form(
        given=True,
        name=_text(said, "name", _WORDS, notes).strip(),
        parents=_names(said, notes),
        hypothesis=_text(said, "hypothesis", _HYPOTHESIS, notes).strip(),
        kind=_kind(said, notes),
        components=_list(said, "components", MOST_COMPONENTS, notes),
    )
    if not form.hypothesis:
        notes.append(f"{FORM} has no hypothesis.")
    return form, notes


def _object(data: bytes, notes: list[str]) -> Mapping[str, Any] | None:
    """The object in a form, also behind a byte order mark, in a fence or before further text."""
    if len(data) > MOST_BYTES:
        notes.append(f"{FORM} has {len(data):,} bytes, at most {MOST_BYTES:,} are read.")
        return None
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = data.decode("utf-16" if utf16 else "utf-8-sig", errors="replace")
    start = re.match(r"\s*(?:```\w*\s)?\s*", text)
    at = start.end() if start else 0
    try:
        found, end = json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        notes.append(f"{FORM} is no JSON ({error}); it was left aside.")
        return None
    if text[end:].strip(" \t\r\n`"):
        notes.append(f"{FORM} goes on after its object; the rest was left aside.")
    if not isinstance(found, dict):
        notes.append(f"{FORM} must be an object, got {_shown(found)}; it was left aside.")
        return None
    return found


def _text(said: Mapping[str, Any], key: str, most: int, notes: list[str]) -> str:
    value = said.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        notes.append(f"the {key} must be text, got {_shown(value)}; it was left out.")
        return ""
    if len(value) > most:
        notes.append(f"the {key} has {len(value):,} characters; {most:,} are kept.")
    return plain(value, most)


def _names(said: Mapping[str, Any], notes: list[str]) -> tuple[str, ...]:
    """The parents, given as one name or as a list, under either key."""
    found: list[str] = []
    for key in ("parent", "parents"):
        value = said.get(key)
        one = {key: [value]} if isinstance(value, str) and value else said
        found += _list(one, key, MOST_PARENTS, notes)
    return tuple(dict.fromkeys(found))


def _list(said: Mapping[str, Any], key: str, most: int, notes: list[str]) -> tuple[str, ...]:
    value = said.get(key)
    if value is None or value == "":
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        notes.append(f"{key} must be a list of texts, got {_shown(value)}; it was left out.")
        return ()
    if len(value) > most:
        notes.append(f"{key} lists {len(value):,}; the first {most} are kept.")
    kept = (" ".join(plain(item, _WORDS).split()) for item in value[:most])
    return tuple(dict.fromkeys(item for item in kept if item))


def _kind(said: Mapping[str, Any], notes: list[str]) -> Kind:
    value = said.get("kind")
    word = value.strip().lower() if isinstance(value, str) else value
    if word in ("exploit", "exploitation"):
        return "exploit"
    if word in ("explore", "exploration"):
        return "explore"
    if value not in (None, ""):
        notes.append(
            f"the kind must be 'exploit' or 'explore', got {_shown(value)}; it was left out."
        )
    return ""


def _shown(value: object) -> str:
    return plain(repr(value), _WORDS)
