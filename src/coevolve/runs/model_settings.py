"""`[model]`: which language model harnesses reach, and how."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from coevolve.errors import InputError
from coevolve.runs.settings import Amount, Count, Needed, Table, Text

EMBEDDED = "embedded"
Price = Annotated[float, Field(ge=0)]
_CACHES = ("run", "shared", "off")
_HOSTED_ONLY = (
    "base_url",
    "key",
    "reasoning_effort",
    "window",
    "strict_choices",
    "price_in",
    "price_out",
    "price_kept",
)


class ModelSettings(Table):
    """The model of a run; see docs/models.md.

    `key` is the name of an environment variable, never a key itself.

    >>> ModelSettings(name="embedded").hosted
    False
    """

    name: Text
    base_url: Text | None = None
    key: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | Literal["default"] = 0.0
    reasoning_effort: Text | None = None
    system: str = ""
    max_tokens: Count = 1024
    window: Count | None = None
    strict_choices: bool | None = None
    concurrency: Count | None = None
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    seconds: Amount = 300.0
    attempts: Count = 5
    cache: Text = "run"
    record: Text | None = None
    replay: Text | None = None
    price_in: Price | None = None
    price_out: Price | None = None
    price_kept: Price | None = None
    trial_calls: Count | None = None
    trial_tokens: Count | None = None

    @property
    def hosted(self) -> bool:
        """Whether the model is somebody else's service."""
        return self.name != EMBEDDED

    @model_validator(mode="after")
    def _has_effect(self) -> Self:
        if (self.price_in is None) != (self.price_out is None):
            raise InputError("give both price_in and price_out, or neither.")
        if self.price_kept is not None and self.price_in is None:
            raise InputError("price_kept has no effect without price_in and price_out.")
        if not self.hosted:
            for key in _HOSTED_ONLY:
                if getattr(self, key) is not None:
                    raise InputError(f"{key} has no effect on the embedded model; leave it out.")
        if self.cache not in _CACHES and not {".", "/"} & set(self.cache):
            raise InputError(
                "cache may be 'run', 'shared', 'off' or a file such as 'answers.db', got "
                f"{self.cache!r}."
            )
        if self.record is not None and self.record == self.replay:
            raise InputError(f"record and replay both name {self.record!r}; record elsewhere.")
        return self

    def needs(self) -> Iterator[Needed]:
        if self.replay is not None:
            yield ("replay", self.replay, "file")
