"""The folder in which an agent writes candidates, each with a `proposal.json`.

The agent is not trusted: links are not followed, and everything is checked before it is used.
Mistakes become notes. A candidate with usable files is accepted, even if its form is wrong.
"""

import codecs
import contextlib
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from coevolve.errors import CandidateError, nearest
from coevolve.formatting import visible
from coevolve.search.candidate import MOST_FILES, Kind, check_files, read_folder
from coevolve.search.proposal import Proposal, View

FORM = "proposal.json"
KEYS = ("name", "parent", "parents", "hypothesis", "kind", "components")
MOST_BYTES = 1_000_000
MOST_COMPONENTS = 20
MOST_PARENTS = 20
_HYPOTHESIS = 4_000
_WORDS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The contents of a `proposal.json`; `given` is false if there is none."""

    given: bool = False
    name: str = ""
    parents: tuple[str, ...] = ()
    hypothesis: str = ""
    kind: Kind = ""
    components: tuple[str, ...] = ()


def read_form(data: bytes | None) -> tuple[Form, list[str]]:
    """The usable parts of a form, and notes on the others.

    >>> read_form(b'{"name": "new", "hypothesis": "It is shorter.", "kind": "bold"}')[1]
    ["the kind must be 'exploit' or 'explore', got 'bold'; it was ignored."]
    """
    if data is None:
        return Form(), [f"it has no {FORM}; it is named after its folder and has no hypothesis."]
    notes: list[str] = []
    given = _object(data, notes)
    if given is None:
        return Form(given=True), notes
    for key in [key for key in given if key not in KEYS][:5]:
        named = visible(key, _WORDS)
        notes.append(f"unknown key {named!r} in {FORM}; it was ignored.{nearest(named, KEYS)}")
    form = Form(
        given=True,
        name=_text(given, "name", _WORDS, notes).strip(),
        parents=_names(given, notes),
        hypothesis=_text(given, "hypothesis", _HYPOTHESIS, notes).strip(),
        kind=_kind(given, notes),
        components=_list(given, "components", MOST_COMPONENTS, notes),
    )
    if not form.hypothesis:
        notes.append(f"{FORM} has no hypothesis.")
    return form, notes


def _object(data: bytes, notes: list[str]) -> Mapping[str, Any] | None:
    """The object in a form, even after a byte order mark, in a fence or before other text."""
    if len(data) > MOST_BYTES:
        notes.append(f"{FORM} has {len(data):,} bytes, more than {MOST_BYTES:,}; it was ignored.")
        return None
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = data.decode("utf-16" if utf16 else "utf-8-sig", errors="replace")
    start = re.match(r"\s*(?:```\w*\s)?\s*", text)
    at = start.end() if start else 0
    try:
        found, end = json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        notes.append(f"{FORM} is not JSON ({error}); it was ignored.")
        return None
    if text[end:].strip(" \t\r\n`"):
        notes.append(f"{FORM} has more text after its object; the rest was ignored.")
    if not isinstance(found, dict):
        notes.append(f"{FORM} must be an object, got {_shown(found)}; it was ignored.")
        return None
    return found


def _text(given: Mapping[str, Any], key: str, most: int, notes: list[str]) -> str:
    value = given.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        notes.append(f"the {key} must be text, got {_shown(value)}; it was ignored.")
        return ""
    if len(value) > most:
        notes.append(f"the {key} has {len(value):,} characters; {most:,} are kept.")
    return visible(value, most)


def _names(given: Mapping[str, Any], notes: list[str]) -> tuple[str, ...]:
    """The parents, as one name or a list, under either key."""
    found: list[str] = []
    for key in ("parent", "parents"):
        value = given.get(key)
        one = {key: [value]} if isinstance(value, str) and value else given
        found += _list(one, key, MOST_PARENTS, notes)
    return tuple(dict.fromkeys(found))


def _list(given: Mapping[str, Any], key: str, most: int, notes: list[str]) -> tuple[str, ...]:
    value = given.get(key)
    if value is None or value == "":
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        notes.append(f"{key} must be a list of texts, got {_shown(value)}; it was ignored.")
        return ()
    if len(value) > most:
        notes.append(f"{key} has {len(value):,} items; the first {most} are kept.")
    kept = (" ".join(visible(item, _WORDS).split()) for item in value[:most])
    return tuple(dict.fromkeys(item for item in kept if item))


def _kind(given: Mapping[str, Any], notes: list[str]) -> Kind:
    value = given.get("kind")
    word = value.strip().lower() if isinstance(value, str) else value
    if word in ("exploit", "exploitation"):
        return "exploit"
    if word in ("explore", "exploration"):
        return "explore"
    if value not in (None, ""):
        notes.append(
            f"the kind must be 'exploit' or 'explore', got {_shown(value)}; it was ignored."
        )
    return ""


def _shown(value: object) -> str:
    return visible(repr(value), _WORDS)


MOST_NOTES = 20
MOST_ENTRIES = 1_000
"""Entries of the folder that are read."""
MOST_REFUSED = 50
_LAID_OUT = "standing.json"
_SKIPPED = ("__pycache__", "__MACOSX")


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """The candidates of a folder, and notes on what was wrong."""

    proposals: tuple[Proposal, ...]
    notes: tuple[str, ...]


def collect(proposals: Path, view: View, *, count: int, source: str) -> Collected:
    """The candidates in a folder, one in each folder below it; mistakes in them become notes.

    Finished candidates, which have a `proposal.json`, come first; then the earliest written.

    Args:
        proposals: The folder, after the agent has ended.
        view: The view of the agent, with the candidates that may be parents.
        count: The most candidates to accept.
        source: The name of the agent in notes.
    """
    notes: list[str] = []
    taken: list[Proposal] = []
    folders = _folders(proposals, view, notes)
    for number, folder in enumerate(folders):
        if number - len(taken) == MOST_REFUSED:
            notes.append(f"{len(folders) - number} more folders were not read.")
            break
        if len(taken) == count:
            left = ", ".join(repr(visible(other.name, 60)) for other in folders[number:][:5])
            notes.append(f"{len(folders) - number} more than requested were ignored: {left}.")
            break
        try:
            taken.append(_proposal(folder, view, notes))
        except (CandidateError, OSError, ValueError, RecursionError) as error:
            why = str(error).replace(str(folder), "it")
            notes.append(f"{_called(folder)} was ignored: {why}")
    if len(notes) > MOST_NOTES:
        notes[MOST_NOTES:] = [f"{len(notes) - MOST_NOTES} more notes are not shown."]
    return Collected(
        proposals=tuple(taken), notes=tuple(f"{source}: {visible(note, 500)}" for note in notes)
    )


def _folders(proposals: Path, view: View, notes: list[str]) -> list[Path]:
    """The folders that may be candidates, in the order in which they are accepted."""
    try:
        if not stat.S_ISDIR(proposals.lstat().st_mode):
            notes.append("proposals is a link, or not a folder; it was ignored.")
            return []
        with os.scandir(proposals) as entries:
            found = sorted(islice(entries, MOST_ENTRIES), key=lambda entry: entry.name)
            if next(entries, None) is not None:
                notes.append(f"only the first {MOST_ENTRIES:,} entries of proposals were read.")
    except OSError as error:
        notes.append(f"proposals cannot be read: {error.strerror}.")
        return []
    seen = [e for e in found if not e.name.startswith(".") and e.name not in _SKIPPED]
    folders = [Path(entry) for entry in seen if entry.is_dir(follow_symlinks=False)]
    stray = [entry.name for entry in seen if not entry.is_dir(follow_symlinks=False)]
    known = {path for standing in view.standings for path in standing.candidate.files}
    if not folders and known & set(stray):
        notes.append("the candidate is in proposals itself, not in a folder below it.")
        return [proposals]
    notes += [f"{visible(n, 80)!r} is a link, or not a folder; it was ignored." for n in stray]
    return sorted(folders, key=_written)


def _written(folder: Path) -> tuple[bool, int, str]:
    """A sort key: finished candidates first, then by time."""
    for place, finished in ((folder / FORM, True), (folder, False)):
        with contextlib.suppress(OSError):
            return not finished, place.lstat().st_mtime_ns, folder.name
    return True, 0, folder.name


def _proposal(folder: Path, view: View, notes: list[str]) -> Proposal:
    _check_folders(folder)
    files = read_folder(folder)
    if any(path.startswith(f"{FORM}/") for path in files):
        raise CandidateError(f"{FORM} is a folder; it must be a file.")
    form, wrong = read_form(files.pop(FORM, None))
    called = _called(folder)
    if not files:
        raise CandidateError(f"it has no file except {FORM}." if form.given else "it is empty.")
    unpacked = _unpacked(files, view)
    if unpacked != files:
        notes.append(f"{called}: its files are in files/, as in candidates/; they were moved up.")
    check_files(unpacked, visible(folder.name, 80))
    notes += [f"{called}: {note}" for note in wrong]
    return Proposal(
        files=unpacked,
        name=form.name or visible(folder.name, 80),
        parents=_parents(form, view, called, notes),
        hypothesis=form.hypothesis,
        kind=form.kind,
        components=form.components,
    )


def _check_folders(folder: Path) -> None:
    """Refuse a tree that is too large to walk."""
    for number, (_, folders, _) in enumerate(os.walk(folder)):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if number > MOST_FILES:
            raise CandidateError(f"it has more than {MOST_FILES:,} folders.")


def _unpacked(files: Mapping[str, bytes], view: View) -> dict[str, bytes]:
    """The files of a candidate; an agent may have copied the folders around them too."""
    inner = {path[6:]: data for path, data in files.items() if path.startswith("files/")}
    copied = _LAID_OUT in files or len(inner) == len(files)
    theirs = any(p.startswith("files/") for s in view.standings for p in s.candidate.files)
    if not inner or not copied or theirs:
        return dict(files)
    laid_out = ("files/", "traces/", _LAID_OUT)
    outer = {path: data for path, data in files.items() if not path.startswith(laid_out)}
    return {**inner, **outer}


def _parents(form: Form, view: View, called: str, notes: list[str]) -> tuple[str, ...]:
    known = {standing.candidate.name for standing in view.standings}
    for name in form.parents:
        if name not in known:
            hint = nearest(name, known)
            notes.append(f"{called}: the parent {name!r} is not an earlier candidate.{hint}")
    return tuple(name for name in form.parents if name in known)


def _called(folder: Path) -> str:
    return repr(visible(folder.name, 80))
