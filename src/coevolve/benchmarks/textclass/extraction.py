"""The final answer within what a harness returned."""

import json
import re

_FENCE = "```"
_OBJECT = re.compile(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
"""Braces with at most one further level of braces between them."""


def final_answer(text: str) -> str:
    """The `final_answer` of a JSON object in an answer, or the answer as it is.

    A code fence the text begins with is taken off first. The whole of it may be the object, or
    the first braces in it; what is then no object with that key leaves the answer as it was.

    >>> final_answer('{"reasoning": "It is wet.", "final_answer": "rain"}')
    'rain'
    >>> final_answer("rain")
    'rain'
    """
    if not text:
        return ""
    bare = _unfenced(text.strip())
    found = _field(bare)
    if found is None and (braces := _OBJECT.search(bare)):
        found = _field(braces.group())
    return text if found is None else found


def _field(text: str) -> str | None:
    """The field of a text that is one JSON object, if it is and has it."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # a nest too deep is no answer either
        return None
    if not isinstance(value, dict) or "final_answer" not in value:
        return None
    return str(value["final_answer"])


def _unfenced(text: str) -> str:
    """What stands in the fence a text begins with: in the first one marked json, if any is."""
    if not text.startswith(_FENCE):
        return text
    lines = [line.strip() for line in text.splitlines()]
    marked = next((n for n, line in enumerate(lines) if line.startswith(f"{_FENCE}json")), None)
    if marked is not None and (inside := _until_fence(text.splitlines()[marked + 1 :])):
        return "\n".join(inside)
    parts = text.split(_FENCE)
    if len(parts) < 3:
        return text
    return parts[1].removeprefix("json").strip()


def _until_fence(lines: list[str]) -> list[str]:
    """The lines before the first that closes a fence."""
    ends = (n for n, line in enumerate(lines) if line.strip().startswith(_FENCE))
    return lines[: next(ends, len(lines))]
