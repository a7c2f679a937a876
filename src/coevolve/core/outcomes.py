"""Outcomes: scores or why they are missing, the usage of trials, and results as told."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np

from coevolve.core.arrays import Bools, Floats
from coevolve.core.identifiers import Id, all_frozen, all_plain, frozen
from coevolve.errors import ChangedOutcomeError, InputError, NotAskedError, ScoreError
from coevolve.formatting import plural

USAGE = ("tokens_in", "tokens_out", "dollars", "seconds")
"""The fields of a usage, in the order of the events of a run."""

MOST_TRIALS = 10_000
"""Trials of a task; every assignment lists their numbers."""
MOST_USAGE = 1e12
"""Upper limit of every amount, far above that of any trial."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a trial has no score.

    It leaves the sample, unless its candidate lost more outcomes than others: what exceeds their
    rate counts as 0, because a candidate may have brought it about. With `shared`, the caller
    knows that the candidate did not, for example because a service was down for all. Such an
    outcome never counts as 0.

    >>> Missing("sandbox did not start")
    Missing(reason='sandbox did not start')
    """

    reason: str
    shared: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str) or not self.reason:
            raise ScoreError(f"a missing outcome needs a reason, got {self.reason!r}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a trial, a check or a proposal consumed; usages can be added.

    >>> Usage(tokens_in=900, dollars=0.01) + Usage(tokens_in=100, seconds=2.5)
    Usage(tokens_in=1000, tokens_out=0, dollars=0.01, seconds=2.5)
    """

    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float = 0.0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        for name in USAGE:
            value = getattr(self, name)
            if type(value) not in (int, float):
                object.__setattr__(self, name, _plain_amount(name, value))
            if not 0 <= getattr(self, name) <= MOST_USAGE:
                raise ScoreError(f"usage {name} must be in [0, {MOST_USAGE:g}], got {value}.")

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.tokens_in + self.tokens_out

    @property
    def row(self) -> list[float]:
        """The amounts in the order of `USAGE`."""
        return [getattr(self, name) for name in USAGE]

    def to_json(self) -> dict[str, float]:
        """Plain JSON."""
        return dict(zip(USAGE, self.row, strict=True))

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in USAGE})


NO_USAGE = Usage()


def _plain_amount(name: str, value: object) -> float:
    """An amount of a usage as a plain number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ScoreError(f"usage {name} must be a number, got {value!r}.")
    return int(value) if isinstance(value, Integral) else float(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one trial of one candidate on one task; never rewritten.

    The score is on the scale of the pool, from 0 to 1 unless the pool has another. `trace` refers
    to a record of the trial kept elsewhere (a path or a content address).

    >>> Outcome(candidate="c1", task="sort-list", score=1.0).score
    1.0
    """

    candidate: Id
    task: Id
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
            object.__setattr__(self, "score", checked_score(self.score, self.task, ANY_SCALE))
        for name in ("candidate", "task"):
            object.__setattr__(self, name, frozen(getattr(self, name)))


