"""How answers read: numbers, tables, and the gist of a trace."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

MOST_ROWS = 100
_LONGEST = 44
_LAST = 220
_CONTROL = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def printed(found: dict[str, Any]) -> str:
    """An answer as text: its values one below the other, its lists of things as tables."""
    lines: list[str] = []
    width = max((len(name) for name in found), default=0)
    for name, value in _columns(found).items():
        if name == "content":
            lines += ["", *rendered(value)]
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            lines += ["", f"{name}: {len(value)}", *(f"  {line}" for line in table(value)), ""]
        elif name == "diff":
            lines += [value, ""]
        elif value not in (None, ""):
            lines.append(f"{name:<{width}}  {cell(name, value)}")
    return "\n".join(lines).strip("\n").translate(_CONTROL) + "\n"


def table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Rows in columns, under the names of their keys; columns without a value are left out."""
    shown = [_columns(row) for row in rows[:MOST_ROWS]]
    names = [name for name in shown[0] if any(row[name] not in (None, "", []) for row in shown)]
    cells = [names, *([short(cell(n, row[n]), _width(n, names)) for n in names] for row in shown)]
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
        return score(value) if "value" in value else f"{len(value)}"
    if isinstance(value, list):
        more = f" and {len(value) - 6} more" if len(value) > 6 else ""
        return (", ".join(map(str, value[:6])) or "none") + more
    if isinstance(value, float):
        return f"{value:+.3f}" if name == "delta" else f"{value:.3g}"
    return " ".join(str(value).split())


def score(estimate: dict[str, Any]) -> str:
    """An estimate with its standard error, cut to [0, 1]; an exact score has none.

    >>> score({"value": 0.8123, "se": 0.041, "exact": False})
    '0.812 ± 0.041'
    >>> score({"value": -0.4, "se": None, "exact": False}), score({"value": 0.5, "exact": True})
    ('≤0.000 ± ?', '0.500')
    """
    value = estimate["value"]
    passed = "≤" if value < -5e-4 else "≥" if value > 1 + 5e-4 else ""
    shown = f"{passed}{min(max(value, 0.0), 1.0):.3f}"
    if estimate["exact"]:
        return shown
    return f"{shown} ± ?" if estimate["se"] is None else f"{shown} ± {estimate['se']:.3f}"


def interval(estimate: dict[str, Any] | None) -> str:
    """Where the full-set score may well be.

    >>> interval({"low": 0.6118, "high": 1.107, "exact": False})
    '0.612 to 1.000'
    """
    if estimate is None or (not estimate["exact"] and estimate["low"] is None):
        return ""
    if estimate["exact"]:
        return "exact"
    low, high = (min(max(estimate[end], 0.0), 1.0) for end in ("low", "high"))
    return f"{low:.3f} to {high:.3f}"


def short(text: str, most: int) -> str:
    """The beginning of a text.

    >>> short("a long story", 8)
    'a lon...'
    """
    return text if len(text) <= most else f"{text[: most - 3]}..."


def gist(trace: str | None) -> str:
    """What a trace says in a line: the last line of its error, then its short values.

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
    """A trace as JSON, or as the text it is."""
    try:
        return json.loads(trace)
    except (ValueError, RecursionError):
        return trace


def flat(content: Any) -> Any:
    """What the benchmark says beside what the harness printed and raised."""
    if isinstance(content, dict) and isinstance(content.get("trace"), dict):
        return {**content["trace"], **{k: v for k, v in content.items() if k != "trace"}}
    return content


def rendered(value: Any, depth: int = 0) -> Iterator[str]:
    """JSON as people read it: texts with their lines, names beside values."""
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
    """What is shown of a candidate: its interval and its tasks beside its estimate."""
    made: dict[str, Any] = {}
    for name, value in row.items():
        made[name] = value
        if name == "estimate":
            made["interval"] = interval(value)
            made["of tasks"] = f"{value['tasks']}/{value['pool_size']}" if value else ""
    return made


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
