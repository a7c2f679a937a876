"""Trials as the engine runs them, and what can go wrong with one."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NamedTuple

from coevolve.core.outcomes import Usage, checked_score
from coevolve.errors import InputError

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
