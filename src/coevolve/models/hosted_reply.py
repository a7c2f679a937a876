"""What a service answered, as a reply."""

import re
from typing import Any

from coevolve.models.errors import ModelReplyError, RequestRefused
from coevolve.models.request import ModelReply

_CHANNEL = re.compile(
    r"<\|channel\|>\s*(?P<name>\w+)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>"
    r"(?P<text>.*?)(?=<\|(?:end|return|call|start|channel)\|>|\Z)",
    re.DOTALL,
)


def read(answer: Any, where: str) -> ModelReply:
    """The reply in an answer of LiteLLM; tokens are 0 where the service does not tell.

    Only what the model says counts, not what it thought: a model that was cut off while it
    thought has said nothing.
    """
    choices = getattr(answer, "choices", None)
    if not choices:
        raise ModelReplyError(f"{where} sent a completion without any choice.")
    choice = choices[0]
    if choice.finish_reason == "content_filter":
        raise RequestRefused(f"{where} stopped the answer by its content filter.")
    usage = getattr(answer, "usage", None)
    cut = choice.finish_reason == "length"
    read_in = _number(usage, "prompt_tokens")
    kept = _number(getattr(usage, "prompt_tokens_details", None), "cached_tokens")
    return ModelReply(
        text=whole(_text(choice.message, cut, where)),
        finish="length" if cut else "stop",
        tokens_in=read_in,
        tokens_out=_number(usage, "completion_tokens"),
        tokens_kept=min(kept, read_in),
    )


def _text(message: Any, cut: bool, where: str) -> str:
    content = getattr(message, "content", None)
    if isinstance(content, str):
        return final(content, cut)
    refusal = (getattr(message, "provider_specific_fields", None) or {}).get("refusal")
    if content is None and isinstance(refusal, str):
        return refusal
    # It may have thought aloud, or called a tool that nobody offered.
    silent = any(getattr(message, part, None) for part in ("reasoning_content", "tool_calls"))
    if content is None and (cut or silent):
        return ""
    raise ModelReplyError(f"{where} sent a completion without a text.")


def final(text: str, cut: bool = False) -> str:
    """The last thing said aloud in a text with the channels of gpt-oss; other texts as they are.

    >>> final("<|channel|>analysis<|message|>Wet?<|end|><|channel|>final<|message|>yes<|return|>")
    'yes'
    >>> final("<|channel|>analysis<|message|>Well, water", cut=True), final("yes")
    ('', 'yes')
    """
    if "<|channel|>" not in text:
        return text
    said = [found["text"] for found in _CHANNEL.finditer(text) if found["name"] == "final"]
    if said:
        return str(said[-1])
    return "" if cut else text


def whole(text: str) -> str:
    r"""A text with a mark in place of half a character, which is no text that could be sent on.

    >>> whole("half \ud83d"), whole("whole \ud83d\ude00")
    ('half �', 'whole 😀')
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def until(text: str, stop: tuple[str, ...]) -> str:
    """The text up to the first of the stops, for services that know no stops, or not so many.

    >>> until("billing, not access", (", ", "access"))
    'billing'
    """
    return text[: min((text.index(end) for end in stop if end in text), default=len(text))]


def _number(holder: Any, name: str) -> int:
    value = getattr(holder, name, None)
    return value if isinstance(value, int) and value > 0 else 0
