"""The settings of protocols: their parts by name, and the fields of the parts by key.

The keys follow from the parts: a key for each of the five parts, with the names of `PARTS` as
values, and a key for each field of a part that is a number, a word, or true or false. A part of a
user's own brings the keys of its fields.
"""

import inspect
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union, get_args, get_origin
from typing import get_type_hints as type_hints

from coevolve.core.allocation import AdaptiveShare, CostShare, Share, WholePool
from coevolve.core.choice import HighestEstimate, MostEvaluated
from coevolve.core.designs import PivotalDesign, SuccessiveDesign, UniformDesign
from coevolve.core.estimators import Difference, Hajek, HorvitzThompson, PhaseZeroRule, RawMean
from coevolve.core.joint import Joint
from coevolve.core.weights import InformationWeights, UniformWeights, VarianceWeights
from coevolve.errors import InputError, UnfitSettingError, nearest

if TYPE_CHECKING:
    from coevolve.core.protocols import SearchProtocol

PARTS: Mapping[str, Mapping[str, Any]] = {
    "weighting": {
        "uniform": UniformWeights(),
        "variance": VarianceWeights(),
        "information": InformationWeights(),
    },
    "design": {
        "uniform": UniformDesign(),
        "fixed": UniformDesign(redraws=False),
        "successive": SuccessiveDesign(),
        "pivotal": PivotalDesign(),
    },
    "estimator": {
        "phase-zero": PhaseZeroRule(),
        "difference": Difference(),
        "hajek": Hajek(),
        "horvitz-thompson": HorvitzThompson(),
        "raw-mean": RawMean(),
        "pooled-mean": RawMean(together=True),
        "joint": Joint(),
    },
    "allocation": {
        "share": Share(),
        "whole-pool": WholePool(),
        "adaptive": AdaptiveShare(),
        "cost": CostShare(),
    },
    "choice": {"highest-estimate": HighestEstimate(), "most-evaluated": MostEvaluated()},
}
"""The built-in parts by the names that settings give them."""

_SCALARS = (int, float, bool, str, NoneType)
_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


class Setting(NamedTuple):
    """A setting of a protocol: its part, its value now, its type, and what it means.

    The type is that of the field, or a `Literal` of names for a part as a whole.
    """

    part: str
    value: Any
    type: Any
    meaning: str


def settings_of(rule: "SearchProtocol") -> dict[str, Setting]:
    """The settings of a protocol by key, each part before its fields.

    A field that two parts have is left out: the key would be ambiguous.

    >>> from coevolve import protocol
    >>> {key: found.value for key, found in settings_of(protocol("naive")).items()}["design"]
    'fixed'
    """
    found: dict[str, Setting] = {}
    twice = _owned_twice(rule)
    for part in PARTS:
        value = getattr(rule, part)
        found[part] = Setting(part, part_name(part, value), _names(part), _summary(value))
        kind: Any = type(value)
        meanings = _meanings(kind)
        found |= {
            key: Setting(part, getattr(value, key), its, meanings.get(key, ""))
            for key, its in _scalars(value).items()
            if key not in twice
        }
    return found


def part_name(part: str, value: object) -> str:
    """The name of a part; that of its class if it is not built in.

    >>> part_name("design", SuccessiveDesign(repetitions=9))
    'successive'
    """
    kind: Any = type(value)
    for name, known in PARTS[part].items():
        if type(known) is kind and all(
            getattr(known, key) == getattr(value, key) for key in _named(kind)
        ):
            return name
    return str(kind.__name__)


@cache
def setting_types() -> dict[str, Any]:
    """The type of every key that a built-in part has.

    >>> setting_types()["rounding"]
    typing.Literal['ceil', 'floor']
    """
    found: dict[str, Any] = {part: _names(part) for part in PARTS}
    for known in PARTS.values():
        for value in known.values():
            found |= _scalars(value)
    return found


def changed(rule: "SearchProtocol", settings: Mapping[str, Any]) -> "SearchProtocol":
    """A protocol with other settings; parts first, then their fields.

    Raises:
        UnfitSettingError: A setting has no effect on the protocol; the message says what it needs.
        InputError: A setting is unknown, or its value is wrong.

    >>> from coevolve import protocol
    >>> changed(protocol("task-coevolve"), {"rounding": "floor"}).allocation
    Share(fraction=0.2, rounding='floor')
    """
    if not settings:
        return rule
    new, unfit = _applied(rule, settings)
    for key, reason in unfit.items():
        raise UnfitSettingError(f"{key} has no effect on protocol {rule.name!r}: {reason}.")
    return new


def changed_where_fitting(
    rules: Sequence["SearchProtocol"], settings: Mapping[str, Any]
) -> "list[SearchProtocol]":
    """Protocols, each changed by the settings that have an effect on it.

    Raises:
        UnfitSettingError: A setting has an effect on none of them.
        InputError: A setting is unknown, or its value is wrong.
    """
    known = {key for rule in rules for key in _types(rule)}
    for key in settings:
        _check_known(key, known)
    made = [
        _applied(rule, {key: value for key, value in settings.items() if key in _types(rule)})
        for rule in rules
    ]
    for key in settings:
        unfit = [reasons[key] for _, reasons in made if key in reasons]
        if len(unfit) == len(made):
            names = ", ".join(rule.name for rule in rules)
            raise UnfitSettingError(f"{key} has no effect on {names}: {unfit[0]}.")
    return [new for new, _ in made]


