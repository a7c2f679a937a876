"""Requests to a model, its replies, and the interface of a model."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any, Literal, Protocol, Self, get_args

from coevolve.core.outcomes import Usage, is_whole
from coevolve.errors import ConfigError, InputError
from coevolve.models.conversation import Message, Role, ToolCall, canonical
from coevolve.search.budget import LARGEST_CAP

__all__ = ["Message", "Role", "ToolCall", "canonical"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """The defaults for what a request leaves out.

    Args:
        temperature: In [0, 2]; None uses the default of the model.
        max_tokens: The longest answer; a request can lower it, but not raise it.
        system: The system prompt.
        reasoning_effort: A value that the service accepts, such as "low"; None uses its default.

    >>> Sampling(temperature=3)
    Traceback (most recent call last):
    coevolve.errors.ConfigError: temperature must be in [0, 2], got 3.
    """

    temperature: float | None = 0.0
    max_tokens: int = 1024
    system: str = ""
    reasoning_effort: str | None = None

    def __post_init__(self) -> None:
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise ConfigError(f"temperature must be in [0, 2], got {self.temperature!r}.")
        if self.max_tokens < 1:
            raise ConfigError(f"max_tokens must be 1 or more, got {self.max_tokens!r}.")
        if self.reasoning_effort == "":
            raise ConfigError("reasoning_effort must not be empty; leave it out instead.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Limits on what is spent; None means no limit.

    Args:
        tokens: Tokens of the run, read and written, without cached calls.
        dollars: Dollars of the run.
        trial_calls: Calls of one trial. Cached calls count, so no score depends on the cache.
        trial_tokens: Tokens of one trial, with those of cached calls.

    >>> Caps(tokens=0)
    Traceback (most recent call last):
    coevolve.errors.ConfigError: the cap tokens must be positive, got 0.
    """

    tokens: int | None = None
    dollars: float | None = None
    trial_calls: int | None = None
    trial_tokens: int | None = None

    def __post_init__(self) -> None:
        for cap in fields(self):
            value = getattr(self, cap.name)
            if value is not None and not value > 0:
                raise ConfigError(f"the cap {cap.name} must be positive, got {value!r}.")
            if value is not None and value > LARGEST_CAP:
                raise ConfigError(f"the cap {cap.name} must be at most {LARGEST_CAP:.0e}.")


CHARACTERS = 4
"""Characters per token, for estimates."""

type JSON = str | int | float | bool | list[JSON] | dict[str, JSON] | None

Finish = Literal["stop", "length", "tool_calls", "overflow"]

SCHEMA = 1
"""Part of every key; increased when the meaning of requests changes."""


