"""Prices of tokens, and the caps of a run on what it spends on a model."""

import math
from dataclasses import dataclass, fields, replace

from coevolve.core.outcomes import Usage
from coevolve.errors import ConfigError
from coevolve.models.hosted_service import load
from coevolve.models.model_errors import ModelCapError
from coevolve.models.provider import CHARACTERS, Caps, ModelReply, ModelRequest

MILLION = 1_000_000
MOST_TOKENS = 10 * MILLION
MOST_DOLLARS = 10_000.0
"""What no single call uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Dollars per million tokens.

    Args:
        tokens_in: Tokens read.
        tokens_out: Tokens written.
        tokens_kept: Tokens read from the prompt cache of the service; None: as `tokens_in`.

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
        """A reply with its cost."""
        kept_price = self.tokens_in if self.tokens_kept is None else self.tokens_kept
        fresh = reply.tokens_in - reply.tokens_kept
        dollars = fresh * self.tokens_in + reply.tokens_kept * kept_price
        dollars += reply.tokens_out * self.tokens_out
        return replace(reply, dollars=dollars / MILLION)


def price_of(name: str) -> Prices | None:
    """The price of a model in LiteLLM's table, or None if it is not listed.

    Raises:
        ConfigError: LiteLLM is not installed.
    """
    table = load().model_cost
    row = table.get(name) or table.get(name.partition("/")[2])  # most have no prefix there
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


def believable(reply: ModelReply, request: ModelRequest) -> ModelReply:
    """A reply with a usage that one call can have, by an estimate if the service reports another.

    >>> request = ModelRequest(prompt="Is water wet?", max_tokens=8)
    >>> reply = ModelReply(text="yes", finish="stop", tokens_in=10**15, tokens_out=-1)
    >>> believable(reply, request).usage
    Usage(tokens_in=4, tokens_out=1, dollars=0.0, seconds=0.0)
    """
    tokens = (reply.tokens_in, reply.tokens_out, reply.tokens_kept)
    if not 0 <= reply.dollars <= MOST_DOLLARS:
        reply = replace(reply, dollars=0.0, estimated=True)
    if all(isinstance(number, int) and 0 <= number <= MOST_TOKENS for number in tokens):
        return reply
    return replace(
        reply,
        tokens_in=_about(*request.texts()),
        tokens_out=_about(*reply.texts()),
        tokens_kept=0,
        estimated=True,
    )


def _about(*texts: str) -> int:
    """The estimated tokens of texts."""
    return -(-sum(map(len, texts)) // CHARACTERS)


def check_caps(caps: Caps, spent: Usage) -> None:
    """Refuse a further call if a cap of the run is reached.

    Running calls may exceed the caps by their usage.

    Raises:
        ModelCapError: A cap is reached.
    """
    tokens = spent.tokens_in + spent.tokens_out
    for name, value, cap in (
        ("tokens", tokens, caps.tokens),
        ("dollars", spent.dollars, caps.dollars),
    ):
        if cap is not None and value >= cap:
            raise ModelCapError(
                f"the run has spent {tokens:,} tokens and {spent.dollars:.2f} dollars on the "
                f"model; the cap is {cap:,} {name}."
            )


def need_prices(caps: Caps, known: bool) -> None:
    """Refuse a cap on dollars if the price of a call is unknown.

    Raises:
        ConfigError: There is such a cap.
    """
    if caps.dollars is not None and not known:
        raise ConfigError(
            f"the cap of {caps.dollars:g} dollars needs the price of the model, which is unknown. "
            "Give price_in and price_out in [model], in dollars per million tokens."
        )
