"""Hosted models and OpenAI-compatible servers, through LiteLLM."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from coevolve.models.hosted_service import Service, close, late, load, understood
from coevolve.models.model_errors import (
    ModelError,
    ModelNotFound,
    ModelReplyError,
    RequestRefused,
)
from coevolve.models.provider import (
    IMAGE_TOKENS,
    JSON,
    Finish,
    Message,
    ModelReply,
    ModelRequest,
    ToolCall,
)

_OPEN = ("temperature", "max_tokens", "reasoning_effort", "top_p")
"""The settings that both a harness and the configuration may set."""
_OF_REQUESTS = ("tools", "tool_choice", "parallel_tool_calls", "response_format", "top_p")
"""The settings that only a harness may set."""
_MOST_CALLS = 256


class HostedProvider:
    """A hosted model by its name in LiteLLM, or a model at any OpenAI-compatible server.

    With `base_url`, the name is that of the model at the server. An `openai/` before it is first
    tried as part of the name (it is, for gpt-oss), then without. Without `base_url`, the name is
    LiteLLM's, such as `openrouter/openai/gpt-oss-120b`.

    The reasoning of the model is not part of the text of the answer. `sample` is sent as the
    seed, and `stop` is sent, if the model accepts them; the answer ends before a stop in any
    case. Any other setting that a model does not accept, such as a temperature or a
    `reasoning_effort`, is an error: a run must not differ from its configuration.

    Choices are listed at the end of the prompt. An endpoint that is known to obey a JSON schema
    gets one. From other endpoints, the reply is matched to the choices, and returned unchanged if
    it matches none or several. Many servers ignore a schema or obey it only in part; set
    `strict_choices` if yours obeys it.

    Args:
        name: The model.
        base_url: The address of an OpenAI-compatible server, up to `/v1`.
        key: The key itself; it is never shown.
        key_variable: The name of its environment variable, for messages.
        timeout: Seconds to wait for the service.
        window: Tokens of prompt and answer together; None uses LiteLLM's table.
        strict_choices: Whether the endpoint obeys a JSON schema; None uses LiteLLM's table.

    >>> HostedProvider("served", base_url="http://localhost:8000/v1", key="sk-1")
    HostedProvider('served', base_url='http://localhost:8000/v1')
    """

    gives_scores = False
    takes_tools = True

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        key: str = "",
        key_variable: str = "",
        timeout: float = 600.0,
        window: int | None = None,
        strict_choices: bool | None = None,
    ) -> None:
        self._service = Service(
            name=name, base_url=base_url, key=key, variable=key_variable, timeout=timeout
        )
        self._names = self._service.names
        self._window, self._strict = window, strict_choices
        self._taken: dict[str, set[object]] = {setting: set() for setting in _OPEN}
        self._library: Any = None

    def __repr__(self) -> str:
        return f"HostedProvider({self._service.name!r}, base_url={self._service.base_url!r})"

    @property
    def identity(self) -> Mapping[str, JSON]:
        """The model and its address."""
        strict = {} if self._strict is None else {"strict_choices": self._strict}
        return {"name": self._service.name, "host": self._service.host, **strict}

    @property
    def window(self) -> int | None:
        """The given window, or that of a hosted model in LiteLLM's table."""
        if self._window is None and self._service.base_url is None:
            table, name = load().model_cost, self._service.name
            row = table.get(name) or table.get(name.partition("/")[2]) or {}
            self._window = row.get("max_input_tokens")
        return self._window

    async def complete(self, request: ModelRequest, /) -> ModelReply:
        """The answer to a request."""
        if request.scores:
            raise RequestRefused(
                f"{self._service.name} gives no scores: services do not return the probability of "
                "answers they did not give. Request one of the choices instead."
            )
        outcome = await self._tried(await self._loaded(), request)
        if isinstance(outcome, ModelError):
            raise outcome  # here, because no local variable contains the key
        for setting, values in self._taken.items():
            values.add(getattr(request, setting))
        return await self._counted(outcome, request)

    async def count(self, texts: Sequence[str], /) -> list[int]:
        """The tokens of each text by LiteLLM's tokenizer for the model; often an estimate."""
        library, name = await self._loaded(), self._service.name
        # gpt-oss has the tokens of gpt-4o; LiteLLM takes others, half as many again in Chinese.
        name = "gpt-4o" if "gpt-oss" in name else name

        def counts() -> list[int]:
            return [library.token_counter(model=name, text=text) for text in texts]

        return await asyncio.to_thread(counts)

    async def close(self) -> None:
        """Close the connections."""
        if self._library is not None:
            await close(self._library)

    async def _loaded(self) -> Any:
        if self._library is None:  # in a thread, because it takes seconds
            self._library = await asyncio.to_thread(load)
        return self._library

    async def _tried(self, library: Any, request: ModelRequest) -> ModelReply | ModelError:
        """The answer for the first name that the service knows, which is used from then on."""
        *likely, last = self._names
        for name in likely:
            outcome = await self._attempt(library, name, request)
            if isinstance(outcome, ModelReply):
                self._names = (name,)
            if not isinstance(outcome, ModelNotFound):
                return outcome
        return await self._attempt(library, last, request)

    async def _attempt(
        self, library: Any, name: str, request: ModelRequest
    ) -> ModelReply | ModelError:
        strict = self._strict
        if strict is None:
            hosted = self._service.base_url is None
            strict = hosted and bool(library.supports_response_schema(name))
        limit = asyncio.timeout(self._service.timeout)  # of the whole reply, not of a part
        try:
            async with limit:
                answer = await library.acompletion(
                    **arguments(library, self._service, name, request, strict=strict)
                )
            reply = read(answer, self._service.where, tools=bool(request.tools))
        except ModelError as error:
            return error
        except Exception as error:
            if limit.expired():
                return late(self._service)
            proven = any(self._taken.values())
            return self._blamed(understood(error, self._service, request, proven=proven), request)
        text = self._service.redacted(until(reply.text, request.stop))
        return replace(
            reply,
            text=chosen(text, request.choices) if request.choices else text,
            reasoning=self._service.redacted(reply.reasoning),
            tool_calls=tuple(
                ToolCall(*map(self._service.redacted, call)) for call in reply.tool_calls
            ),
        )

    def _blamed(self, error: ModelError, request: ModelRequest) -> ModelError:
        """The error; a refused request if only the request can have caused it.

        Other values of the refused setting were accepted, or only harnesses set it.
        """
        own = any(getattr(request, name) and name in str(error) for name in _OF_REQUESTS)
        if isinstance(error, ModelNotFound) and own:
            return RequestRefused(str(error))
        for setting, values in self._taken.items():
            others = values - {getattr(request, setting)}
            if isinstance(error, ModelNotFound) and setting in str(error) and others:
                return RequestRefused(str(error))
        return error

    async def _counted(self, reply: ModelReply, request: ModelRequest) -> ModelReply:
        """The reply with tokens, by our own count if the service does not report them."""
        if reply.tokens_in:
            return reply
        asked = request.texts()
        counts = await self.count([*asked, *reply.texts()])
        tokens_in = sum(counts[: len(asked)]) + request.images * IMAGE_TOKENS
        tokens_out = reply.tokens_out or sum(counts[len(asked) :])
        return replace(reply, tokens_in=tokens_in, tokens_out=tokens_out, estimated=True)