_TEXTS = ("tools", "tool_choice", "response_format")
"""Fields of a request that hold JSON as text."""
IMAGE_TOKENS = 1_000
"""The estimated tokens of an image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request to a model: a prompt or a conversation, and how to answer it.

    Args:
        prompt: A text; exactly one of `prompt` and `messages` is given.
        messages: A conversation.
        system: The system prompt of the configuration.
        choices: If there are any, the answer must be exactly one of these.
        scores: Whether to return the log-probability of every choice.
        max_tokens: The longest answer.
        temperature: None uses the default of the model.
        stop: The answer ends before any of these.
        sample: The number of this answer among independent answers to one request.
        reasoning_effort: A value that the service accepts, such as "low"; None uses its default.
        top_p: The share of probability to sample from; None uses the default of the model.
        tools: The tools that the model may call, in OpenAI's form, as JSON text.
        tool_choice: Which of them it must call, in OpenAI's form, as JSON text.
        parallel_tool_calls: Whether it may call several at once; None leaves it to the service.
        response_format: The form of the answer, in OpenAI's form, as JSON text.

    >>> request = ModelRequest(prompt="Is water wet?", choices=("yes", "no"), max_tokens=8)
    >>> [(message.role, message.content) for message in request.conversation()]
    [('user', 'Is water wet?')]
    >>> request.key({"name": "embedded"})[:16]
    'c1fbffe73b19c2b8'
    """

    prompt: str | None = None
    messages: tuple[Message, ...] = ()
    system: str = ""
    choices: tuple[str, ...] = ()
    scores: bool = False
    max_tokens: int
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    sample: int = 0
    reasoning_effort: str | None = None
    top_p: float | None = None
    tools: str = ""
    tool_choice: str = ""
    parallel_tool_calls: bool | None = None
    response_format: str = ""

    def __post_init__(self) -> None:
        if self.temperature is not None:  # 0, 0.0 and -0.0 are one temperature
            object.__setattr__(self, "temperature", float(self.temperature) + 0.0)

    def conversation(self) -> list[Message]:
        """The request as messages: a prompt is the user's, system texts are joined into one."""
        asked = list(self.messages) if self.prompt is None else [Message("user", self.prompt)]
        system = [self.system] if self.system else []
        if system and asked and asked[0].role == "system":
            system.append(asked.pop(0).content)
        first = [Message("system", "\n\n".join(system))] if system else []
        return [*first, *asked]

    def texts(self) -> list[str]:
        """All texts that the model reads."""
        told = [text for message in self.conversation() for text in message.texts()]
        return [*told, *filter(None, (self.tools, self.response_format))]

    @property
    def agentic(self) -> tuple[str, ...]:
        """What it has that only models for agents take, such as tools or images."""
        messages = self.messages
        found = {
            "tools": self.tools or any(t.tool_calls or t.role == "tool" for t in messages),
            "images": self.images,
            "parts of a content": any(turn.parts for turn in messages),
            "reasoning_content": any(turn.reasoning for turn in messages),
            "response_format": self.response_format,
            "top_p": self.top_p is not None,
        }
        return tuple(name for name, used in found.items() if used)

    @property
    def images(self) -> int:
        """The number of images."""
        return sum(message.images for message in self.messages)

    def key(self, identity: Mapping[str, JSON]) -> str:
        """The key of the answer from a provider of this identity."""
        asked = {"schema": SCHEMA, "provider": dict(identity), "request": self.to_json()}
        return sha256(canonical(asked).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, without defaults."""
        plain: dict[str, Any] = {}
        for part in fields(self):
            value = getattr(self, part.name)
            if value != part.default:
                plain[part.name] = list(value) if isinstance(value, tuple) else value
        for name in _TEXTS:
            if name in plain:
                plain[name] = json.loads(plain[name])
        if self.messages:
            plain["messages"] = [message.to_json() for message in self.messages]
        return plain

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The request that `to_json` described.

        Raises:
            InputError: It describes none.
        """
        with _described("request"):
            return cls._from_json(data)

    @classmethod
    def _from_json(cls, data: Mapping[str, Any]) -> Self:
        lists = {name: tuple(data.get(name, ())) for name in ("choices", "stop")}
        texts = {name: canonical(data[name]) for name in _TEXTS if name in data}
        messages = tuple(Message.from_json(turn) for turn in data.get("messages", ()))
        return cls(**{**data, **lists, **texts, "messages": messages})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """The answer of a model, and its cost.

    Args:
        text: The answer.
        finish: "length" if the answer was cut off at `max_tokens`, "tool_calls" if it calls
            tools, "overflow" if the prompt was too long; then `text` says so.
        tokens_in: Tokens read, with those from the prompt cache of the service.
        tokens_out: Tokens written, with those of the reasoning.
        tokens_kept: How many of `tokens_in` were in the prompt cache, and cost less.
        dollars: The cost of the call; the gateway sets it if it knows the prices.
        scores: The log-probability of every choice, if requested.
        estimated: Whether the tokens are our own count, because the service reported none, or
            numbers that cannot be true.
        tool_calls: The tools that it calls.
        reasoning: The reasoning before the answer, if the service shows it.
    """

    text: str
    finish: Finish
    tokens_in: int
    tokens_out: int
    tokens_kept: int = 0
    dollars: float = 0.0
    scores: Mapping[str, float] | None = None
    estimated: bool = False
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""

    @property
    def usage(self) -> Usage:
        """The usage of the call, without seconds."""
        return Usage(tokens_in=self.tokens_in, tokens_out=self.tokens_out, dollars=self.dollars)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        plain = {
            "text": self.text,
            "finish": self.finish,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "tokens_kept": self.tokens_kept,
            "dollars": self.dollars,
            "scores": None if self.scores is None else dict(self.scores),
        }
        return {
            **plain,
            **({"estimated": True} if self.estimated else {}),
            **self.written(),
        }

    def written(self) -> dict[str, Any]:
        """What it has besides its text: tool calls in OpenAI's form, and reasoning."""
        calls = [call.to_json() for call in self.tool_calls]
        found = {"tool_calls": calls, "reasoning": self.reasoning}
        return {name: value for name, value in found.items() if value}

    def texts(self) -> list[str]:
        """All texts that the model wrote, except the reasoning."""
        return [self.text, *(call.name + call.arguments for call in self.tool_calls)]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The reply that `to_json` described.

        Raises:
            InputError: It describes none.
        """
        with _described("reply"):
            calls = tuple(ToolCall.from_json(call) for call in data.get("tool_calls", ()))
            reply = cls(**{**data, "tool_calls": calls})
            counts = (reply.tokens_in, reply.tokens_out, reply.tokens_kept)
            if not isinstance(reply.text, str) or reply.finish not in get_args(Finish):
                raise TypeError(f"{reply.text!r:.40}, {reply.finish!r:.40}")
            if not isinstance(reply.reasoning, str):
                raise TypeError(f"reasoning {reply.reasoning!r:.40}")
            if not all(is_whole(count, least=0) for count in counts):
                raise TypeError(f"tokens {counts!r:.80}")
            _ = reply.usage, reply.scores and [value + 0.0 for value in reply.scores.values()]
            return reply


@contextmanager
def _described(what: str) -> Iterator[None]:
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"not a {what} to a model, or of one: {error!r:.200}.") from error


class Provider(Protocol):
    """A model: a service, the embedded model, a recording, or your own.

    Several requests may run at once, all in one event loop. The gateway limits their number, and
    handles time-outs, retries, prices and the cache. A cancelled call should stop its work. A
    provider raises the errors of `coevolve.models.model_errors`; the gateway retries
    `ModelUnavailable` and `ModelReplyError`. A provider with an attribute `takes_tools` that is
    true gets requests with tools, images and the other parts of `ModelRequest.agentic`.
    """

    @property
    def identity(self) -> Mapping[str, JSON]:
        """All that its answers depend on: model, address, weights; never a key.

        It has a `name`, which harnesses may see.
        """
        ...

    @property
    def window(self) -> int | None:
        """The most tokens of prompt and answer together; None if unknown."""
        ...

    @property
    def gives_scores(self) -> bool:
        """Whether it gives log-probabilities of choices."""
        ...

    async def complete(self, request: ModelRequest, /) -> ModelReply:
        """The answer to a request.

        With `choices`, its text must be exactly one of them; the gateway refuses any other.
        """
        ...

    async def count(self, texts: Sequence[str], /) -> list[int]:
        """The number of tokens of each text; an estimate if the service does not report it."""
        ...

    async def close(self) -> None:
        """End everything it started."""
        ...
