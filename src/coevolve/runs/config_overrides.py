"""Values that replace those of a TOML file: of `--set KEY=VALUE`, or of a row of a run matrix."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any, Self

from coevolve.errors import ConfigError

OPTION = "--set"
_QUOTED = ("[", "{", '"', "'")
"""A value that begins with one of these must be valid TOML; others may be plain text."""
_DATES = (date, datetime, time)


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A value in place of the one in a TOML file.

    Args:
        path: The key and its tables, such as `("search", "fraction")`.
        value: The new value.
        source: Where it comes from, for errors.

    >>> Override.parse("search.fraction=0.07").value
    0.07
    >>> Override.parse("search.protocol=naive").value
    'naive'
    """

    path: tuple[str, ...]
    value: Any
    source: str = OPTION

    @property
    def key(self) -> str:
        """The dotted key, as errors name it."""
        return ".".join(self.path)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The override that `KEY=VALUE` describes.

        The key is a dotted key of TOML, and the value a value of TOML; a plain word is a text.

        Raises:
            ConfigError: There is no key, or the value is not valid.
        """
        key, sign, value = text.partition("=")
        path = _path(key.strip())
        if not sign or not path:
            raise ConfigError(
                f"{OPTION} must be KEY=VALUE, such as {OPTION} search.fraction=0.2, got {text!r}."
            )
        return cls(path=path, value=_value(key.strip(), value.strip()))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"path": list(self.path), "value": self.value, "source": self.source}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The override that `to_json` described."""
        return cls(path=tuple(data["path"]), value=data["value"], source=data["source"])


def parse_overrides(texts: Iterable[str]) -> tuple[Override, ...]:
    """The overrides of several `--set`.

    Raises:
        ConfigError: One is not valid, or two set the same key.
    """
    found: dict[tuple[str, ...], Override] = {}
    for text in texts:
        one = Override.parse(text)
        if one.path in found:
            raise ConfigError(f"{OPTION} has {one.key!r} twice; use it once.")
        found[one.path] = one
    return tuple(found.values())


def table_overrides(tables: Mapping[str, Any], source: str) -> tuple[Override, ...]:
    """An override for each value in nested tables."""
    return tuple(
        Override(path=path, value=_plain(".".join(path), value, source), source=source)
        for path, value in _leaves(tables)
    )


def apply_overrides(
    data: dict[str, Any], overrides: Sequence[Override], *, source: str = "configuration"
) -> None:
    """Set the values of overrides in the tables of a TOML file, in their order.

    Args:
        data: The tables.
        overrides: The values.
        source: The name of the file in errors; `with_origins` adds where an override comes from.

    Raises:
        ConfigError: A key is in something that is not a table.
    """
    for one in overrides:
        table = data
        for at, part in enumerate(one.path[:-1], start=1):
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise ConfigError(
                    f"{source}: {one.key!r} cannot be set, because "
                    f"{'.'.join(one.path[:at])!r} is not a table."
                )
        table[one.path[-1]] = one.value


def with_origins(message: str, overrides: Sequence[Override]) -> str:
    """An error message that says which of the keys it names come from overrides.

    >>> with_origins("'search.rounds' must be at least 1, got 0.", [
    ...     Override(path=("search", "rounds"), value=0)
    ... ])
    "'search.rounds' must be at least 1, got 0. 'search.rounds' comes from --set."
    """
    last = {one.path: one for one in overrides}.values()  # a later one replaces the earlier one
    return "\n".join(
        " ".join([line, *(_origin(one) for one in last if _is_named(one, line))])
        for line in message.split("\n")
    )


def _is_named(one: Override, line: str) -> bool:
    """Whether a line names the key, a part of its value, or an unknown table around it."""
    line = line.partition("Did you mean")[0]
    tables = (".".join(one.path[:at]) for at in range(1, len(one.path)))
    return any(f"'{one.key}{after}" in line for after in ("'", "[", ".")) or any(
        f"unknown key '{table}'" in line for table in tables
    )


def _origin(one: Override) -> str:
    return f"{one.key!r} comes from {one.source}."


def _path(key: str) -> tuple[str, ...]:
    """The parts of a dotted key; none if it is not one."""
    try:
        found: Any = tomllib.loads(f"{key} = 0") if "\n" not in key else {}
    except ValueError:
        return ()
    path: list[str] = []
    while isinstance(found, dict):
        if len(found) != 1:
            return ()
        part, found = next(iter(found.items()))
        path.append(part)
    return tuple(path)


def _value(key: str, text: str) -> Any:
    try:
        found = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError) as error:
        if text.startswith(_QUOTED):
            raise ConfigError(
                f"the value of {key!r} in {OPTION} is not valid TOML: {text!r}: {error}. Quote it "
                f"for the shell: {OPTION} 'benchmark.sets=[\"s2d\"]'."
            ) from error
        return text
    value = found.pop("value")
    if found or isinstance(value, _DATES):  # more keys after a line break; an unquoted date
        return text
    return _plain(key, value, OPTION)


def _plain(key: str, value: Any, source: str) -> Any:
    """The value, if the journal of a run can record it."""
    for one in _parts(value):
        if isinstance(one, _DATES):
            raise ConfigError(
                f"{key!r} has the date {one}; write it in quotes. It comes from {source}."
            )
    return value


def _parts(value: Any) -> Iterator[Any]:
    """A value and everything in it."""
    yield value
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _parts(one)


def _leaves(
    tables: Mapping[str, Any], before: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in tables.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*before, key))
        else:
            yield (*before, key), value