def arguments(
    library: Any, service: Service, name: str, request: ModelRequest, *, strict: bool
) -> dict[str, Any]:
    """The arguments for LiteLLM, for one of the names of a model."""
    turns = request.conversation()
    asked = asking(turns, request.choices) if request.choices else turns
    settings = _settings(library, name, request, own=service.base_url is not None)
    if strict and request.choices and (form := schema(request.choices)):
        settings["response_format"] = form
    if service.base_url is not None:  # not in LiteLLM's table: the server decides
        settings["allowed_openai_params"] = list(settings)
    return {
        "model": name,
        "messages": [turn.to_json() for turn in asked],
        "api_key": service.credential,
        "base_url": service.base_url,
        "timeout": service.timeout,
        "num_retries": 0,  # the gateway retries
        "max_retries": 0,
        "drop_params": False,
        **settings,
    }


def _settings(library: Any, name: str, request: ModelRequest, *, own: bool) -> dict[str, Any]:
    takes = ("stop", "seed") if own else _takes(library, name)
    settings: dict[str, Any] = {"max_tokens": request.max_tokens}
    if request.temperature is not None:
        settings["temperature"] = request.temperature
    if request.reasoning_effort is not None:
        settings["reasoning_effort"] = request.reasoning_effort
    if request.top_p is not None:
        settings["top_p"] = request.top_p
    if request.parallel_tool_calls is not None:
        settings["parallel_tool_calls"] = request.parallel_tool_calls
    for setting in ("tools", "tool_choice", "response_format"):
        if text := getattr(request, setting):
            settings[setting] = json.loads(text)
    if request.stop and "stop" in takes:
        settings["stop"] = list(request.stop)
    if "seed" in takes:
        settings["seed"] = request.sample
    return settings


def _takes(library: Any, name: str) -> Sequence[str]:
    """The parameters that a hosted model accepts, by LiteLLM's table."""
    try:
        bare, provider, *_ = library.get_llm_provider(name)
    except library.BadRequestError:  # the call will report the wrong name
        return ()
    return library.get_supported_openai_params(bare, custom_llm_provider=provider) or ()


_CHANNEL = re.compile(
    r"<\|channel\|>\s*(?P<name>\w+)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>"
    r"(?P<text>.*?)(?=<\|(?:end|return|call|start|channel)\|>|\Z)",
    re.DOTALL,
)


