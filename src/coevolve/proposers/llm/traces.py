"""Traces in few words: every part is named, and long texts lose their middle."""

import json
from collections.abc import Iterator
from typing import Any

from coevolve.proposers.llm.clipping import clip, size

_LENGTHS = (4_000, 2_000, 1_000, 500, 250, 120, 60)
_MOST_ITEMS = 40


def shortened(trace: str | None, most: int) -> str:
    """A trace as lines of that many bytes at most.

    >>> print(shortened('{"trace": {"question": "6 x 7?", "calls": [{"answer": "42"}]}}', 200))
    question: 6 x 7?
    calls:
      - answer: 42
    >>> shortened(None, 200)
    '(no trace was kept)'
    """
    if trace is None:
        return clip("(no trace was kept)", most)
    try:
        value = json.loads(trace)
    except (ValueError, RecursionError):
        return clip(trace, most)
    if isinstance(value, dict) and isinstance(value.get("trace"), dict):
        value = {**value.pop("trace"), **value}  # what was printed and raised comes last
    text = trace
    for longest in _LENGTHS:
        try:
            text = "\n".join(_lines(value, longest))
        except RecursionError:
            break
        if size(text) <= most:
            break
    return clip(text, most)


def _lines(value: Any, longest: int, indent: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _entry(f"{indent}{key}:", part, longest, indent)
    elif isinstance(value, list):
        for part in value[:_MOST_ITEMS]:
            inner = list(_lines(part, longest, f"{indent}  "))
            if inner:
                yield f"{indent}- {inner[0].removeprefix(f'{indent}  ')}"
                yield from inner[1:]
        if len(value) > _MOST_ITEMS:
            yield f"{indent}… {len(value) - _MOST_ITEMS:,} more …"
    else:
        yield f"{indent}{_scalar(value, longest)}"


def _entry(head: str, part: Any, longest: int, indent: str) -> Iterator[str]:
    if part is None or part in ("", [], {}):
        return
    if isinstance(part, dict | list):
        yield head
        yield from _lines(part, longest, f"{indent}  ")
        return
    text = _scalar(part, longest)
    if "\n" not in text:
        yield f"{head} {text}"
        return
    yield f"{head} |"
    yield from (f"{indent}  {line}" for line in text.split("\n"))


def _scalar(value: Any, longest: int) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clip(text.strip("\n"), longest)
