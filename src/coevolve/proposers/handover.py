"""Reading the candidates that an agent wrote, with their `proposal.json`.

The folder was written by somebody who is not trusted, and who knows nothing of forms: nothing in
it is followed, opened or believed before it was looked at, and what is wrong becomes a note. Work
is worth more than form, so that a candidate is taken wherever it is plain what it is.
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
from coevolve.search.candidate import MOST_FILES, Kind, check_files, plain, read_folder
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


MOST_NOTES = 20
MOST_ENTRIES = 1_000
"""Of the folder that are looked at; nobody hands over so many candidates."""
MOST_REFUSED = 50
_LAID_OUT = "standing.json"
_SKIPPED = ("__pycache__", "__MACOSX")


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What was taken over, and what was wrong with the rest."""

    proposals: tuple[Proposal, ...]
    notes: tuple[str, ...]


def collect(proposals: Path, view: View, *, count: int, source: str) -> Collected:
    """The candidates in a folder, one in each folder below it; never raises for what they are.

    Finished candidates, which have a `proposal.json`, come first, then the order in which they
    were written decides.

    Args:
        proposals: The folder, which nobody writes to any more.
        view: What the candidates were written from; parents are candidates of it.
        count: How many to take at most.
        source: What notes call the one who wrote them.
    """
    notes: list[str] = []
    taken: list[Proposal] = []
    folders = _folders(proposals, view, notes)
    for number, folder in enumerate(folders):
        if number - len(taken) == MOST_REFUSED:
            notes.append(f"the other {len(folders) - number} were not looked at.")
            break
        if len(taken) == count:
            left = ", ".join(repr(plain(other.name, 60)) for other in folders[number:][:5])
            notes.append(f"{len(folders) - number} more than were asked for, not taken: {left}.")
            break
        try:
            taken.append(_proposal(folder, view, notes))
        except (CandidateError, OSError, ValueError, RecursionError) as error:
            why = str(error).replace(str(folder), "it")
            notes.append(f"{_called(folder)} was not taken: {why}")
    if len(notes) > MOST_NOTES:
        notes[MOST_NOTES:] = [f"{len(notes) - MOST_NOTES} more notes are left out."]
    return Collected(
        proposals=tuple(taken), notes=tuple(f"{source}: {plain(note, 500)}" for note in notes)
    )


def _folders(proposals: Path, view: View, notes: list[str]) -> list[Path]:
    """The folders that may be candidates, in the order they are taken in."""
    try:
        if not stat.S_ISDIR(proposals.lstat().st_mode):
            notes.append("proposals is a link or no folder; nothing was taken.")
            return []
        with os.scandir(proposals) as entries:
            found = sorted(islice(entries, MOST_ENTRIES), key=lambda entry: entry.name)
            if next(entries, None) is not None:
                notes.append(f"of what lies in proposals, {MOST_ENTRIES:,} were looked at.")
    except OSError as error:
        notes.append(f"proposals cannot be read: {error.strerror}.")
        return []
    seen = [e for e in found if not e.name.startswith(".") and e.name not in _SKIPPED]
    folders = [Path(entry) for entry in seen if entry.is_dir(follow_symlinks=False)]
    stray = [entry.name for entry in seen if not entry.is_dir(follow_symlinks=False)]
    known = {path for standing in view.standings for path in standing.candidate.files}
    if not folders and known & set(stray):
        notes.append("the candidate lies in proposals itself, not in a folder of its own.")
        return [proposals]
    notes += [f"{plain(name, 80)!r} is a link or no folder, and no candidate." for name in stray]
    return sorted(folders, key=_written)


def _written(folder: Path) -> tuple[bool, int, str]:
    """When a candidate was finished; those without a form were not."""
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
        raise CandidateError(f"it has no file but {FORM}." if form.given else "it is empty.")
    unpacked = _unpacked(files, view)
    if unpacked != files:
        notes.append(f"{called}: its files lie in files/, as in candidates/; they were taken out.")
    check_files(unpacked, plain(folder.name, 80))
    notes += [f"{called}: {note}" for note in wrong]
    return Proposal(
        files=unpacked,
        name=form.name or plain(folder.name, 80),
        parents=_parents(form, view, called, notes),
        hypothesis=form.hypothesis,
        kind=form.kind,
        components=form.components,
    )


def _check_folders(folder: Path) -> None:
    """Refuse a tree that would take forever to walk."""
    for number, (_, folders, _) in enumerate(os.walk(folder)):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if number > MOST_FILES:
            raise CandidateError(f"it has more than {MOST_FILES:,} folders.")


def _unpacked(files: Mapping[str, bytes], view: View) -> dict[str, bytes]:
    """The files of a candidate that was copied with the folder around it, as agents do."""
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
            notes.append(f"{called}: {name!r} is no earlier candidate, and no parent.{hint}")
    return tuple(name for name in form.parents if name in known)


def _called(folder: Path) -> str:
    return repr(plain(folder.name, 80))