def read(answer: Any, where: str, *, tools: bool = False) -> ModelReply:
    """The reply in an answer of LiteLLM; tokens are 0 if the service does not report them.

    Reasoning is not text: the text of a model that was cut off in its reasoning is empty. Tool
    calls count only if there are `tools`.
    """
    choices = getattr(answer, "choices", None)
    if not choices:
        raise ModelReplyError(f"{where} sent a completion without choices.")
    choice = choices[0]
    if choice.finish_reason == "content_filter":
        raise RequestRefused(f"{where} stopped the answer with its content filter.")
    usage = getattr(answer, "usage", None)
    cut = choice.finish_reason == "length"
    calls = _tool_calls(choice.message, where) if tools else ()
    finish: Finish = "length" if cut else "tool_calls" if calls else "stop"
    reasoning = getattr(choice.message, "reasoning_content", None)
    read_in = _number(usage, "prompt_tokens")
    kept = _number(getattr(usage, "prompt_tokens_details", None), "cached_tokens")
    return ModelReply(
        text=whole(_text(choice.message, cut, where)),
        finish=finish,
        tool_calls=calls,
        reasoning=whole(reasoning) if isinstance(reasoning, str) else "",
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
    # It may have only reasoned, or called a tool that does not exist.
    silent = any(getattr(message, part, None) for part in ("reasoning_content", "tool_calls"))
    if content is None and (cut or silent):
        return ""
    raise ModelReplyError(f"{where} sent a completion without text.")


def _tool_calls(message: Any, where: str) -> tuple[ToolCall, ...]:
    given = getattr(message, "tool_calls", None) or []
    if not isinstance(given, list) or len(given) > _MOST_CALLS:
        raise ModelReplyError(f"{where} sent tool calls that cannot be read: {given!r:.80}.")
    calls = []
    for place, call in enumerate(given):
        function = getattr(call, "function", None)
        name, arguments = getattr(function, "name", None), getattr(function, "arguments", None)
        number = getattr(call, "id", None) or f"call_{place}"
        parts: list[Any] = [number, name, "" if arguments is None else arguments]
        if not all(isinstance(part, str) for part in parts) or not name:
            raise ModelReplyError(f"{where} sent a tool call that cannot be read: {call!r:.80}.")
        calls.append(ToolCall(*map(whole, parts)))
    return tuple(calls)


def final(text: str, cut: bool = False) -> str:
    """The last final message in a text with the channels of gpt-oss; other texts unchanged.

    >>> final("<|channel|>analysis<|message|>Wet?<|end|><|channel|>final<|message|>yes<|return|>")
    'yes'
    >>> final("<|channel|>analysis<|message|>Well, water", cut=True), final("yes")
    ('', 'yes')
    """
    if "<|channel|>" not in text:
        return text
    finals = [found["text"] for found in _CHANNEL.finditer(text) if found["name"] == "final"]
    if finals:
        return str(finals[-1])
    return "" if cut else text


def whole(text: str) -> str:
    r"""A text with a mark in place of each unpaired surrogate, which cannot be encoded.

    >>> whole("half \ud83d"), whole("whole \ud83d\ude00")
    ('half �', 'whole 😀')
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def until(text: str, stop: tuple[str, ...]) -> str:
    """The text up to the first of the stops, which some services ignore.

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
    """The conversation, with an instruction at the end to answer with one of the choices.

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
    """A response format that allows only the choices; None if they are too many for services.

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
    """The choice in a reply, or the reply itself if it has none or several.

    The choice equals the reply, or equals it without case, quotes and punctuation, or is the only
    one that occurs in it. A choice within a longer one does not count.

    >>> chosen("**Type 2 diabetes**.", ["diabetes", "type 2 diabetes"])
    'type 2 diabetes'
    >>> chosen("Asthma or gout?", ["asthma", "gout"])
    'Asthma or gout?'
    """
    answer = _unwrapped(text)
    for found in (_equal(answer, choices), _contained(answer, choices)):
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


def _equal(answer: str, choices: Sequence[str]) -> list[str]:
    exact = [choice for choice in choices if choice.strip() == answer]
    return exact or [choice for choice in choices if _plain(choice) == _plain(answer)]


def _contained(answer: str, choices: Sequence[str]) -> list[str]:
    left, found = _plain(answer), []
    for plain in sorted({_plain(choice) for choice in choices} - {""}, key=len, reverse=True):
        # Chinese has no spaces: only Latin letters and digits extend a match to a longer word.
        word = rf"(?<![a-z0-9_]){re.escape(plain)}(?![a-z0-9_])"
        left, times = re.subn(word, "\0", left) if plain in left else (left, 0)
        found += [choice for choice in choices if times and _plain(choice) == plain]
    return found


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_FRAME)
