"""The order of keys in the tables of a configuration, which events do not keep.

The tasks of a benchmark have the order of their pools in the file. Events are JSON with sorted
keys, so a run records this order beside its configuration.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Place = list[str | int]


def orders_of(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The order of every table inside a table of a configuration, unless it is alphabetical.

    >>> orders_of({"benchmark": {"kind": "synthetic", "pools": {"z": 3, "a": 2}}})
    [{'place': ['benchmark', 'pools'], 'keys': ['z', 'a']}]
    """
    return [
        {"place": place, "keys": list(table)}
        for place, table in _tables(config, [])
        if len(place) > 1 and list(table) != sorted(table)
    ]


def in_order(config: Mapping[str, Any], orders: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A configuration whose tables have the orders that `orders_of` found.

    >>> in_order({"benchmark": {"pools": {"a": 2, "z": 3}}},
    ...     [{"place": ["benchmark", "pools"], "keys": ["z", "a"]}])
    {'benchmark': {'pools': {'z': 3, 'a': 2}}}
    """
    keys = {tuple(order["place"]): order["keys"] for order in orders}
    return {name: _ordered(value, [name], keys) for name, value in config.items()}


def _tables(value: Any, place: Place) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    if isinstance(value, Mapping):
        yield place, value
    for key, inner in _entries(value):
        yield from _tables(inner, [*place, key])


def _ordered(value: Any, place: Place, keys: Mapping[tuple[str | int, ...], list[str]]) -> Any:
    entries = {key: _ordered(inner, [*place, key], keys) for key, inner in _entries(value)}
    if isinstance(value, Mapping):
        return {key: entries[key] for key in keys.get(tuple(place), entries)}
    return list(entries.values()) if isinstance(value, list) else value


def _entries(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()
