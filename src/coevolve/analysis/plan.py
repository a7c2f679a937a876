"""What a replay tries: protocols, fractions and seeds, and how candidates come in."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from coevolve.core.outcomes import is_whole
from coevolve.core.protocols import SearchProtocol
from coevolve.core.protocols import protocol as find_protocol
from coevolve.errors import InputError

CONFIDENCE = 0.9
"""Level of the intervals whose coverage a replay measures."""

PROTOCOLS = ("random-resample", "naive", "task-coevolve", "joint", "adaptive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The settings of a replay.

    >>> Plan.of(protocols=["naive"], fractions=[0.2], seeds=range(3)).to_json()["seeds"]
    [0, 1, 2]
    """

    protocols: tuple[SearchProtocol, ...]
    fractions: tuple[float, ...]
    seeds: tuple[int, ...]
    per_round: int = 1
    bernoulli: bool = False

    @classmethod
    def of(
        cls,
        *,
        protocols: Iterable[str | SearchProtocol] = PROTOCOLS,
        fractions: Iterable[float] = (0.2,),
        seeds: Iterable[int] = range(20),
        per_round: int = 1,
        bernoulli: bool = False,
    ) -> Self:
        """Plan for protocols by name, or the protocols themselves."""
        return cls(
            protocols=tuple(
                known if isinstance(known, SearchProtocol) else find_protocol(known)
                for known in protocols
            ),
            fractions=tuple(float(fraction) for fraction in fractions),
            seeds=tuple(seeds),
            per_round=per_round,
            bernoulli=bernoulli,
        )

    def __post_init__(self) -> None:
        given: dict[str, list[Any]] = {
            "protocol": [protocol.name for protocol in self.protocols],
            "fraction": list(self.fractions),
            "seed": list(self.seeds),
        }
        for what, values in given.items():
            if not values:
                raise InputError(f"a replay needs at least one {what}, got none.")
            if len(set(values)) < len(values):
                twice = next(value for value in values if values.count(value) > 1)
                raise InputError(f"{what} {twice!r} is given twice.")
        for fraction in self.fractions:
            if not 0 < fraction <= 1:
                raise InputError(f"fractions must be in (0, 1], got {fraction}.")
        for seed in self.seeds:
            if not is_whole(seed, least=0):
                raise InputError(f"seeds must be whole numbers of at least 0, got {seed!r}.")
        if not is_whole(self.per_round, least=1):
            raise InputError(f"per_round must be at least 1, got {self.per_round!r}.")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; protocols with all their parts."""
        return {
            "protocols": [protocol.to_json() for protocol in self.protocols],
            "fractions": list(self.fractions),
            "seeds": list(self.seeds),
            "per_round": self.per_round,
            "bernoulli": self.bernoulli,
            "confidence": CONFIDENCE,
        }
