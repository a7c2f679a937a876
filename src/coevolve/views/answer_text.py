"""The answer to a query as text: labels, tables, and the summary of a trace.

Like `formatting`, this module is part of the program `bin/coevolve` of a workspace: standard
library only, Python 3.9.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from coevolve.formatting import (
    CLIPPED,
    difference,
    estimate,
    interval,
    is_clipped,
    short,
    tasks_seen,
    visible,
)

MOST_ROWS = 100
_LONGEST = 44
_LAST = 220
_LABELS = {
    "better": "solved better by",
    "says": "trace",
    "tasks_of_both": "shared tasks",
    "mean_score": "score",
    "without_score": "without a score",
}
"""Labels that differ from their keys."""


def printed(found: dict[str, Any]) -> str:
    """An answer as text: one value per line, lists of records as tables."""
    lines: list[str] = []
    columns = _columns(found)
    width = max((len(_label(name)) for name in columns), default=0)
    for name, value in columns.items():
        label = _label(name)
        if name == "content":
            lines += ["", *rendered(value)]
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            lines += ["", f"{label}: {len(value)}", *(f"  {line}" for line in table(value)), ""]
        elif name == "diff":
            lines += [value, ""]
        elif value not in (None, ""):
            lines.append(f"{label:<{width}}  {cell(name, value)}")
    records = [found, *(row for rows in found.values() if isinstance(rows, list) for row in rows)]
    if any(isinstance(row, dict) and is_clipped(row.get("estimate")) for row in records):
        lines += ["", CLIPPED]
    return visible("\n".join(lines).strip("\n")) + "\n"


def table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Rows in columns, under the labels of their keys, without empty columns."""
    shown = [_columns(row) for row in rows[:MOST_ROWS]]
    names = [name for name in shown[0] if any(row[name] not in (None, "", []) for row in shown)]
    head = [_label(name) for name in names]
    cells = [head, *([short(cell(n, row[n]), _width(n, names)) for n in names] for row in shown)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(names))]
    for line in cells:
        yield "  ".join(f"{text:<{widths[at]}}" for at, text in enumerate(line)).rstrip()
    if len(rows) > MOST_ROWS:
        yield f"... and {len(rows) - MOST_ROWS} more; --json prints all"


def cell(name: str, value: Any) -> str:
    """A value in a word or two.

    >>> cell("delta", 0.0412), cell("score", 1.0), cell("score", None), cell("parents", ["a", "b"])
    ('+0.041', '1', 'missing', 'a, b')
    """
    if value is None:
        return "missing" if name == "score" else "-"
    if name == "round" and value == 0:
        return "start"
    if isinstance(value, dict):
        return estimate(value) if "value" in value else f"{len(value)}"
    if isinstance(value, list):
        more = f" and {len(value) - 6} more" if len(value) > 6 else ""
        return (", ".join(map(str, value[:6])) or "none") + more
    if isinstance(value, float):
        return difference(value) if name == "delta" else f"{value:.3g}"
    return " ".join(str(value).split())


def gist(trace: str | None) -> str:
    """A trace in one line: the last line of its error, then its short values.

    >>> gist('{"trace": {"question": "6 x 7?", "answer": "41", "calls": []}}')
    'question: 6 x 7?, answer: 41'
    """
    found = None if trace is None else flat(parsed(trace))
    if not isinstance(found, dict):
        return "" if found is None else short(" ".join(str(found).split()), 160)
    error = str(found.get("error") or "").strip().splitlines()[-1:]
    plain = [
        f"{name}: {short(' '.join(_plain(value).split()), 40)}"
        for name, value in found.items()
        if name != "error" and value != "" and not isinstance(value, (dict, list))
    ]
    return short(", ".join([*error, *plain]), 240)


def parsed(trace: str) -> Any:
    """A trace as JSON, or as plain text where it is not JSON."""
    try:
        return json.loads(trace)
    except (ValueError, RecursionError):
        return trace


def flat(content: Any) -> Any:
    """What the benchmark recorded, merged with what the harness printed and raised."""
    if isinstance(content, dict) and isinstance(content.get("trace"), dict):
        return {**content["trace"], **{k: v for k, v in content.items() if k != "trace"}}
    return content


def rendered(value: Any, depth: int = 0) -> Iterator[str]:
    """JSON as indented text; strings keep their line breaks."""
    pad = "  " * depth
    if isinstance(value, dict):
        for name, inner in value.items():
            if _is_short(inner):
                yield f"{pad}{name}: {_plain(inner)}"
            else:
                yield f"{pad}{name}:"
                yield from rendered(inner, depth + 1)
    elif isinstance(value, list):
        for number, inner in enumerate(value, 1):
            yield f"{pad}{number}."
            yield from rendered(inner, depth + 1)
    else:
        yield from (f"{pad}{line}" for line in _plain(value).split("\n"))


def _columns(row: dict[str, Any]) -> dict[str, Any]:
    """The values of a record to show; a score adds its tasks, an estimate its interval too."""
    made: dict[str, Any] = {}
    for name, value in row.items():
        made[name] = value
        if name == "estimate":
            made["interval"] = interval(value)
        if name in ("estimate", "mean_score"):
            made["tasks"] = tasks_seen(value) if value else ""
    return made


def _label(name: str) -> str:
    return _LABELS.get(name, name)


def _is_short(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_short(inner) and not isinstance(inner, list) for inner in value)
    return value == {} or (not isinstance(value, dict) and "\n" not in _plain(value))


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_plain, value)) or "[]"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _width(name: str, names: Sequence[str]) -> int:
    return _LAST if name == names[-1] else _LONGEST
