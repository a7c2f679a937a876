"""Protocols by name."""

from typing import Any

from coevolve.core.built_in import BUILT_IN
from coevolve.core.parts import part_from_json
from coevolve.core.search_protocol import SearchProtocol
from coevolve.errors import EventError, InputError, UnknownProtocolError, nearest

__all__ = ["SearchProtocol", "protocol", "protocol_from_json", "protocols", "register"]

_registered: dict[str, SearchProtocol] = {built_in.name: built_in for built_in in BUILT_IN}


def protocol(name: str) -> SearchProtocol:
    """The protocol registered under a name.

    >>> protocol("task-coevolve").weighting
    VarianceWeights(floor=0.125, bonus=0.025, window=None, cost=0.0)
    """
    try:
        return _registered[name]
    except (KeyError, TypeError):
        raise UnknownProtocolError(
            f"no protocol is named {name!r}; there are {', '.join(_registered)}."
            + nearest(name, _registered)
        ) from None


def protocols() -> tuple[SearchProtocol, ...]:
    """Every registered protocol, the built-in ones first.

    >>> [known.name for known in protocols()][:3]
    ['full', 'naive', 'random-resample']
    """
    return tuple(_registered.values())


def register(new: SearchProtocol) -> None:
    """Make a protocol known by its name.

    >>> from dataclasses import replace
    >>> from coevolve.core.designs import PivotalDesign
    >>> register(replace(protocol("task-coevolve"), name="my-pivotal", design=PivotalDesign()))
    >>> protocol("my-pivotal").design
    PivotalDesign()
    """
    if not isinstance(new, SearchProtocol):
        raise InputError(f"register takes a SearchProtocol, got {new!r}.")
    known = _registered.get(new.name)
    if known is not None and known != new:
        raise InputError(f"another protocol is already registered as {new.name!r}.")
    _registered[new.name] = new


def protocol_from_json(
    data: dict[str, Any], known: SearchProtocol | None = None
) -> SearchProtocol:
    """The protocol `SearchProtocol.to_json` described.

    Parts that `known`, or else the protocol registered under the name, describes alike are taken
    from there and may be the user's own; the others must be built in. A `known` that differs in
    more than its allocation is refused.
    """
    if known is not None:
        for key, value in known.to_json().items():
            if key != "allocation" and data[key] != value:
                raise EventError(f"{key} was {data[key]} in the events, but is {value} now.")
    known = known or _registered.get(data["name"])
    own = known.to_json() if known else {}
    parts = {
        key: getattr(known, key) if own.get(key) == value else part_from_json(value)
        for key, value in data.items()
        if key != "name"
    }
    return SearchProtocol(name=data["name"], summary=known.summary if known else "", **parts)
