"""What a model is to the gateway: a request, a reply, and who turns one into the other."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any, Literal, NamedTuple, Protocol, Self

from coevolve.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How a model answers where a request does not say.

    Args:
        temperature: In [0, 2]; None leaves it to the model.
        max_tokens: How long an answer may get; a request can ask for less and not for more.
        system: What the model is told before all else.
        reasoning_effort: A word the service knows, such as "low"; None leaves it to the model.

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
    """How much may be spent; None means no cap.

    Args:
        calls: Calls of the run, cached ones not counted.
        tokens: Tokens of the run, read and written, cached calls not counted.
        dollars: Dollars of the run.
        trial_calls: Calls of one trial, cached ones counted, so that no score depends on a cache.
        trial_tokens: Tokens of one trial, cached calls counted.

    >>> Caps(calls=0)
    Traceback (most recent call last):
    coevolve.errors.ConfigError: the cap calls must be positive, got 0.
    """

    calls: int | None = None
    tokens: int | None = None
    dollars: float | None = None
    trial_calls: int | None = None
    trial_tokens: int | None = None

    def __post_init__(self) -> None:
        for cap in fields(self):
            value = getattr(self, cap.name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise ConfigError(f"the cap {cap.name} must be positive, got {value!r}.")


type JSON = str | int | float | bool | list[JSON] | dict[str, JSON] | None

Role = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length"]

SCHEMA = 1
"""Part of every key: another meaning of a request must not find the answers of this one."""


class Message(NamedTuple):
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One question to a model: a prompt or a conversation, and how to answer it.

    Args:
        prompt: A text; exactly one of `prompt` and `messages` is given.
        messages: A conversation.
        system: What the configuration tells the model before all else.
        choices: The answer must be exactly one of these, if there are any.
        scores: Whether the log-probability of every choice is wanted.
        max_tokens: How long the answer may get.
        temperature: None leaves it to the model.
        stop: The answer ends before any of these.
        sample: Its number among independent answers to one question.
        reasoning_effort: A word the service knows, such as "low"; None leaves it to the model.

    >>> request = ModelRequest(prompt="Is water wet?", choices=("yes", "no"), max_tokens=8)
    >>> request.conversation()
    [Message(role='user', content='Is water wet?')]
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

    def __post_init__(self) -> None:
        if self.temperature is not None:  # 0, 0.0 and -0.0 are one temperature
            object.__setattr__(self, "temperature", float(self.temperature) + 0.0)

    def conversation(self) -> list[Message]:
        """The request as turns, of which one at most is the system's; a prompt is the user's."""
        asked = list(self.messages) if self.prompt is None else [Message("user", self.prompt)]
        told = [self.system] if self.system else []
        if asked and asked[0].role == "system":
            told.append(asked.pop(0).content)
        first = [Message("system", "\n\n".join(told))] if told else []
        return [*first, *asked]

    def texts(self) -> list[str]:
        """All that the model has to read."""
        return [message.content for message in self.conversation()]

    def key(self, identity: Mapping[str, JSON]) -> str:
        """The address of the answer that a provider of this identity gives."""
        asked = {"schema": SCHEMA, "provider": dict(identity), "request": self.to_json()}
        return sha256(canonical(asked).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, without what was left out."""
        plain: dict[str, Any] = {}
        for part in fields(self):
            value = getattr(self, part.name)
            if value != part.default:
                plain[part.name] = list(value) if isinstance(value, tuple) else value
        if self.messages:
            plain["messages"] = [message._asdict() for message in self.messages]
        return plain

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The request that `to_json` described."""
        lists = {name: tuple(data.get(name, ())) for name in ("choices", "stop")}
        messages = tuple(
            Message(turn["role"], turn["content"]) for turn in data.get("messages", ())
        )
        return cls(**{**data, **lists, "messages": messages})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """What a model answered, and what that took.

    Args:
        text: The answer.
        finish: "length" if the answer was cut off at `max_tokens`.
        tokens_in: Tokens read, those that the service had kept from before included.
        tokens_out: Tokens written, those of its reasoning included.
        tokens_kept: How many of `tokens_in` the service had kept from before, and sells for less.
        dollars: What the call cost; the gateway fills it in where it knows prices.
        scores: The log-probability of every choice, where it was asked for.
    """

    text: str
    finish: Finish
    tokens_in: int
    tokens_out: int
    tokens_kept: int = 0
    dollars: float = 0.0
    scores: Mapping[str, float] | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "text": self.text,
            "finish": self.finish,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "tokens_kept": self.tokens_kept,
            "dollars": self.dollars,
            "scores": None if self.scores is None else dict(self.scores),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The reply that `to_json` described."""
        return cls(**data)


def canonical(value: object) -> str:
    """JSON that is the same for the same value, whatever the order of its keys.

    >>> canonical({"b": 1, "a": [True, None]})
    '{"a":[true,null],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


class Provider(Protocol):
    """Something that answers requests: a service, the embedded model, a recording.

    Several requests may be under way at once, all in one event loop; the gateway sees to how
    many, to time-outs, retries, prices and the cache. A call that is cancelled should end what
    it began. A provider raises the errors of `coevolve.models.model_errors`: what is worth another
    attempt as `ModelUnavailable` or `ModelReplyError`, and everything else as what it is.
    """

    @property
    def identity(self) -> Mapping[str, JSON]:
        """All that makes its answers what they are: model, address, weights; never a key.

        It has a `name`, which harnesses may see.
        """
        ...

    @property
    def window(self) -> int | None:
        """How many tokens prompt and answer may have together; None if nobody knows."""
        ...

    @property
    def gives_scores(self) -> bool:
        """Whether it gives log-probabilities of choices."""
        ...

    async def complete(self, request: ModelRequest, /) -> ModelReply:
        """The answer to a request.

        With `choices`, its text is one of them to the letter, or the gateway asks again.
        """
        ...

    async def count(self, texts: Sequence[str], /) -> list[int]:
        """How many tokens each text has; an estimate where the service does not tell."""
        ...

    async def close(self) -> None:
        """End whatever it started."""
        ...
