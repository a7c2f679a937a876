"""What a proposer hands over, in its full form."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from coevolve.errors import InputError, nearest
from coevolve.search.candidate import Files
from coevolve.search.proposal import KINDS, Proposal, Proposed

_KEYS = ("name", "files", "parents", "hypothesis", "kind", "components")


def as_proposed(given: object, *, source: str = "the proposer") -> Proposed:
    """What a proposer returned, in its full form.

    Args:
        given: A `Proposed`, or proposals as `as_proposal` takes them.
        source: What errors call the proposer.

    Raises:
        InputError: It is none of these; the message names the item and what is wrong with it.
    """
    items: Any = given.proposals if isinstance(given, Proposed) else given
    if not isinstance(items, Iterable) or isinstance(items, str | bytes | Mapping):
        raise InputError(
            f"{source} returned {_shown(given)}; return a list of Proposal or of "
            "{'name': ..., 'files': {...}}."
        )
    proposals = tuple(as_proposal(item, source=source) for item in items)
    if isinstance(given, Proposed):
        return replace(given, proposals=proposals)
    return Proposed(proposals=proposals)


def as_proposal(item: object, *, source: str = "the proposer") -> Proposal:
    """A proposal, from one or from a mapping with the same keys and files as text or bytes.

    >>> as_proposal({"name": "new", "files": {"harness.py": "answer = 42"}}).files
    {'harness.py': b'answer = 42'}
    """
    if isinstance(item, Proposal):
        data = {key: getattr(item, key) for key in _KEYS}
    elif isinstance(item, Mapping):
        data = dict(item)
    else:
        raise InputError(f"{source} returned {_shown(item)}, which is no proposal.")
    for key in data:
        if key not in _KEYS:
            raise InputError(f"{source}: a proposal has no {key!r}.{nearest(str(key), _KEYS)}")
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise InputError(f"{source}: a proposal needs a name, got {_shown(name)}.")
    parents = data.get("parents") or ()
    if not _are_texts(parents):
        raise InputError(f"{source}: parents of {name!r} must be names, got {_shown(parents)}.")
    hypothesis = data.get("hypothesis") or ""
    if not isinstance(hypothesis, str):
        raise InputError(
            f"{source}: the hypothesis of {name!r} must be text, got {_shown(hypothesis)}."
        )
    components = data.get("components") or ()
    if not _are_texts(components):
        raise InputError(
            f"{source}: components of {name!r} must be words, got {_shown(components)}."
        )
    kind = data.get("kind") or ""
    if kind not in KINDS:
        raise InputError(
            f"{source}: the kind of {name!r} must be 'exploit' or 'explore', got {_shown(kind)}."
        )
    return Proposal(
        files=_as_files(data.get("files"), name, source),
        name=name,
        parents=tuple(parents),
        hypothesis=hypothesis,
        kind=kind,
        components=tuple(components),
    )


def _as_files(given: object, name: str, source: str) -> Files:
    if not isinstance(given, Mapping):
        raise InputError(
            f"{source}: files of {name!r} must map paths to contents, got {_shown(given)}."
        )
    files: dict[str, bytes] = {}
    for path, content in given.items():
        if not isinstance(path, str) or not isinstance(content, str | bytes):
            raise InputError(
                f"{source}: file {path!r} of {name!r} must be text or bytes, "
                f"got {_shown(content)}."
            )
        files[path] = content.encode() if isinstance(content, str) else content
    return files


def _are_texts(given: Any) -> bool:
    return isinstance(given, list | tuple) and all(isinstance(one, str) for one in given)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
