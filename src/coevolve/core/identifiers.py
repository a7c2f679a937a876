"""Ids of tasks and candidates: text, numbers, truth values, and tuples of these.

JSON has no tuples. An event has lists in their place, and reading it turns them back.
"""

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Id = Any
"""An id that `is_id` accepts. Not a narrower type, because the caller knows which ids it has."""

KINDS = "a non-empty text, a number, a truth value or a tuple of these"


def is_id(value: object) -> bool:
    """Whether a value can be the id of a task or a candidate.

    >>> [is_id(value) for value in ("sort", 7, ("math", 7), "", (), None, float("nan"), ["a"])]
    [True, True, True, False, False, False, False, False]
    """
    if isinstance(value, tuple):
        return bool(value) and all(map(is_id, value))
    if isinstance(value, str):
        return bool(value)
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


def frozen(value: Any) -> Id:
    """An id from JSON or from numpy: lists become tuples, numpy's numbers plain ones.

    >>> frozen(["math", [1, 2]]), frozen(np.int64(3))
    (('math', (1, 2)), 3)
    """
    if isinstance(value, list | tuple):
        return tuple(map(frozen, value))
    return value.item() if isinstance(value, np.generic) else value


def all_frozen(values: Iterable[Any]) -> Sequence[Id]:
    """Many ids from JSON or from numpy; those that are all text are returned as they are."""
    values = values if isinstance(values, list | tuple) else list(values)
    return values if set(map(type, values)) <= {str} else [frozen(value) for value in values]


def plain(id: Id) -> Any:
    """An id as JSON writes it.

    >>> plain(("math", (1, 2)))
    ['math', [1, 2]]
    """
    return [plain(part) for part in id] if isinstance(id, tuple) else id


def all_plain(ids: Sequence[Id]) -> list[Any]:
    """Many ids as JSON writes them."""
    return [plain(id) for id in ids] if tuple in set(map(type, ids)) else list(ids)


def text_of(id: Id) -> str:
    """An id as text; different ids have different texts, unless one of them is such a text.

    >>> text_of("sort"), text_of(("math", 7)), text_of(True)
    ('sort', '["math",7]', 'true')
    """
    return id if isinstance(id, str) else json.dumps(plain(id), separators=(",", ":"))