def _applied(
    rule: "SearchProtocol", settings: Mapping[str, Any]
) -> "tuple[SearchProtocol, dict[str, str]]":
    """A protocol with the settings that have an effect, and why each of the others has none."""
    types = _types(rule)
    for key, value in settings.items():
        _check_known(key, types)
        _check(key, value, types[key])
    fitting, unfit = dict(settings), dict[str, str]()
    while True:
        new = replace(rule, **{part: _part(rule, part, fitting) for part in PARTS})
        found = {key: reason for key in fitting if (reason := _unfit(new, key))}
        if not found:
            return new, unfit
        unfit |= found
        fitting = {key: value for key, value in fitting.items() if key not in found}


def _types(rule: "SearchProtocol") -> dict[str, Any]:
    """The type of every known setting, those of the protocol's own parts included."""
    return {**setting_types(), **{key: one.type for key, one in settings_of(rule).items()}}


def _check_known(key: str, known: Collection[str]) -> None:
    if key not in known:
        raise InputError(
            f"unknown setting {key!r} of a protocol; use one of {', '.join(sorted(known))}."
            f"{nearest(key, known)}"
        )


def _part(rule: "SearchProtocol", part: str, settings: Mapping[str, Any]) -> Any:
    """A part with its settings."""
    value = getattr(rule, part)
    if part in settings and settings[part] != part_name(part, value):
        value = PARTS[part][settings[part]]
        fraction = getattr(rule.allocation, "fraction", None)
        if part == "allocation" and fraction is not None:
            value = value.at(fraction)
    given = {key: settings[key] for key in _scalars(value) if key in settings}
    return replace(value, **given) if given else value


def _unfit(rule: "SearchProtocol", key: str) -> str:
    """Why a setting has no effect on a protocol; empty if it has one."""
    found, twice = settings_of(rule), _owned_twice(rule)
    if key in twice:
        return f"its {twice[key]} both have this field; replace the part itself, in Python"
    if key not in found:
        return f"it needs {_owners(key)}"
    part = found[key].part
    if isinstance(rule.allocation, WholePool) and part in ("weighting", "design", "estimator"):
        return "every candidate is evaluated on every task"
    if part == "weighting" and isinstance(rule.design, UniformDesign):
        return f"its draws are uniform; it needs {_other_designs()}"
    if key == "repetitions" and getattr(rule.design, "inclusion", "") == "exact":
        return "its probabilities are exact; it needs inclusion = 'monte-carlo'"
    return ""


def _owned_twice(rule: "SearchProtocol") -> dict[str, str]:
    """The fields that several parts of a protocol have, with the names of these parts."""
    owners: dict[str, list[str]] = {}
    for part in PARTS:
        for key in _scalars(getattr(rule, part)):
            owners.setdefault(key, []).append(part)
    return {key: " and its ".join(parts) for key, parts in owners.items() if len(parts) > 1}


def _owners(key: str) -> str:
    """The parts that have a field."""
    return _either(
        f"{part} = {name!r}"
        for part, known in PARTS.items()
        for name, value in known.items()
        if key in _scalars(value)
    )


def _other_designs() -> str:
    designs = PARTS["design"].items()
    return _either(f"design = {n!r}" for n, v in designs if not isinstance(v, UniformDesign))


def _either(texts: Iterable[str]) -> str:
    *others, last = texts
    return f"{', '.join(others)} or {last}" if others else last


def _named(kind: Any) -> frozenset[str]:
    """The fields in which built-in parts of one class differ; the name of a part sets them."""
    alike = [one for known in PARTS.values() for one in known.values() if type(one) is kind]
    names = [field.name for field in fields(kind)]
    return frozenset(n for n in names if len({getattr(one, n) for one in alike}) > 1)


def _scalars(part: Any) -> dict[str, Any]:
    """The fields of a part that a setting can change, with their types."""
    kind: Any = type(part)
    if not is_dataclass(kind):
        return {}
    hints = type_hints(kind)
    names = [field.name for field in fields(kind) if field.init]
    return {n: hints[n] for n in names if n not in _named(kind) and _is_scalar(hints[n])}


def _is_scalar(kind: Any) -> bool:
    if get_origin(kind) in (Union, UnionType):
        return all(map(_is_scalar, get_args(kind)))
    return get_origin(kind) is Literal or kind in _SCALARS


def _names(part: str) -> Any:
    return Literal[tuple(PARTS[part])]


def _check(key: str, value: object, kind: Any) -> None:
    """Refuse a value of another type than that of its setting."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    if any(_is_of(value, one) for one in kinds):
        return
    words: Sequence[str] = [
        _either(map(repr, get_args(one))) if get_origin(one) is Literal else _KINDS[one]
        for one in kinds
        if one is not NoneType
    ]
    raise InputError(f"{key} must be {_either(words)}, got {value!r}.")


def _is_of(value: object, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if kind in (int, float) and isinstance(value, bool):
        return False
    if kind is float:
        return isinstance(value, int | float) and math.isfinite(value)
    return isinstance(value, kind)


def _meanings(kind: Any) -> dict[str, str]:
    """What the fields of a class mean, from the section Args of its docstring."""
    _, _, text = (inspect.getdoc(kind) or "").partition("\nArgs:\n")
    found = re.findall(r"^    (\w+): (.*(?:\n {6,}.*)*)", text, flags=re.MULTILINE)
    return {name: " ".join(meaning.split()) for name, meaning in found}


def _summary(value: object) -> str:
    """The first line of the docstring of a part."""
    return (inspect.getdoc(type(value)) or "").partition("\n")[0]
