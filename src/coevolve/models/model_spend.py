"""What tokens cost, and what calls of a model consumed in sum."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from coevolve.errors import ConfigError
from coevolve.models.hosted_service import load
from coevolve.models.model_errors import ModelCapError
from coevolve.models.provider import Caps, ModelReply

MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Dollars per million tokens.

    Args:
        tokens_in: Tokens read.
        tokens_out: Tokens written.
        tokens_kept: Tokens read that the service had kept from before; as `tokens_in` if None.

    >>> prices = Prices(tokens_in=0.5, tokens_out=2.0)
    >>> reply = ModelReply(text="yes", finish="stop", tokens_in=3000, tokens_out=100)
    >>> prices.priced(reply).dollars
    0.0017
    """

    tokens_in: float
    tokens_out: float
    tokens_kept: float | None = None

    def __post_init__(self) -> None:
        for price in fields(self):
            value = getattr(self, price.name)
            if value is not None and not (value >= 0 and math.isfinite(value)):
                raise ConfigError(
                    f"the price of {price.name} must be 0 or more dollars per million tokens, "
                    f"got {value!r}."
                )

    def priced(self, reply: ModelReply) -> ModelReply:
        """A reply with what it cost."""
        kept_price = self.tokens_in if self.tokens_kept is None else self.tokens_kept
        fresh = reply.tokens_in - reply.tokens_kept
        dollars = fresh * self.tokens_in + reply.tokens_kept * kept_price
        dollars += reply.tokens_out * self.tokens_out
        return replace(reply, dollars=dollars / MILLION)

    def to_json(self) -> dict[str, float | None]:
        """Plain JSON."""
        return {part.name: getattr(self, part.name) for part in fields(self)}


def price_of(name: str) -> Prices | None:
    """The price of a model by LiteLLM's own table, or None if it is not in there.

    Raises:
        ConfigError: LiteLLM is not installed.
    """
    table = load().model_cost
    row = table.get(name) or table.get(name.partition("/")[2])  # most are there by bare names
    if not row or "input_cost_per_token" not in row or "output_cost_per_token" not in row:
        return None
    kept = row.get("cache_read_input_token_cost")
    return Prices(
        tokens_in=_per_million(row["input_cost_per_token"]),
        tokens_out=_per_million(row["output_cost_per_token"]),
        tokens_kept=None if kept is None else _per_million(kept),
    )


def _per_million(dollars: float) -> float:
    return round(float(dollars) * MILLION, 6)  # 1.5e-07 is 0.15, not 0.15000000000000002


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Calls that were asked of a model and those that were not, since their answer was known.

    Tokens and dollars are those of `calls`; a cached call costs nothing.

    >>> Spent(calls=2, tokens_in=900, dollars=0.25) + Spent(calls=1, cached=4, tokens_in=100)
    Spent(calls=3, cached=4, tokens_in=1000, tokens_out=0, dollars=0.25)
    """

    calls: int = 0
    cached: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float = 0.0

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.tokens_in + self.tokens_out

    @classmethod
    def on(cls, reply: ModelReply) -> Self:
        """What one call consumed."""
        return cls(
            calls=1,
            tokens_in=reply.tokens_in,
            tokens_out=reply.tokens_out,
            dollars=reply.dollars,
        )

    def __add__(self, other: "Spent") -> "Spent":
        sums = {name: value + getattr(other, name) for name, value in asdict(self).items()}
        return Spent(**sums)

    def to_json(self) -> dict[str, float]:
        """Plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """What `to_json` described."""
        return cls(**data)


def check_caps(caps: Caps, spent: Spent, under_way: int = 0) -> None:
    """Refuse a further call when a cap of the run is reached.

    Raises:
        ModelCapError: It is. Calls that are `under_way` count as calls, and may take the
            tokens and dollars past their caps by what they consume.
    """
    reached = {
        "calls": (spent.calls + under_way, caps.calls),
        "tokens": (spent.tokens, caps.tokens),
        "dollars": (spent.dollars, caps.dollars),
    }
    for name, (value, cap) in reached.items():
        if cap is not None and value >= cap:
            raise ModelCapError(
                f"the run may spend {cap:,} {name} on the model, and has spent {_plain(spent)}."
            )


def need_prices(caps: Caps, known: bool) -> None:
    """Refuse a cap of dollars where nobody knows what a call costs.

    Raises:
        ConfigError: There is such a cap.
    """
    if caps.dollars is not None and not known:
        raise ConfigError(
            f"the cap of {caps.dollars:g} dollars needs the price of the model, which is not "
            "known. Give price_in and price_out in [model], in dollars per million tokens."
        )


def _plain(spent: Spent) -> str:
    return f"{spent.calls:,} calls, {spent.tokens:,} tokens and {spent.dollars:.2f} dollars"
