"""What a model is asked, and what it answers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any, Literal, NamedTuple, Self

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
