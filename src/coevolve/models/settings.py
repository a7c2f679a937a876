"""What the configuration says of a model: how it answers, and how much may be spent on it."""

import math
from dataclasses import dataclass, fields

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
