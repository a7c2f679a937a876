"""Trials, their results, and the executor that runs them."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, NamedTuple, Protocol

from coevolve.core.outcomes import NO_USAGE, Usage, checked_score
from coevolve.errors import InputError
from coevolve.search.candidate import Candidate

Split = Literal["validation", "rescore", "test"]
"""What a trial is for: the search, scoring the winner on every task, or the sealed test."""


class Blame(StrEnum):
    """What is to blame for a fault; it decides how the fault is handled.

    >>> Blame("candidate") is Blame.CANDIDATE
    True
    """

    INFRASTRUCTURE = "infrastructure"
    """A service or this machine: retried, then missing if others meet it too."""
    CANDIDATE = "candidate"
    """The candidate: score 0, with the reason."""
    BENCHMARK = "benchmark"
    """The evaluator: score 0, but the run stops if it happens with a starting harness."""
    DOUBTFUL = "doubtful"
    """Unclear: retried like infrastructure; if it persists, handled like the evaluator's."""
    OPERATOR = "operator"
    """The setup of the run: it stops, with advice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a trial has no score.

    `kind` is a short name of the error ("time-limit", "RateLimitError"), `reason` a sentence that
    explains it, `advice` what the operator should do about it, if anything. `shared` says that the
    candidate cannot have caused it: it happened before the candidate was called, or others met it
    at the same time.

    >>> Fault(blame=Blame.CANDIDATE, kind="time-limit", reason="ran longer than 60 s").kind
    'time-limit'
    """

    blame: Blame
    kind: str
    reason: str
    advice: str = ""
    shared: bool = False

    @property
    def unexplained(self) -> bool:
        """Whether the infrastructure failed, and the candidate may have brought it about."""
        return self.blame is Blame.INFRASTRUCTURE and not self.shared

    @property
    def retried(self) -> bool:
        """Whether the trial is tried again."""
        return self.blame in (Blame.INFRASTRUCTURE, Blame.DOUBTFUL)

    @property
    def score(self) -> float | None:
        """The score of the trial: 0, or missing if the infrastructure is to blame."""
        return 0.0 if self.blame in ("candidate", "benchmark", "doubtful") else None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, without the advice."""
        plain: dict[str, Any] = {
            "blame": self.blame.value,
            "kind": self.kind,
            "reason": self.reason,
        }
        return plain | ({"shared": False} if self.unexplained else {})


class Cell(NamedTuple):
    """The outcome that a trial is for."""

    candidate: str
    task: str
    trial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One attempt at one trial of a candidate on a task.

    `attempt` counts from 0; `state` is the address of the state that `prepare` returned, if any.

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
    """The result of an attempt: a score or a fault, its usage, and a trace.

    `trace` is JSON text for users and proposers: prompts, answers, output.

    >>> Result(score=1.0).fault is None
    True
    """

    score: float | None = None
    fault: Fault | None = None
    usage: Usage = NO_USAGE
    trace: str | None = None

    def __post_init__(self) -> None:
        if (self.score is None) == (self.fault is None):
            raise InputError(
                f"a result needs a score or a fault, not both, got {self.score!r} and "
                f"{self.fault!r}."
            )
        if self.score is not None:
            object.__setattr__(self, "score", checked_score(self.score))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The result of checking or preparing a candidate.

    `state` is JSON text that every trial of the candidate gets: what it has learned.

    >>> Prepared().fault is None
    True
    """

    fault: Fault | None = None
    state: str | None = None
    usage: Usage = NO_USAGE
    trace: str | None = None


class Executor(Protocol):
    """Where trials run. Each method makes one attempt, and reports what fails as a fault.

    It may have an attribute `isolation_name` that says how candidate code is isolated, which
    every session records. An executor whose capacity changes while trials run has
    `elastic = True`; its capacity is then asked again every second.

    >>> class Alike:
    ...     capacity = 8
    ...     async def check(self, candidate): return Prepared()
    ...     async def prepare(self, candidate): return Prepared()
    ...     async def run(self, candidate, trial): return Result(score=0.5)
    ...     async def close(self): ...
    >>> executor: Executor = Alike()
    """

    @property
    def capacity(self) -> int:
        """How many attempts may run at once."""
        ...

    async def check(self, candidate: Candidate) -> Prepared:
        """Whether a candidate can be evaluated at all; its `fault` says what is wrong."""
        ...

    async def prepare(self, candidate: Candidate) -> Prepared:
        """Make a candidate ready for trials, once; every trial gets its state, if any."""
        ...

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        """Run one attempt; cancelling the call ends it and all its processes."""
        ...

    async def close(self) -> None:
        """End every process."""
        ...


def error_in(trace: str | None) -> str:
    """The traceback in the trace of a trial, a check or a preparation; empty if it has none.

    >>> error_in('{"output": "hello", "error": "Traceback ..."}')
    'Traceback ...'
    """
    try:
        found = json.loads(trace or "")
    except ValueError:
        return ""
    return str(found.get("error", "")) if isinstance(found, dict) else ""
