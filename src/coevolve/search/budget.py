"""The budget and the spending of a run, and the other settings of a search.

A `Usage` is what one trial, check or proposal consumed. A `Ledger` sums usages; a run has two, for
proposing and evaluating. `Spending` is the sum of both, in the measures of a `Budget`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self, get_args

from coevolve.core.outcomes import USAGE, Usage, is_whole
from coevolve.errors import InputError

_SUMS = ("trials", "failed_attempts", "tokens_in", "tokens_out", "nano_dollars", "nano_seconds")


@dataclass(slots=True, kw_only=True)
class Ledger:
    """What one side of a run has spent, and the highest cost of a single entry.

    `trials` counts outcomes, `failed_attempts` the attempts that were repeated. Money and time
    are kept in whole billionths, so a sum does not depend on the order of its terms.

    >>> ledger = Ledger()
    >>> ledger.spend([900, 100, 0.01, 2.5], trials=1)
    >>> ledger.spend([9, 1, 0.02, 0.5], trials=1)
    >>> ledger.tokens, ledger.dollars, ledger.most_tokens, ledger.most_dollars
    (1010, 0.03, 1000, 0.02)
    """

    trials: int = 0
    failed_attempts: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    nano_dollars: int = 0
    nano_seconds: int = 0
    most_tokens: float = 0
    most_dollars: float = 0.0

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
        self._raise_most(tokens_in + tokens_out, dollars)

    def add(self, other: "Ledger") -> None:
        """Add the sums of another ledger."""
        for name, value in other.sums().items():
            setattr(self, name, getattr(self, name) + value)
        self._raise_most(other.most_tokens, other.most_dollars)

    def _raise_most(self, tokens: float, dollars: float) -> None:
        self.most_tokens = max(self.most_tokens, tokens)
        self.most_dollars = max(self.most_dollars, dollars)

    def sums(self) -> dict[str, int]:
        """Every sum, in whole numbers."""
        return {name: getattr(self, name) for name in _SUMS}

    def to_json(self) -> dict[str, float]:
        """The sums in the units of `Usage`, as plain JSON."""
        names = ("trials", "failed_attempts", *USAGE)
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Amounts of everything that a budget can cap."""

    trials: float = 0
    tokens: float = 0
    dollars: float = 0.0
    hours: float = 0.0

    @classmethod
    def of_run(cls, proposing: Ledger, evaluating: Ledger, seconds: float) -> Self:
        """What a run has spent after `seconds`."""
        return cls(
            trials=evaluating.trials,
            tokens=proposing.tokens + evaluating.tokens,
            dollars=proposing.dollars + evaluating.dollars,
            hours=seconds / 3600,
        )

    @classmethod
    def of_usage(cls, used: Usage) -> Self:
        """What was used beside trials."""
        return cls(tokens=used.tokens, dollars=used.dollars)

    @classmethod
    def highest(cls, ledger: Ledger, *, trials: int) -> Self:
        """The highest cost of a single entry, which counts as `trials` trials."""
        return cls(trials=trials, tokens=ledger.most_tokens, dollars=ledger.most_dollars)

    @classmethod
    def average(cls, ledger: Ledger, capacity: int) -> Self:
        """The average cost of a trial when `capacity` trials run at once."""
        count = max(1, ledger.trials)
        return cls(
            trials=1,
            tokens=ledger.tokens / count,
            dollars=ledger.dollars / count,
            hours=ledger.seconds / count / capacity / 3600,
        )

    def plus(self, times: float, each: "Spending") -> "Spending":
        """This amount plus `times` times `each`."""
        return Spending(**{c: getattr(self, c) + times * getattr(each, c) for c in CAPS})


LARGEST_CAP = 10**18
"""The largest cap of a budget; anything above is a mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Hard caps on trials, tokens, US dollars and hours, proposing and evaluating together.

    A measure without a cap is not limited. Caps are checked before every trial; each running
    trial counts with the highest cost of a trial so far.

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
            if cap is not None and not cap > 0:
                raise InputError(f"budget {name} must be positive, got {cap}.")
            if cap is not None and cap > LARGEST_CAP:
                raise InputError(f"budget {name} must be at most {LARGEST_CAP:.0e}.")

    @property
    def unlimited(self) -> bool:
        """Whether it caps nothing."""
        return self.trials is None and self.hours is None and not self.priced

    @property
    def priced(self) -> bool:
        """Whether it caps tokens or dollars; what a trial costs in these is unknown beforehand."""
        return self.tokens is not None or self.dollars is not None

    def reached(self, spent: Spending) -> str | None:
        """The first cap that is reached, if any."""
        return next((c for c in CAPS if self._cap(c) <= getattr(spent, c)), None)

    def exceeded(self, spent: Spending) -> str | None:
        """The first cap that is exceeded, if any."""
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


CAPS = tuple(cap.name for cap in fields(Budget))
WHOLE_CAPS = tuple(cap.name for cap in fields(Budget) if int in get_args(cap.type))
SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a run searches.

    Args:
        rounds: Rounds of proposing and evaluating.
        candidates: Candidates proposed per round.
        seed: Seed of the run.
        overlap: Whether the next round is proposed while the last one is evaluated. The proposer
            then knows one round less, so the search differs from one without overlap.
        in_flight: How many candidates may be under way at once in a search without rounds; None
            for one with rounds.
        budget: Hard caps.
        rescore: Whether the winner is scored on every validation task after the choice, to show
            how good its estimate was.
        repair: Whether a candidate that fails its check is sent back for repair, once.

    >>> Settings(rounds=20, candidates=3).overlap
    False
    """

    rounds: int
    candidates: int = 1
    seed: int = 0
    overlap: bool = False
    in_flight: int | None = None
    rescore: bool = False
    repair: bool = False
    budget: Budget = field(default_factory=Budget)

    def __post_init__(self) -> None:
        for name, least in (("rounds", 1), ("candidates", 1), ("seed", 0)):
            value = getattr(self, name)
            if not is_whole(value, least=least):
                raise InputError(
                    f"{name} must be a whole number of at least {least}, got {value!r}."
                )
        self._check_in_flight()

    def _check_in_flight(self) -> None:
        """Refuse a number under way that has no effect, or leaves no room for a proposal."""
        if self.in_flight is None:
            return
        if not is_whole(self.in_flight, least=1):
            raise InputError(
                f"in_flight must be a whole number of at least 1, got {self.in_flight!r}; leave "
                "it out for a search with rounds."
            )
        if self.overlap:
            raise InputError(
                "overlap has no effect with in_flight, which always proposes while trials run; "
                "leave out one of them."
            )
        if self.candidates > self.in_flight:
            raise InputError(
                f"in_flight must be at least candidates: a proposal of {self.candidates} "
                f"candidates never fits into {self.in_flight}. Raise in_flight, or lower "
                "candidates."
            )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "rounds": self.rounds,
            "candidates": self.candidates,
            "seed": self.seed,
            "overlap": self.overlap,
            **({} if self.in_flight is None else {"in_flight": self.in_flight}),
            "rescore": self.rescore,
            "repair": self.repair,
            "budget": self.budget.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The settings `to_json` described."""
        return cls(**{**data, "budget": Budget.from_json(data["budget"])})
