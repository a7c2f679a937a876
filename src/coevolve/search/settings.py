"""How a run searches, as its first event records it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from coevolve.core.outcomes import is_whole
from coevolve.errors import InputError
from coevolve.search.budget import Budget

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a run searches.

    Args:
        rounds: Rounds of proposing and evaluating.
        candidates: Candidates proposed per round.
        seed: Seed of the run.
        overlap: Whether the next round is proposed while the last one is evaluated. The proposer
            then knows one round less, which makes it another search.
        budget: Hard caps.
        rescore: Whether the winner is scored on every validation task after the choice, to show
            how good its estimate was.
        repair: Whether a candidate that fails its check goes back to its proposer, once.

    >>> Settings(rounds=20, candidates=3).overlap
    False
    """

    rounds: int
    candidates: int = 1
    seed: int = 0
    overlap: bool = False
    rescore: bool = False
    repair: bool = False
    budget: Budget = field(default_factory=Budget)

    def __post_init__(self) -> None:
        for name, least in (("rounds", 1), ("candidates", 1), ("seed", 0)):
            if not is_whole(getattr(self, name), least=least):
                raise InputError(
                    f"{name} must be a whole number from {least} on, got {getattr(self, name)!r}."
                )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "rounds": self.rounds,
            "candidates": self.candidates,
            "seed": self.seed,
            "overlap": self.overlap,
            "rescore": self.rescore,
            "repair": self.repair,
            "budget": self.budget.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The settings `to_json` described."""
        return cls(**{**data, "budget": Budget.from_json(data["budget"])})
