"""What is wrong with a configuration, as sentences that name the key."""

from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from coevolve.errors import nearest
from coevolve.runs.plugs import BENCHMARKS, PROPOSERS

_KINDS: Mapping[str, Mapping[str, type[BaseModel]]] = {
    "benchmark": BENCHMARKS,
    "proposer": PROPOSERS,
}


def sentences(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """One sentence for every mistake, unknown keys first, without repeats."""
    found = sorted(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    keyed = [(_place(one["loc"], model)[0], _sentence(one, model)) for one in found]
    deep = [path for path, _ in keyed]
    kept = [text for path, text in keyed if not any(_leads_to(path, other) for other in deep)]
    suggested = " ".join(text for text in kept if text.startswith("unknown"))
    return [
        text
        for text in dict.fromkeys(kept)
        if not (text.endswith("is missing.") and text.split("'")[1] in suggested.split("'"))
    ]


def _leads_to(path: list[str], other: list[str]) -> bool:
    """Whether another mistake lies within a value, which then names the place better.

    A value that may be of several types has a mistake for each of them.
    """
    mine, its = ".".join(path), ".".join(other)
    return mine != its and its.startswith((f"{mine}.", f"{mine}["))


def _sentence(found: ErrorDetails, model: type[BaseModel]) -> str:
    path, owner = _place(found["loc"], model)
    key = ".".join(path)
    value = _shown(found["input"])
    match found["type"]:
        case "extra_forbidden":
            known = sorted(owner.model_fields)
            prefix = key.removesuffix(path[-1])
            close = nearest(path[-1], known) or f" It may have {', '.join(known)}."
            return f"unknown key '{key}'.{close.replace("'", "'" + prefix, 1)}"
        case "missing":
            what = "table" if len(path) == 1 else "key"
            return f"the {what} '{key}' is missing."
        case "union_tag_not_found":
            if not isinstance(found["input"], Mapping):
                return f"'{key}' must be a table, got {value}."
            return f"the key '{key}.kind' is missing; it may be {_kinds(key)}."
        case "union_tag_invalid":
            kind = str(found["input"].get("kind"))
            return f"'{key}.kind' is {kind!r}; it may be {_kinds(key)}.{_near_kind(key, kind)}"
        case "too_short":
            least = found["ctx"]["min_length"]
            return f"'{key}' must have at least {least} entries, got {value}."
        case "value_error":
            reason = found["msg"].removeprefix("Value error, ")
            return f"'{key}': {reason}" if key else reason
        case "model_type" | "dict_type":
            return f"'{key}' must be a table, got {value}."
        case "string_pattern_mismatch" if path[-1].startswith("key"):  # it may be one: not shown
            return f"'{key}' must be the name of an environment variable, and never a key itself."
        case "string_pattern_mismatch":
            return f"'{key}' is {value}, which is not allowed; {_PATTERNS[path[-1]]}."
        case _:
            return f"'{key}' {_expected(found['msg'])}, got {value}."


_PATTERNS = {
    "name": "use letters, digits, '.', '_' and '-', beginning with a letter or digit",
    "kind": "write a factory as package.module:function",
}


def _place(
    loc: tuple[int | str, ...], model: type[BaseModel]
) -> tuple[list[str], type[BaseModel]]:
    """The dotted key of a place, and the table it belongs to.

    Pydantic names the member of a union in between, which is no key of the file.
    """
    table = str(loc[0]) if loc else ""
    path = [table] if loc else []
    owner = model
    rest = list(loc[1:])
    if table in _KINDS and rest:
        owner = _KINDS[table][str(rest.pop(0))]
    elif rest:
        owner = _model(model, table)
    for part in rest:
        if part in owner.model_fields and part != rest[-1]:
            owner = _model(owner, str(part))
        if isinstance(part, str) and (len(path) == 1 or not _is_union_member(part)):
            path.append(part)
        elif isinstance(part, int):
            path[-1] += f"[{part}]"
    return path, owner


def _model(model: type[BaseModel], table: str) -> type[BaseModel]:
    annotation: Any = model.model_fields[table].annotation
    for found in (annotation, *get_args(annotation)):  # a table that may be left out is a union
        if isinstance(found, type) and issubclass(found, BaseModel):
            return found
    return model


def _is_union_member(part: str) -> bool:
    return "[" in part or part == "str" or part.startswith("constrained-")


def _kinds(table: str) -> str:
    return ", ".join(repr(kind) for kind in _KINDS[table])


def _near_kind(table: str, kind: str) -> str:
    return nearest(kind, _KINDS[table])


def _expected(message: str) -> str:
    """Pydantic's message as the rest of our sentence."""
    text = message.replace("Input should", "must").replace("should", "must")
    for plain, better in (
        ("a valid integer", "a whole number"),
        ("a valid number", "a number"),
        ("a valid string", "text"),
        ("a valid boolean", "true or false"),
        ("a valid tuple", "a list"),
        ("a valid array", "a list"),
        ("greater than or equal to", "at least"),
        ("less than or equal to", "at most"),
    ):
        text = text.replace(plain, better)
    return text if text.startswith("must") else f"is wrong: {text}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
