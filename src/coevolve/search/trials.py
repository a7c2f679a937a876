"""Trials as the engine runs them, their results, how long they take and what they add up to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, NamedTuple, Self

from coevolve.core.events import Event
from coevolve.core.outcomes import Missing, Usage, checked_score
from coevolve.core.pool import Pool
from coevolve.errors import InputError, titled
from coevolve.search.budget import Ledger

Split = Literal["validation", "rescore", "test"]
"""What a trial is for: the search, scoring the winner in full, or the sealed test."""


class Blame(StrEnum):
    """Who is to blame for a fault, which decides what follows from it.

    >>> Blame("candidate") is Blame.CANDIDATE
    True
    """

    INFRASTRUCTURE = "infrastructure"
    """Nobody: tried again at most twice, then missing."""
    CANDIDATE = "candidate"
    """The candidate: score 0, with the reason."""
    BENCHMARK = "benchmark"
    """The evaluator: the candidate's fault, unless a starting harness meets it."""
    DOUBTFUL = "doubtful"
    """Nobody can tell: tried again like infrastructure, and if it persists, like a benchmark's."""
    OPERATOR = "operator"
    """Whoever started the run: it stops, with advice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a trial has no score of its own.

    `kind` is a short name of the error ("time-limit", "RateLimitError"), `reason` a sentence for
    people, `advice` what the operator should do about it, where that helps.

    >>> Fault(blame=Blame.CANDIDATE, kind="time-limit", reason="ran past 60 s").kind
    'time-limit'
    """

    blame: Blame
    kind: str
    reason: str
    advice: str = ""


