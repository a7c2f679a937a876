"""A trace as HTML: prompts and answers, steps of a terminal, or any other JSON."""

from collections.abc import Iterator, Mapping
from typing import Any

from coevolve.formatting import json_text, markup

MOST_TEXT = 20_000
"""Characters of one text."""
MOST_ITEMS = 200
"""Entries of one list or table."""
_DEEPEST = 8
_ENTRY = 20
"""What an entry costs besides its text."""
_SPEAKERS = ("role", "by")
"""Keys that say who spoke."""
_WORDS = ("content", "said", "text")
"""Keys of what was said, which need no label."""


def trace(content: Any, budget: int = 400_000) -> Iterator[str]:
    """The content of a trace; at most about `budget` characters of it."""
    room = [budget]
    yield '<div class="trace">'
    yield from _value(content, room, 0)
    yield "</div>"
    if room[0] <= 0:
        yield '<p class="count">The trace is longer; `coevolve show` prints all of it.</p>'


def _value(value: Any, room: list[int], depth: int) -> Iterator[str]:
    if room[0] <= 0:
        return
    room[0] -= _ENTRY  # so that many empty entries end too
    if depth > _DEEPEST:
        value = json_text(value, ascii=False)
    if isinstance(value, Mapping):
        yield from _record(value, room, depth)
    elif isinstance(value, list):
        yield from _list(value, room, depth)
    else:
        yield _text(value, room)


def _record(value: Mapping[Any, Any], room: list[int], depth: int) -> Iterator[str]:
    known = {str(name): inner for name, inner in value.items() if inner not in (None, "", [], {})}
    speaker = next((name for name in _SPEAKERS if isinstance(known.get(name), str)), None)
    if speaker is not None and any(name in known for name in (*_WORDS, "called", "saw")):
        yield from _turn(known, speaker, room, depth)
        return
    yield "<dl>"
    for name, inner in list(known.items())[:MOST_ITEMS]:
        yield f"<dt>{markup(name, 80)}</dt><dd>"
        yield from _value(inner, room, depth + 1)
        yield "</dd>"
    yield "</dl>"


def _turn(known: Mapping[str, Any], speaker: str, room: list[int], depth: int) -> Iterator[str]:
    """What one side of a conversation said or did."""
    who = str(known[speaker])
    kind = who if who in ("system", "user", "assistant", "agent", "tool") else "other"
    yield f'<div class="turn {kind}"><h4>{markup(who, 40)}</h4>'
    for name, inner in known.items():
        if name == speaker:
            continue
        if name not in _WORDS:
            yield f'<p class="what">{markup(name, 80)}</p>'
        yield from _value(inner, room, depth + 1)
    yield "</div>"


def _list(value: list[Any], room: list[int], depth: int) -> Iterator[str]:
    if all(not isinstance(inner, Mapping | list) and len(str(inner)) < 60 for inner in value):
        text = ", ".join(inner if isinstance(inner, str) else json_text(inner) for inner in value)
        yield _text(text, room)
        return
    yield '<ol class="items">'
    for inner in value[:MOST_ITEMS]:
        yield "<li>"
        yield from _value(inner, room, depth + 1)
        yield "</li>"
    yield "</ol>"
    if len(value) > MOST_ITEMS:
        yield f'<p class="count">The first {MOST_ITEMS} of {len(value):,} are shown.</p>'


def _text(value: Any, room: list[int]) -> str:
    text = value if isinstance(value, str) else json_text(value, ascii=False)
    most = max(200, min(MOST_TEXT, room[0]))
    room[0] -= min(len(text), most)
    cut = ""
    if len(text) > most:
        cut = f'<p class="count">{most:,} of {len(text):,} characters are shown.</p>'
    body = markup(text[:most])
    if "\n" in text or len(text) > 120:
        return f'<pre tabindex="0" role="region" aria-label="Text">{body}</pre>{cut}'
    return f"<span>{body}</span>"
