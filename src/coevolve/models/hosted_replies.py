"""What a service answered: a reply, a choice, or one of our errors.

LiteLLM invents a status where there was none: 500 for a lost connection as well as for a reply
that is no JSON. Only an error with the headers of a response has a status of the service.

No message holds the key: what a service says of a key is left out, and the key itself is struck
out of everything else.
"""

import json
import re
import ssl
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from coevolve.models.hosted_service import Service, unknown_service
from coevolve.models.model_errors import (
    ContextTooLong,
    ModelError,
    ModelKeyError,
    ModelNotFound,
    ModelReplyError,
    ModelUnavailable,
    RequestRefused,
)
from coevolve.models.provider import Message, ModelReply, ModelRequest
from coevolve.service_words import WAIT_STATUSES, Meaning, meaning_of

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


_LOST = ("APIConnectionError", "Timeout", "TimeoutError", "ConnectionError", "TransportError")
_OUTPUT = ("max_tokens", "max_completion_tokens", "output tokens", "in the completion")
_ROOM = re.compile(r"context (?:length|window|size)\D{0,40}(\d+)")
_PREFIX = re.compile(r"^(?:(?:litellm\.)?\w* ?(?:Error|Exception|Timeout)(?:: | - ))+")
_SUFFIX = re.compile(r"\s*(?:Traceback \(most|To drop |Pass model as ).*", re.DOTALL)


class _Trouble(NamedTuple):
    """What an error of LiteLLM says."""

    kind: str
    status: int
    headers: Any | None  # of the response of the service, if there was one
    said: str
    words: str  # all of it, in small letters, to look for what it means
    parameter: str

    @property
    def meaning(self) -> Meaning | None:
        return meaning_of(self.words, self.status)


def understood(
    error: Exception, service: Service, request: ModelRequest, *, proven: bool = False
) -> ModelError:
    """The error of ours that an error of LiteLLM means.

    A service that is `proven` has answered before, so that nothing is wrong with the settings.
    """
    trouble = _trouble(error, service)
    return (
        _of_way(error, trouble, service)
        or _of_account(trouble, service)
        or _of_length(trouble, service, request)
        or _of_policy(trouble, service)
        or _of_status(trouble, service, proven and _is_composed(request))
    )


def _trouble(error: Exception, service: Service) -> _Trouble:
    status, body = getattr(error, "status_code", None), getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    named = inner.get("param") if isinstance(inner, dict) else None
    headers = getattr(error, "litellm_response_headers", None)
    return _Trouble(
        kind=type(error).__name__,
        status=status if isinstance(status, int) else 0,
        headers=headers or getattr(getattr(error, "response", None), "headers", None) or None,
        said=service.struck(_SUFFIX.sub("", _PREFIX.sub("", str(error)))),
        words=f"{error} {body or ''}".lower(),
        parameter=named if isinstance(named, str) else "",
    )


def _of_way(error: Exception, trouble: _Trouble, service: Service) -> ModelError | None:
    """What keeps a request from the service, or an answer from us."""
    chain = list(_chain(error))
    where = service.where
    if any(isinstance(link, ssl.SSLCertVerificationError) for link in chain):
        return ModelNotFound(
            f"the certificate of {where} is not trusted here. Install it, or check base_url."
        )
    if missing := next((link for link in chain if isinstance(link, ImportError)), None):
        return ModelNotFound(f"LiteLLM cannot ask {service.name}: {missing}. Install that module.")
    if "llm provider not provided" in trouble.words:
        return ModelNotFound(unknown_service(service.name))
    if trouble.headers is None and trouble.kind == "Timeout":
        return ModelUnavailable(f"{where} did not answer within {service.timeout:g} s.")
    # LiteLLM's own APIConnectionError stands for everything it does not know: only causes count.
    if trouble.headers is None and any(map(_is_lost, chain[1:])):
        said = service.struck(str(chain[-1]))
        return ModelUnavailable(f"{where} could not be reached, or broke off: {said}.")
    return None


def _of_account(trouble: _Trouble, service: Service) -> ModelError | None:
    held = f"the key in {service.variable}" if service.variable else "the key"
    if trouble.status == 402 or trouble.meaning is Meaning.NO_CREDIT:
        return ModelKeyError(
            f"the account behind {held} has no credit left at {service.where}. Add credit, then "
            "resume the run."
        )
    # Some services answer 403 to what they will not read.
    refused = trouble.status in (401, 403) and trouble.meaning is not Meaning.NOT_ANSWERED
    if refused or trouble.meaning is Meaning.KEY_REFUSED:
        given = held if service.key else "a request without a key"
        return ModelKeyError(
            f"{service.where} refuses {given} (status {trouble.status}). Check "
            f"{service.variable or 'the key'}, and that it may use {service.name}."
        )
    return None


def _of_length(trouble: _Trouble, service: Service, request: ModelRequest) -> ModelError | None:
    named = trouble.kind == "ContextWindowExceededError" or trouble.status == 413
    if not named and trouble.meaning is not Meaning.TOO_LONG:
        return None
    output = any(word in trouble.words for word in _OUTPUT)
    room = _ROOM.search(trouble.words) if output else None
    if room and request.max_tokens >= int(room[1]):  # then no prompt would fit
        return ModelNotFound(
            f"{service.name} reads and writes {int(room[1]):,} tokens at {service.where}, and "
            f"max_tokens is {request.max_tokens:,}. Lower max_tokens."
        )
    return ContextTooLong(f"the prompt is too long for {service.name}: {trouble.said}.")


def _of_policy(trouble: _Trouble, service: Service) -> ModelError | None:
    named = trouble.kind in ("ContentPolicyViolationError", "RejectedRequestError")
    if not named and trouble.meaning is not Meaning.NOT_ANSWERED:
        return None
    return RequestRefused(f"{service.where} will not answer: {trouble.said}.")


def _is_composed(request: ModelRequest) -> bool:
    """Whether a harness gave more than a prompt, of which a service may not like the form."""
    return bool(request.messages or request.stop or request.choices)


def _of_status(trouble: _Trouble, service: Service, composed: bool) -> ModelError:
    where, said, status = service.where, trouble.said, trouble.status
    if trouble.headers is None and status in (0, 422, 500):
        return ModelReplyError(f"{where} sent a reply that cannot be read: {said}.")
    if status in WAIT_STATUSES or status >= 500:
        after = _retry_after(trouble.headers)
        return ModelUnavailable(f"{where} answered {status}: {said}.", retry_after=after)
    named = trouble.parameter.startswith(("messages", "prompt", "stop"))
    if named or (composed and status in (400, 422)):
        return RequestRefused(f"{where} refuses the request: {said}.")
    if status == 404:
        return ModelNotFound(
            f"{where} knows no model {service.name!r}, or none is served there: {said}. Check the "
            "name of the model and its address, which mostly ends in /v1."
        )
    return ModelNotFound(
        f"{where} refuses how {service.name} is asked: {said}. Check the name of the model and "
        "its settings."
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_lost(error: BaseException) -> bool:
    return any(base.__name__ in _LOST for base in type(error).__mro__)


def _retry_after(headers: Any | None) -> float | None:
    """Seconds, from a header with seconds or a date; None if it has neither."""
    given = None if headers is None else headers.get("retry-after")
    if not given:
        return None
    try:
        return max(0.0, float(given))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(given) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
