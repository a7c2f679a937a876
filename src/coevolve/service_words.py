"""Words in the errors of model services, and what they mean.

Errors are classified in two places: `coevolve.models` for calls through the gateway, and
`coevolve.executors` for calls that a benchmark makes itself. Both use these lists.
"""

from enum import StrEnum

CREDIT = (
    "insufficient_quota",
    "exceeded your current quota",
    "credit balance",
    "insufficient credit",
    "billing_hard_limit",
    "billing hard limit",
    "billing_not_active",
    "enable billing",
)
"""The account has no credit left, and waiting does not help."""

WAIT = ("retry in", "retry after", "retrydelay", "try again in")
"""Waiting helps, even if the error mentions a quota."""

KEY = ("api key not valid", "api_key_invalid", "invalid api key", "invalid_api_key")
"""The service refuses the key."""

CONTEXT = (
    "context length",
    "context_length",
    "context window",
    "context size",
    "context_size",
    "prompt is too long",
    "input is too long",
    "too many tokens",
)
"""The prompt is longer than the model can read; only in an error with status 400 or 422."""

TOO_LARGE = ("request too large", "request_too_large", "tokens must be reduced")
"""The request is larger than the service ever accepts; also in an error with status 413 or 429."""

POLICY = (
    "content policy",
    "content_policy",
    "content filter",
    "content_filter",
    "content management policy",
    "safety system",
    "usage policies",
    "input was flagged",
)
"""The service does not answer such a prompt; only in an error with status 400, 403 or 422."""

WAIT_STATUSES = frozenset((408, 409, 425, 429))
"""HTTP statuses below 500 after which a request may be repeated."""

_REJECTED = frozenset((400, 422))
_SIZED = _REJECTED | {413, 429}
_FORBIDDEN = _REJECTED | {403}


class Meaning(StrEnum):
    """What the words of an error mean."""

    NO_CREDIT = "no credit"
    KEY_REFUSED = "key refused"
    TOO_LONG = "too long"
    NOT_ANSWERED = "not answered"


def meaning_of(text: str, status: int) -> Meaning | None:
    """What the text of a service's error means; None if it has none of the words.

    Args:
        text: The error message.
        status: The HTTP status; 0 if unknown.

    >>> meaning_of("Your credit balance is too low.", 400)
    <Meaning.NO_CREDIT: 'no credit'>
    >>> meaning_of("Request too large on tokens per min: Limit 10000, Requested 14000.", 429)
    <Meaning.TOO_LONG: 'too long'>
    >>> meaning_of("You exceeded your current quota. Please retry in 34 s.", 429) is None
    True
    """
    text = text.lower()
    if status in _SIZED and _any(TOO_LARGE, text):
        return Meaning.TOO_LONG
    if _any(CREDIT, text) and not _any(WAIT, text):
        return Meaning.NO_CREDIT
    if _any(KEY, text):
        return Meaning.KEY_REFUSED
    if status in _REJECTED and _any(CONTEXT, text):
        return Meaning.TOO_LONG
    if status in _FORBIDDEN and _any(POLICY, text):
        return Meaning.NOT_ANSWERED
    return None


def _any(words: tuple[str, ...], text: str) -> bool:
    return any(word in text for word in words)
