"""Inputs for the fuzz targets: any JSON, samples with changes, and bytes that are neither."""

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

ANY_TEXT = st.text(max_size=30)
"""Text of every character, also controls, marks that change direction, and half pairs."""
_ODD_TEXTS = ["", " ", "\ud800", "\x1b[2J", "\u202e", "../x", "nan", "1e999", "x" * 5_000]
_ODD_NUMBERS = [-1, 0, 2**31, 2**63, 2**64, 10**400, -(10**400), 1e308, 5e-324, -0.0]
_DEPTHS = (10, 199, 201, 1_000, 50_000)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | ANY_TEXT
    | st.sampled_from(_ODD_TEXTS)
    | st.sampled_from(_ODD_NUMBERS)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=8,
)
"""Any value that JSON can hold, and NaN."""


def _deep(depth: int, ends: tuple[str, str], closed: bool) -> bytes:
    return (ends[0] * depth + (ends[1] * depth if closed else "")).encode()


DEEP = st.builds(
    _deep,
    st.sampled_from(_DEPTHS),
    st.sampled_from([("[", "]"), ('{"a":', "}"), ("(", ")"), ("-", "")]),
    st.booleans(),
)
"""JSON that is nested deeper than Python can recurse."""
_INSERTED = (
    st.binary(max_size=8)
    | st.sampled_from([b"\0", b"\xff\xfe", b"\n", b"\r", b'"', b"\\u", b"```", b"NaN", b"1e999"])
    | st.sampled_from([b"9" * 5_000, b"\xed\xa0\x80", b"\\ud800", b"{}", b"[]", b"null"])
    | DEEP
)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from _paths(value[key], (*path, key))
    elif isinstance(value, list):
        for place in range(len(value)):
            yield from _paths(value[place], (*path, place))


@st.composite
def changed(draw: st.DrawFn, *samples: Any) -> Any:
    """A sample of JSON in which up to three values are others, missing or under another key."""
    value = copy.deepcopy(draw(st.sampled_from(samples)))
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from(list(_paths(value))))
        if not path:
            if draw(st.integers(0, 9)) == 0:
                value = draw(VALUES)
            continue
        holder = value
        for part in path[:-1]:
            holder = holder[part]
        how = draw(st.sampled_from(["other", "other", "missing", "added"]))
        if how == "missing":
            del holder[path[-1]]
        elif how == "added" and isinstance(holder, dict):
            holder[draw(ANY_TEXT)] = draw(VALUES)
        else:
            holder[path[-1]] = draw(VALUES)
    return value


@st.composite
def spoiled(draw: st.DrawFn, *samples: bytes) -> bytes:
    """A sample of bytes with up to four cuts, insertions, repetitions and other bytes."""
    data = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        until = draw(st.integers(at, min(len(data), at + 40)))
        how = draw(st.sampled_from(["insert", "replace", "cut", "end", "repeat"]))
        if how == "insert":
            data = data[:at] + draw(_INSERTED) + data[at:]
        elif how == "replace":
            data = data[:at] + draw(_INSERTED) + data[until:]
        elif how == "cut":
            data = data[:at] + data[until:]
        elif how == "end":
            data = data[:at]
        else:
            data = data[:until] + data[at:]
    return data


def json_bytes(*samples: Any) -> st.SearchStrategy[bytes]:
    """Bytes that are JSON like the samples, almost JSON, or something else."""
    written = [json.dumps(sample).encode() for sample in samples]
    return (
        changed(*samples).map(lambda value: json.dumps(value).encode())
        | spoiled(*written)
        | st.binary(max_size=60)
        | DEEP
    )


def texts(*samples: str) -> st.SearchStrategy[str]:
    """Texts like the samples, and others."""
    written = [sample.encode() for sample in samples]
    return spoiled(*written).map(lambda data: data.decode(errors="surrogateescape")) | ANY_TEXT
