"""What a trial gave: a score, or the reason why there is none."""

import math
from dataclasses import dataclass
from numbers import Integral, Real

from coevolve.errors import ScoreError

MOST_USAGE = 1e12
"""More than any trial can consume, of anything."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A trial without a score, and why; it leaves the sample and never counts as 0.

    >>> Missing("sandbox did not start")
    Missing(reason='sandbox did not start')
    """

    reason: str

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str) or not self.reason:
            raise ScoreError(f"a missing outcome needs a reason, got {self.reason!r}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a trial consumed; usages add up.

    >>> Usage(tokens_in=900, dollars=0.01) + Usage(tokens_in=100, seconds=2.5)
    Usage(tokens_in=1000, tokens_out=0, dollars=0.01, seconds=2.5)
    """

    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float = 0.0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        for name in ("tokens_in", "tokens_out", "dollars", "seconds"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real):
                raise ScoreError(f"usage {name} must be a number, got {value!r}.")
            plain = int(value) if isinstance(value, Integral) else float(value)
            if not 0 <= plain <= MOST_USAGE:
                raise ScoreError(f"usage {name} must be in [0, {MOST_USAGE:g}], got {value}.")
            object.__setattr__(self, name, plain)

    def to_json(self) -> dict[str, float]:
        """Plain JSON."""
        return {
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "dollars": self.dollars,
            "seconds": self.seconds,
        }

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            dollars=self.dollars + other.dollars,
            seconds=self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one trial of one candidate on one task; never rewritten.

    `trace` refers to a record of the trial kept elsewhere (a path or a content address).

    >>> Outcome(candidate="c1", task="sort-list", score=1.0).score
    1.0
    """

    candidate: str
    task: str
    trial: int = 0
    score: float | Missing
    usage: Usage | None = None
    trace: str | None = None

    def __post_init__(self) -> None:
        if not is_whole(self.trial, least=0):
            raise ScoreError(
                f"trial must be 0, 1, 2, ..., got {self.trial!r} for task {self.task!r}."
            )
        object.__setattr__(self, "trial", int(self.trial))
        if not isinstance(self.usage, Usage | None):
            raise ScoreError(f"usage must be a Usage, got {self.usage!r} for task {self.task!r}.")
        if not isinstance(self.trace, str | None):
            raise ScoreError(f"trace must be text, got {self.trace!r} for task {self.task!r}.")
        if not isinstance(self.score, Missing):
            object.__setattr__(self, "score", checked_score(self.score, self.task))


def is_whole(value: object, *, least: int) -> bool:
    """Whether a value is a whole number (numpy's too, but no boolean) of at least `least`."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def checked_score(score: object, task: str) -> float:
    """The score as a float, if it is a number in [0, 1].

    >>> checked_score(True, "sort-list")
    1.0
    """
    try:
        value = float(score)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if isinstance(score, str | bytes) or not 0.0 <= value <= 1.0:
        raise ScoreError(
            f"the score of task {task!r} must be a number in [0, 1], got {score!r}; "
            "use Missing(reason) for a trial without a score."
        )
    return value + 0.0
