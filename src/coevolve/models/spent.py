"""What calls of a model consumed, in sum."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from coevolve.errors import ConfigError
from coevolve.models.errors import ModelCapError
from coevolve.models.request import ModelReply
from coevolve.models.settings import Caps


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
