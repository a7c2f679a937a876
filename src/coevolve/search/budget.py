"""How a run searches: its settings, hard caps, and the two ledgers they apply to."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from coevolve.core.outcomes import Usage, is_whole
from coevolve.errors import InputError

CAPS = ("trials", "tokens", "dollars", "hours")


USAGE = ("tokens_in", "tokens_out", "dollars", "seconds")
"""The order in which events list what was consumed."""


def usage_row(usage: Usage) -> list[float]:
    """A usage as events list it.

    >>> usage_row(Usage(tokens_in=900, seconds=2.5))
    [900, 0, 0.0, 2.5]
    """
    return [getattr(usage, name) for name in USAGE]


@dataclass(slots=True, kw_only=True)
class Ledger:
    """What one side of a run has spent.

    `trials` counts outcomes, `failed_attempts` the attempts that were made again. Money and time
    are kept in whole billionths, so that a sum does not depend on the order of its terms.

    >>> ledger = Ledger()
    >>> ledger.spend([900, 100, 0.01, 2.5], trials=1)
    >>> ledger.tokens, ledger.dollars
    (1000, 0.01)
    """

    trials: int = 0
    failed_attempts: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    nano_dollars: int = 0
    nano_seconds: int = 0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    @property
    def dollars(self) -> float:
        return self.nano_dollars / 1e9

    @property
    def seconds(self) -> float:
        return self.nano_seconds / 1e9

    def spend(self, row: Sequence[float], *, trials: int = 0, failed_attempts: int = 0) -> None:
        """Add what was consumed, in the order of `USAGE`."""
        tokens_in, tokens_out, dollars, seconds = row
        self.tokens_in += int(tokens_in)
        self.tokens_out += int(tokens_out)
        self.nano_dollars += round(dollars * 1e9)
        self.nano_seconds += round(seconds * 1e9)
        self.trials += trials
        self.failed_attempts += failed_attempts

    def add(self, other: "Ledger") -> None:
        """Add what another ledger has."""
        for name, value in other.exact().items():
            setattr(self, name, getattr(self, name) + value)

    def exact(self) -> dict[str, int]:
        """Every field, in whole numbers."""
        return asdict(self)

    def to_json(self) -> dict[str, float]:
        """What it says, as plain JSON."""
        names = ("trials", "failed_attempts", *USAGE)
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What a budget is held against: both ledgers, trials and hours."""

    trials: float = 0
    tokens: float = 0
    dollars: float = 0.0
    hours: float = 0.0

    @classmethod
    def of(cls, proposing: Ledger, evaluating: Ledger, seconds: float) -> Self:
        """What both sides have spent in this time."""
        return cls(
            trials=evaluating.trials,
            tokens=proposing.tokens + evaluating.tokens,
            dollars=proposing.dollars + evaluating.dollars,
            hours=seconds / 3600,
        )

    def plus(self, times: float, each: "Spending") -> "Spending":
        """With several more of the same added."""
        return Spending(**{c: getattr(self, c) + times * getattr(each, c) for c in CAPS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Hard caps on trials, tokens, US dollars and hours, proposing and evaluating together.

    A cap left out does not bind. Caps are checked before every trial; what the trials under way
    may still cost is counted in, as much each as the dearest trial so far.

    >>> budget = Budget(trials=100, dollars=5)
    >>> budget.reached(Spending(trials=99, dollars=1.0)) is None
    True
    >>> budget.reached(Spending(trials=100))
    'trials'
    """

    trials: int | None = None
    tokens: int | None = None
    dollars: float | None = None
    hours: float | None = None

    def __post_init__(self) -> None:
        for name in CAPS:
            cap = getattr(self, name)
            if cap is not None and not (cap > 0 and math.isfinite(cap)):
                raise InputError(f"budget {name} must be positive, got {cap}.")

    @property
    def priced(self) -> bool:
        """Whether a cap binds that nobody knows the price of a trial in, before one has run."""
        return self.tokens is not None or self.dollars is not None

    def reached(self, spent: Spending) -> str | None:
        """The first cap that leaves nothing, if any."""
        return next((c for c in CAPS if self._cap(c) <= getattr(spent, c)), None)

    def exceeded(self, spent: Spending) -> str | None:
        """The first cap that would be passed, if any."""
        return next((c for c in CAPS if getattr(spent, c) > self._cap(c) * (1 + 1e-12)), None)

    def _cap(self, name: str) -> float:
        cap = getattr(self, name)
        return math.inf if cap is None else float(cap)

    def to_json(self) -> dict[str, float | None]:
        """Plain JSON."""
        return {name: getattr(self, name) for name in CAPS}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The budget `to_json` described."""
        return cls(**data)


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