def is_whole(value: object, *, least: int) -> bool:
    """Whether a value is a whole number (also numpy's, but not a boolean) of at least `least`."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


ANY_SCALE = (-1e15, 1e15)
"""Every number that a scale may have."""


def checked_score(score: object, task: Id = "", scale: tuple[float, float] = (0.0, 1.0)) -> float:
    """The score as a float, if it is a number on the scale; errors name the task, if given.

    >>> checked_score(True, "sort-list")
    1.0
    """
    try:
        value = float(score)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if isinstance(score, str | bytes) or not scale[0] <= value <= scale[1]:
        what = "the score" if task == "" else f"the score of task {task!r}"
        raise ScoreError(
            f"{what} must be a number in [{scale[0]:.15g}, {scale[1]:.15g}], got {score!r}; use "
            "Missing(reason) for a trial without a score."
        )
    return value + 0.0


Score = float | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Outcomes of one candidate in columns; `missing` says why a score is None.

    The keys of `missing`, `usage` and `traces` are positions in the columns, as text, because
    JSON keys are text. `unexplained` has the keys of the missing outcomes that are not shared.
    """

    tasks: list[Id]
    trials: list[int]
    scores: list[float | None]
    missing: dict[str, str]
    usage: dict[str, dict[str, Any]]
    traces: dict[str, str]
    unexplained: list[str] = field(default_factory=list)

    def append(
        self,
        task: Id,
        trial: int,
        score: Score,
        usage: Usage | None = None,
        trace: str | None = None,
        *,
        scale: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        """Add one outcome, after a check of its score."""
        if isinstance(score, Missing):
            self.missing[str(len(self.tasks))] = score.reason
            if not score.shared:
                self.unexplained.append(str(len(self.tasks)))
            self.scores.append(None)
        else:
            self.scores.append(checked_score(score, task, scale))
        if usage is not None:
            self.usage[str(len(self.tasks))] = usage.to_json()
        if trace is not None:
            self.traces[str(len(self.tasks))] = trace
        self.tasks.append(task)
        self.trials.append(trial)

    def values(self) -> Floats:
        """Scores with NaN for missing."""
        return np.array([np.nan if s is None else s for s in self.scores], dtype=np.float64)

    def without(self, known: Bools) -> "Told":
        """The outcomes that are not known yet."""
        if not known.any():
            return self
        keep = np.flatnonzero(~known).tolist()
        place = {str(old): str(new) for new, old in enumerate(keep)}
        return Told(
            tasks=[self.tasks[i] for i in keep],
            trials=[self.trials[i] for i in keep],
            scores=[self.scores[i] for i in keep],
            missing={place[k]: v for k, v in self.missing.items() if k in place},
            usage={place[k]: v for k, v in self.usage.items() if k in place},
            traces={place[k]: v for k, v in self.traces.items() if k in place},
            unexplained=[place[k] for k in self.unexplained if k in place],
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        data["tasks"] = all_plain(self.tasks)
        if not self.unexplained:
            del data["unexplained"]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Told":
        """The outcomes `to_json` described; other keys are ignored.

        Events of earlier versions have no unexplained outcomes: all of them were missing.
        """
        unexplained = list(data.get("unexplained", ()))
        names = [name for name in cls.__dataclass_fields__ if name != "unexplained"]
        columns = {name: data[name] for name in names}
        columns["tasks"] = list(all_frozen(data["tasks"]))
        return cls(**columns, unexplained=unexplained)

    def total_usage(self) -> Usage:
        """Sum of what the trials consumed."""
        rows = list(self.usage.values())
        return Usage(**{name: sum([row[name] for row in rows]) for name in USAGE})


Results = Mapping[Any, Score | Sequence[Score]] | Iterable[Outcome] | Told


def read_results(
    candidate: Id,
    results: Results,
    trials: Sequence[int],
    scale: tuple[float, float] = (0.0, 1.0),
) -> Told:
    """Results of a candidate in columns, checked against the trial numbers it was asked for."""
    if isinstance(results, Told):
        if not set(results.trials) <= set(trials):
            raise NotAskedError(f"candidate {candidate!r} was asked for trials {list(trials)}.")
        return results
    told = Told(tasks=[], trials=[], scores=[], missing={}, usage={}, traces={})
    if not isinstance(results, Iterable) or isinstance(results, str | bytes):
        raise InputError(f"results must be {{task: score}} or Outcomes, got {results!r}.")
    if isinstance(results, Mapping):
        for task, value in results.items():
            for trial, score in zip(trials, _scores(task, value, len(trials)), strict=False):
                told.append(frozen(task), trial, score, scale=scale)
    else:
        _read_outcomes(told, candidate, results, trials, scale)
    return told


def _scores(task: Id, value: Score | Sequence[Score], trials: int) -> Sequence[Score]:
    """The scores of a task's trials, in order; the last ones may be told later."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        if trials > 1:
            raise InputError(
                f"task {task!r} has {trials} trials; tell a list of scores or Outcomes, "
                f"got {value!r}."
            )
        return (value,)  # type: ignore[return-value]
    if len(value) > trials:
        raise NotAskedError(
            f"task {task!r} was asked for {plural(trials, 'trial')}, got {len(value)} scores."
        )
    return value


def _read_outcomes(
    told: Told,
    candidate: Id,
    outcomes: Iterable[Outcome],
    trials: Sequence[int],
    scale: tuple[float, float],
) -> None:
    seen: dict[tuple[Id, int], Score] = {}
    for outcome in outcomes:
        if not isinstance(outcome, Outcome):
            raise InputError(f"results must be {{task: score}} or Outcomes, got {outcome!r}.")
        if outcome.candidate != candidate:
            raise InputError(
                f"an outcome of candidate {outcome.candidate!r} was told for {candidate!r}."
            )
        if outcome.trial not in trials:
            raise NotAskedError(
                f"trial {outcome.trial} of task {outcome.task!r} was not asked for candidate "
                f"{candidate!r}; the trials asked for are {', '.join(map(str, trials))}."
            )
        key = (outcome.task, outcome.trial)
        if key not in seen:
            seen[key] = outcome.score
            told.append(
                outcome.task,
                outcome.trial,
                outcome.score,
                outcome.usage,
                outcome.trace,
                scale=scale,
            )
        elif seen[key] != outcome.score:
            raise ChangedOutcomeError(
                f"task {outcome.task!r}, trial {outcome.trial}, is given twice for candidate "
                f"{candidate!r}: {seen[key]} and {outcome.score}."
            )
