"""Comparisons: the difference of two candidates with its interval, and all candidates ranked.

A joint model has the covariance of all scores. Without one, two candidates that share a draw are
compared task by task: the difference of their estimates is the estimate of their differences
d_t = x_t - y_t, whose variance is that of d_t and not of x_t and y_t. Candidates with draws of
their own are independent, and their intervals are combined as squares [ZouDonner2008].
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from coevolve.core.assignment import Design, Sample, drawn_samples
from coevolve.core.estimators import (
    Difference,
    Estimate,
    Estimator,
    Hajek,
    HorvitzThompson,
    RawMean,
    quantile,
)
from coevolve.core.evidence import Evidence
from coevolve.core.identifiers import Id, plain
from coevolve.core.judgement import check_known, estimated
from coevolve.core.pool import UNIT_SCALE
from coevolve.core.posterior import JointModel
from coevolve.core.selector_state import State
from coevolve.errors import InputError, NoOutcomeError
from coevolve.formatting import decimals

_OTHER_TASKS = "the two estimates are for different tasks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How much higher candidate `a` scores than candidate `b`.

    `value` is the difference of their full-set scores on the `scale` of the pool, `se` its
    standard error, `low` to `high` its interval; None if they are unknown, and `note` says why.
    `method` is "joint", "paired" (both ran `tasks` common tasks of one draw), "independent" (each
    has its own draw) or "exact". `probability` is that of `a` being better, under a joint model.

    >>> print(Comparison(a="new", b="old", value=0.031, se=0.02, low=-0.008, high=0.07,
    ...     method="paired", tasks=18))
    new - old: +0.031 ± 0.020, from -0.008 to +0.070 (paired, 18 tasks)
    """

    a: Id
    b: Id
    value: float
    se: float | None
    low: float | None
    high: float | None
    method: Literal["joint", "paired", "independent", "exact"]
    tasks: int = 0
    note: str = ""
    probability: float | None = None
    scale: tuple[float, float] = UNIT_SCALE

    @classmethod
    def paired(cls, a: Id, b: Id, found: Estimate, tasks: int) -> Self:
        """The comparison from an estimate of the differences on common tasks."""
        return cls(
            a=a,
            b=b,
            value=found.value,
            se=found.se,
            low=found.low,
            high=found.high,
            method="paired",
            tasks=tasks,
            note=found.note.replace("all scores", "all differences"),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return data | {"a": plain(self.a), "b": plain(self.b), "scale": list(self.scale)}

    def scaled(self, scale: tuple[float, float]) -> "Comparison":
        """This comparison of scores from 0 to 1, on another scale."""
        span = scale[1] - scale[0]
        names = ("value", "se", "low", "high")
        ends = {n: None if getattr(self, n) is None else span * getattr(self, n) for n in names}
        return replace(self, scale=scale, **ends)  # type: ignore[arg-type]

    def __str__(self) -> str:
        places = decimals(self.scale)
        text = f"{self.a} - {self.b}: {self.value:+.{places}f}"
        if self.method == "exact":
            return f"{text} (exact)"
        text += " ± ?" if self.se is None else f" ± {self.se:.{places}f}"
        if self.low is not None and self.high is not None:
            text += f", from {self.low:+.{places}f} to {self.high:+.{places}f}"
        tasks = f", {self.tasks} tasks" if self.tasks else ""
        other = f"; {_OTHER_TASKS}" if _OTHER_TASKS in self.note else ""
        return f"{text} ({self.method}{tasks}{other})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A candidate in the standings; `rank` is None, and `reason` says why, without an estimate.

    `kind` is "start", "candidate", or "observed" for one with nothing but observed outcomes.
    `waiting` counts the trials that were asked for and not told.

    >>> from coevolve import Pool, Selector
    >>> selector = Selector(Pool(["a", "b"]))
    >>> selector.tell_full("start", {"a": 1, "b": 0})
    >>> [(row.rank, row.candidate, row.estimate.value) for row in selector.standings()]
    [(1, 'start', 0.5)]
    """

    rank: int | None
    candidate: Id
    kind: Literal["start", "candidate", "observed"]
    round: int
    estimate: Estimate | None
    reason: str = ""
    waiting: int = 0


def standings_of(state: State) -> list[Ranked]:
    """All candidates by their estimates, the highest first; equal ones in the order they came."""
    rows = []
    for candidate in state.table.candidates:
        estimate, reason = None, ""
        try:
            estimate = estimated(state, candidate)
        except NoOutcomeError as error:
            reason = str(error)
        start, other = candidate in state.starts, candidate in state.others
        waiting = [p for (name, _), p in state.waiting.items() if name == candidate]
        rows.append(
            Ranked(
                rank=None,
                candidate=candidate,
                kind="start" if start else "observed" if other else "candidate",
                round=state.table.round_of(candidate),
                estimate=estimate,
                reason=reason,
                waiting=sum(len(progress.assignment) - progress.told for progress in waiting),
            )
        )
    rows.sort(key=lambda row: math.inf if row.estimate is None else -row.estimate.value)
    return [
        replace(row, rank=None if row.estimate is None else place)
        for place, row in enumerate(rows, 1)
    ]


def compared(state: State, a: Id, b: Id) -> Comparison:
    """The difference of two candidates with its interval."""
    for candidate in (a, b):
        check_known(state, candidate)
    if a == b:
        raise InputError(f"compare needs two candidates, got {a!r} twice.")
    one, other = estimated(state, a), estimated(state, b)
    if one.exact and other.exact:
        value = one.value - other.value
        return Comparison(
            a=a, b=b, value=value, se=0.0, low=value, high=value, method="exact", scale=one.scale
        )
    if isinstance(state.estimator, JointModel):
        return _joint(state, a, b).scaled(state.pool.scale)
    paired = _paired(state, a, b)
    return _independent(a, b, one, other) if paired is None else paired.scaled(state.pool.scale)


def _joint(state: State, a: Id, b: Id) -> Comparison:
    """From the covariance of all scores."""
    from scipy.special import ndtr  # on first use: slow to import

    posterior, names = state.posterior(), state.table.candidates
    i, j = names.index(a), names.index(b)
    value = float(posterior.scores[i] - posterior.scores[j])
    covariance = posterior.uncertainty
    variance = float(covariance[i, i] + covariance[j, j] - 2 * covariance[i, j])
    se = math.sqrt(max(variance, 0.0))
    reach = se * quantile((1 + state.confidence) / 2, None)
    return Comparison(
        a=a,
        b=b,
        value=value,
        se=se,
        low=value - reach,
        high=value + reach,
        method="joint",
        probability=float(ndtr(value / se)) if se > 0 else float(value > 0) + 0.5 * (value == 0),
    )


def _paired(state: State, a: Id, b: Id) -> Comparison | None:
    """From the common tasks of one draw, or None without such a draw."""
    if not (a in state.batches and b in state.batches) or {a, b} & state.whole.keys():
        return None
    first, second = state.evidence(a), state.evidence(b)
    rule, designs = _linear(state.estimator), first.batches[0].assignment.designs
    if rule is None or len(first.batches) > 1 or not _same_draw(first, second):
        return None
    samples, others = _on_common_tasks(state, designs, first, second)
    if any(not len(sample.scores) for sample in samples):
        return None
    apart = [
        replace(sample, scores=sample.scores - other.scores, anticipation=None)
        for sample, other in zip(samples, others, strict=True)
    ]
    found = rule.estimate(apart, first.pool.weights, state.confidence)
    return Comparison.paired(a, b, found, found.tasks)


def _linear(estimator: object) -> Estimator | None:
    """The estimator of differences of scores; anchors are the same for both and cancel."""
    if isinstance(estimator, Difference):
        return HorvitzThompson()
    return estimator if isinstance(estimator, Hajek | HorvitzThompson | RawMean) else None


def _same_draw(one: Evidence, other: Evidence) -> bool:
    """Whether both have one batch, of the same draw."""
    if len(one.batches) > 1 or len(other.batches) > 1:
        return False
    pairs = (one.batches[0].assignment.designs, other.batches[0].assignment.designs)
    if len(pairs[0]) != len(pairs[1]):
        return False
    return all(
        p is q
        or ((p.seed, p.tasks) == (q.seed, q.tasks) and (p.probabilities == q.probabilities).all())
        for p, q in zip(*pairs, strict=True)
    )


def _on_common_tasks(
    state: State, designs: Sequence[Design], one: Evidence, other: Evidence
) -> tuple[list[Sample], list[Sample]]:
    """The samples of two candidates, restricted to the tasks on which both have a score."""
    found = []
    for evidence in (one, other):
        assignment = evidence.batches[0].assignment
        means = state.table.means(assignment.candidate, assignment.trials, evidence.failed)
        found.append(means)
    common = np.intersect1d(found[0][0], found[1][0])
    first, second = (
        drawn_samples([designs], common, means[np.isin(tasks, common)]) for tasks, means in found
    )
    return first, second


def _independent(a: Id, b: Id, one: Estimate, other: Estimate) -> Comparison:
    """From the intervals of both, as if their errors were independent."""
    value, notes = one.value - other.value, [one.note, other.note]
    se = low = high = None
    if one.se is not None and other.se is not None:
        se = math.hypot(one.se, other.se)
    ends = (one.low, one.high, other.low, other.high)
    if None not in ends:
        below, above, other_below, other_above = (
            abs(end - centre)  # type: ignore[operator]
            for end, centre in zip(
                ends, (one.value, one.value, other.value, other.value), strict=True
            )
        )
        low, high = value - math.hypot(below, other_above), value + math.hypot(above, other_below)
    if one.pool_size != other.pool_size:
        notes.append(_OTHER_TASKS)
    return Comparison(
        a=a,
        b=b,
        value=value,
        se=se,
        low=low,
        high=high,
        method="independent",
        note="; ".join(dict.fromkeys(filter(None, notes))),
        scale=one.scale,
    )
