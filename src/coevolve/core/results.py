"""Results as users tell them, turned into arrays."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coevolve.core.arrays import Bools, Floats
from coevolve.core.outcomes import Missing, Outcome, Usage, checked_score
from coevolve.errors import ChangedOutcomeError, InputError, NotAskedError

Score = float | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Outcomes of one candidate in columns; a missing one has the reason in `missing`.

    `missing`, `usage` and `traces` are keyed by position in the columns, as text: JSON has no
    other keys.
    """

    tasks: list[str]
    trials: list[int]
    scores: list[float | None]
    missing: dict[str, str]
    usage: dict[str, dict[str, Any]]
    traces: dict[str, str]

    def append(
        self,
        task: str,
        trial: int,
        score: Score,
        usage: Usage | None = None,
        trace: str | None = None,
    ) -> None:
        """Add one outcome, if its score is one."""
        if isinstance(score, Missing):
            self.missing[str(len(self.tasks))] = score.reason
            self.scores.append(None)
        else:
            self.scores.append(checked_score(score, task))
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
        """Only the outcomes that are not known yet."""
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
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def total_usage(self) -> Usage:
        """Sum of what the trials consumed."""
        rows = list(self.usage.values())
        names = ("tokens_in", "tokens_out", "dollars", "seconds")
        return Usage(**{name: sum([row[name] for row in rows]) for name in names})


Results = Mapping[str, Score | Sequence[Score]] | Iterable[Outcome] | Told


def read_results(candidate: str, results: Results, trials: Sequence[int]) -> Told:
    """Check and flatten what was told of a candidate, asked for these trial numbers."""
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
                told.append(task, trial, score)
    else:
        _read_outcomes(told, candidate, results, trials)
    return told


def _scores(task: str, value: Score | Sequence[Score], trials: int) -> Sequence[Score]:
    """The scores of a task's trials, in order; the last ones may still be to come."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        if trials > 1:
            raise InputError(
                f"task {task!r} has {trials} trials; tell a list of scores or Outcomes, "
                f"got {value!r}."
            )
        return (value,)  # type: ignore[return-value]
    if len(value) > trials:
        raise NotAskedError(
            f"task {task!r} was asked for {trials} trials, got {len(value)} scores."
        )
    return value


def _read_outcomes(
    told: Told, candidate: str, outcomes: Iterable[Outcome], trials: Sequence[int]
) -> None:
    seen: dict[tuple[str, int], Score] = {}
    for outcome in outcomes:
        if not isinstance(outcome, Outcome):
            raise InputError(f"results must be {{task: score}} or Outcomes, got {outcome!r}.")
        if outcome.candidate != candidate:
            raise InputError(
                f"an outcome of candidate {outcome.candidate!r} was told for {candidate!r}."
            )
        if outcome.trial not in trials:
            raise NotAskedError(
                f"trial {outcome.trial} of task {outcome.task!r} was not asked of candidate "
                f"{candidate!r}; asked were {', '.join(map(str, trials))}."
            )
        key = (outcome.task, outcome.trial)
        if key not in seen:
            seen[key] = outcome.score
            told.append(outcome.task, outcome.trial, outcome.score, outcome.usage, outcome.trace)
        elif seen[key] != outcome.score:
            raise ChangedOutcomeError(
                f"task {outcome.task!r}, trial {outcome.trial}, is given twice for candidate "
                f"{candidate!r}: {seen[key]} and {outcome.score}."
            )
