"""A choice among given answers, from services that complete texts."""

import json
import re
from collections.abc import Sequence
from typing import Any

from coevolve.models.request import Message

_FRAME = " \t\r\n.,:;!?\"'`*_[](){}<>。，：；！？“”‘’「」"
_MOST = 250
_LONGEST = 15_000


def asking(turns: Sequence[Message], choices: Sequence[str]) -> list[Message]:
    """The conversation, ending with a plain demand to answer with one of the choices.

    >>> asking([Message("user", "Is water wet?")], ["yes", "no"])[-1].content.splitlines()
    ['Is water wet?', '', 'Answer with exactly one of these, and nothing else:', '- yes', '- no']
    """
    listed = "\n".join(f"- {choice}" for choice in choices)
    demand = f"Answer with exactly one of these, and nothing else:\n{listed}"
    *before, last = turns
    if last.role != "user":
        return [*turns, Message("user", demand)]
    return [*before, Message("user", f"{last.content}\n\n{demand}")]


def schema(choices: Sequence[str]) -> dict[str, Any] | None:
    """A response format that leaves only the choices; None where services refuse so many.

    >>> schema(["yes", "no"])["json_schema"]["schema"]["properties"]
    {'answer': {'type': 'string', 'enum': ['yes', 'no']}}
    """
    if len(choices) > _MOST or sum(map(len, choices)) > _LONGEST:
        return None
    form = {
        "type": "object",
        "properties": {"answer": {"type": "string", "enum": list(choices)}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    return {
        "type": "json_schema",
        "json_schema": {"name": "choice", "strict": True, "schema": form},
    }


def chosen(text: str, choices: Sequence[str]) -> str:
    """The choice a reply means, or the reply itself where it means none or several.

    The reply to the letter, then without case, quotes and punctuation around it, then the only
    choice that occurs in it. A choice within a longer one is not counted.

    >>> chosen("**Type 2 diabetes**.", ["diabetes", "type 2 diabetes"])
    'type 2 diabetes'
    >>> chosen("Asthma or gout?", ["asthma", "gout"])
    'Asthma or gout?'
    """
    said = _unwrapped(text)
    for found in (_equal(said, choices), _contained(said, choices)):
        if len(found) == 1:
            return found[0]
    return text


def _unwrapped(text: str) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()
    answer = value.get("answer") if isinstance(value, dict) else value
    return answer.strip() if isinstance(answer, str) else text.strip()


def _equal(said: str, choices: Sequence[str]) -> list[str]:
    exact = [choice for choice in choices if choice.strip() == said]
    return exact or [choice for choice in choices if _plain(choice) == _plain(said)]


def _contained(said: str, choices: Sequence[str]) -> list[str]:
    left, found = _plain(said), []
    for plain in sorted({_plain(choice) for choice in choices} - {""}, key=len, reverse=True):
        # Chinese has no spaces: only Latin letters and digits make a longer word of a match.
        word = rf"(?<![a-z0-9_]){re.escape(plain)}(?![a-z0-9_])"
        left, times = re.subn(word, "\0", left) if plain in left else (left, 0)
        found += [choice for choice in choices if times and _plain(choice) == plain]
    return found


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_FRAME)