class Cell(NamedTuple):
    """Which outcome a trial is for."""

    candidate: str
    task: str
    trial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One attempt at one trial of a candidate on a task.

    `attempt` counts from 0; `state` is the address of what `prepare` gave, if anything.

    >>> Trial(candidate="c1", task="sort-list").cell
    Cell(candidate='c1', task='sort-list', trial=0)
    """

    candidate: str
    task: str
    trial: int = 0
    attempt: int = 0
    split: Split = "validation"
    state: str | None = None

    @property
    def cell(self) -> Cell:
        return Cell(self.candidate, self.task, self.trial)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an attempt gave: a score or a fault, what it consumed, and a trace.

    `trace` is JSON text for people and proposers: prompts, answers, output.

    >>> Result(score=1.0).fault is None
    True
    """

    score: float | None = None
    fault: Fault | None = None
    usage: Usage = field(default_factory=Usage)
    trace: str | None = None

    def __post_init__(self) -> None:
        if (self.score is None) == (self.fault is None):
            raise InputError(
                f"a result has a score or a fault, got {self.score!r} and {self.fault!r}."
            )
        if self.score is not None:
            object.__setattr__(self, "score", checked_score(self.score, "of a trial"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What checking or preparing a candidate gave.

    `state` is JSON text that goes with every trial of the candidate: what it has learned.

    >>> Prepared().fault is None
    True
    """

    fault: Fault | None = None
    state: str | None = None
    usage: Usage = field(default_factory=Usage)
    trace: str | None = None


@dataclass(slots=True, kw_only=True)
class Pace:
    """Seconds per task and the dearest trial so far.

    Tasks nobody has run yet are taken to be as long as their cost says, or as the average.

    >>> pace = Pace.of(Pool(["a", "b"]))
    >>> pace.note("a", [0, 0, 0, 4.0])
    >>> pace.note("a", [0, 0, 0, 6.0])
    >>> pace.seconds("a"), pace.seconds("b")
    (5.0, 5.0)
    """

    costs: dict[str, float] = field(default_factory=dict)
    tokens: float = 0
    dollars: float = 0.0
    sums: dict[str, list[float]] = field(default_factory=dict)
    total: float = 0.0
    trials: int = 0

    @classmethod
    def of(cls, pool: Pool) -> "Pace":
        """The pace before any trial."""
        costs = {}
        if pool.costs is not None:
            mean = float(pool.costs.mean())
            costs = dict(zip(pool.tasks, (pool.costs / mean).tolist(), strict=True))
        return cls(costs=costs)

    def note(self, task: str, row: Sequence[float]) -> None:
        """Learn from one trial, whose usage is listed in the order of `USAGE`."""
        tokens_in, tokens_out, dollars, seconds = row
        self._add(task, seconds, 1)
        self.dearer(tokens_in + tokens_out, dollars)

    def add(self, other: "Pace") -> None:
        """Learn what another pace has learned."""
        for task, (seconds, trials) in other.sums.items():
            self._add(task, seconds, int(trials))
        self.dearer(other.tokens, other.dollars)

    def seconds(self, task: str) -> float:
        """Expected seconds of a trial of a task."""
        if task in self.sums:
            seconds, trials = self.sums[task]
            return seconds / trials
        mean = self.total / self.trials if self.trials else 1.0
        return mean * self.costs.get(task, 1.0)

    def to_json(self) -> dict[str, Any]:
        """What was learned, as plain JSON."""
        return {"tokens": self.tokens, "dollars": self.dollars, "sums": self.sums}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Pace":
        """The pace `to_json` described."""
        pace = cls(tokens=data["tokens"], dollars=data["dollars"])
        for task, (seconds, trials) in data["sums"].items():
            pace._add(task, seconds, trials)
        return pace

    def _add(self, task: str, seconds: float, trials: int) -> None:
        known = self.sums.get(task)
        if known is None:
            self.sums[task] = [seconds, trials]
        else:
            known[0] += seconds
            known[1] += trials
        self.total += seconds
        self.trials += trials

    def dearer(self, tokens: float, dollars: float) -> None:
        """Remember a price if it is the highest so far."""
        self.tokens = max(self.tokens, tokens)
        self.dollars = max(self.dollars, dollars)


@dataclass(slots=True, kw_only=True)
class Tally:
    """What the trials of a wave consumed, how long they took, and what went wrong.

    >>> tally = Tally()
    >>> tally.outcome({"candidate": "c1", "task": "a", "score": 1.0, "usage": [9, 1, 0.0, 2.5]})
    1.0
    >>> tally.ledger.trials, tally.pace.seconds("a")
    (1, 2.5)
    """

    ledger: Ledger = field(default_factory=Ledger)
    pace: Pace = field(default_factory=Pace)
    failures: dict[str, int] = field(default_factory=dict)
    zeros: dict[str, int] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)

    def outcome(self, event: Event) -> float | Missing:
        """Count an outcome, and return its score or why it is missing."""
        usage, score = event["usage"], event["score"]
        self.ledger.spend(usage, trials=1)
        self.pace.note(event["task"], usage)
        if (fault := event.get("fault")) is None:
            return float(score)
        _add(self.failures, fault["kind"], 1)
        _add(self.missing if score is None else self.zeros, event["candidate"], 1)
        if score is not None:
            return float(score)
        return Missing(titled(fault["kind"], fault["reason"]))

    def failed(self, event: Event) -> None:
        """Count an attempt that is made again."""
        tokens_in, tokens_out, dollars, _ = event["usage"]
        self.ledger.spend(event["usage"], failed_attempts=1)
        self.pace.dearer(tokens_in + tokens_out, dollars)

    def forgive(self, candidate: str, count: int) -> None:
        """Take back missing outcomes, which are waited for once more."""
        _add(self.missing, candidate, -count)
        if not self.missing[candidate]:
            del self.missing[candidate]

    def add(self, other: "Tally") -> None:
        """Add what another tally counted."""
        self.ledger.add(other.ledger)
        self.pace.add(other.pace)
        for name in ("failures", "zeros", "missing"):
            for key, count in getattr(other, name).items():
                _add(getattr(self, name), key, count)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "ledger": self.ledger.exact(),
            "pace": self.pace.to_json(),
            "failures": self.failures,
            "zeros": self.zeros,
            "missing": self.missing,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The tally `to_json` described."""
        return cls(
            ledger=Ledger(**data["ledger"]),
            pace=Pace.from_json(data["pace"]),
            failures=dict(data["failures"]),
            zeros=dict(data["zeros"]),
            missing=dict(data["missing"]),
        )


def _add(counts: dict[str, int], key: str, count: int) -> None:
    counts[key] = counts.get(key, 0) + count
