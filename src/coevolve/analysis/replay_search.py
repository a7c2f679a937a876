"""One replayed search: its plan, its outcomes, and its metrics."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import batched
from typing import Any, Self

import numpy as np

from coevolve.analysis.matrix import Series
from coevolve.core.arrays import DECIMALS, Floats, kendall, spearman
from coevolve.core.assignment import Assignment
from coevolve.core.choice import Choice
from coevolve.core.estimators import Estimate
from coevolve.core.outcomes import Missing, is_whole
from coevolve.core.pool import Pool
from coevolve.core.protocol_settings import changed_where_fitting
from coevolve.core.protocols import SearchProtocol
from coevolve.core.protocols import protocol as find_protocol
from coevolve.core.selector import Selector
from coevolve.errors import InputError, NoOutcomeError

CONFIDENCE = 0.9
"""Level of the intervals whose coverage a replay measures."""

PROTOCOLS = ("random-resample", "naive", "task-coevolve", "joint", "adaptive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The settings of a replay.

    >>> Plan.of(protocols=["naive"], fractions=[0.2], seeds=range(3)).to_json()["seeds"]
    [0, 1, 2]
    """

    protocols: tuple[SearchProtocol, ...]
    fractions: tuple[float, ...]
    seeds: tuple[int, ...]
    per_round: int = 1
    bernoulli: bool = False

    @classmethod
    def of(
        cls,
        *,
        protocols: Iterable[str | SearchProtocol] = PROTOCOLS,
        fractions: Iterable[float] = (0.2,),
        seeds: Iterable[int] = range(20),
        per_round: int = 1,
        bernoulli: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> Self:
        """Plan for protocols by name, or the protocols themselves.

        `settings` change those of the protocols that have them.
        """
        rules = [
            known if isinstance(known, SearchProtocol) else find_protocol(known)
            for known in protocols
        ]
        return cls(
            protocols=tuple(changed_where_fitting(rules, settings or {})),
            fractions=tuple(float(fraction) for fraction in fractions),
            seeds=tuple(seeds),
            per_round=per_round,
            bernoulli=bernoulli,
        )

    def __post_init__(self) -> None:
        given: dict[str, list[Any]] = {
            "protocol": [protocol.name for protocol in self.protocols],
            "fraction": list(self.fractions),
            "seed": list(self.seeds),
        }
        for what, values in given.items():
            if not values:
                raise InputError(f"a replay needs at least one {what}, got none.")
            if len(set(values)) < len(values):
                twice = next(value for value in values if values.count(value) > 1)
                raise InputError(f"{what} {twice!r} is given twice.")
        for fraction in self.fractions:
            if not 0 < fraction <= 1:
                raise InputError(f"fractions must be in (0, 1], got {fraction}.")
        for seed in self.seeds:
            if not is_whole(seed, least=0):
                raise InputError(f"seeds must be whole numbers of at least 0, got {seed!r}.")
        if not is_whole(self.per_round, least=1):
            raise InputError(f"per_round must be at least 1, got {self.per_round!r}.")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; protocols with all their parts."""
        return {
            "protocols": [protocol.to_json() for protocol in self.protocols],
            "fractions": list(self.fractions),
            "seeds": list(self.seeds),
            "per_round": self.per_round,
            "bernoulli": self.bernoulli,
            "confidence": CONFIDENCE,
        }


_UNKNOWN = Missing("not in the matrix", shared=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """What all replays of a series with one seed share: true scores, outcomes and costs.

    >>> from coevolve.analysis import synthetic_matrix
    >>> stage = Stage.of(synthetic_matrix(tasks=20, candidates=6).series[0], seed=0)
    >>> stage.scores["r1-0"]["all-00"]
    1.0
    """

    series: Series
    seed: int
    pool: Pool
    truth: Mapping[str, float]
    scores: Mapping[str, Mapping[str, float | Missing]]
    costs: Floats | None

    @classmethod
    def of(cls, series: Series, seed: int, *, bernoulli: bool = False) -> "Stage":
        """The stage of a series; with `bernoulli`, outcomes are draws from the cells."""
        outcomes = series.trial(seed) if bernoulli else series.outcomes
        return cls(
            series=series,
            seed=seed,
            pool=series.priced_pool(),
            truth=dict(zip(series.candidates, series.true_scores().tolist(), strict=True)),
            scores={
                candidate: {
                    task: _UNKNOWN if np.isnan(score) else score
                    for task, score in zip(series.pool.tasks, row, strict=True)
                }
                for candidate, row in zip(series.candidates, outcomes.tolist(), strict=True)
            },
            costs=series.spent(),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Played:
    """A replayed search at its end.

    `estimates` has those of the generated candidates, None where every outcome is missing. `cost`
    is the cost of the evaluations, if known.
    """

    stage: Stage
    selector: Selector
    choice: Choice
    estimates: tuple[Estimate | None, ...]
    evaluations: int
    cost: float | None


def play(stage: Stage, protocol: SearchProtocol, *, fraction: float, per_round: int = 1) -> Played:
    """Replay a search: reveal the starting harnesses, then the outcomes that are asked for.

    >>> from coevolve import protocol
    >>> from coevolve.analysis import synthetic_matrix
    >>> stage = Stage.of(synthetic_matrix(tasks=20, candidates=6).series[0], seed=0)
    >>> play(stage, protocol("naive"), fraction=0.2).evaluations
    16
    """
    series = stage.series
    selector = Selector(
        stage.pool,
        fraction=fraction,
        protocol=protocol,
        seed=series.stream(stage.seed),
        confidence=CONFIDENCE,
    )
    for start in series.starts:
        selector.tell_full(start, stage.scores[start])
    answers = _Answers(stage, selector)
    for new in batched(series.generated, per_round):
        answers.answer(selector.ask(new))
        while more := selector.ask():
            answers.answer(more)
    while more := selector.ask(final=True):
        answers.answer(more)
    try:
        choice = selector.best()
    except NoOutcomeError:
        raise NoOutcomeError(
            "the tasks that it drew have no outcome of any new candidate, because cells of the "
            "matrix are missing; use a larger fraction (--fractions 0.5; 1 always works), or the "
            "outcomes of a run with protocol 'full', which has every cell."
        ) from None
    return Played(
        stage=stage,
        selector=selector,
        choice=choice,
        estimates=tuple(_estimate(selector, candidate) for candidate in series.generated),
        evaluations=selector.evaluations,
        cost=answers.cost,
    )


@dataclass(slots=True)
class _Answers:
    """Answers what a selector asks, and adds up the cost."""

    stage: Stage
    selector: Selector
    cost: float | None = None

    def __post_init__(self) -> None:
        self.cost = None if self.stage.costs is None else 0.0

    def answer(self, assignments: Iterable[Assignment]) -> None:
        for assignment in assignments:
            scores = self.stage.scores[assignment.candidate]
            self.selector.tell(assignment, {task: scores[task] for task in assignment.tasks})
            if self.cost is not None and self.stage.costs is not None:
                row = self.stage.series.candidates.index(assignment.candidate)
                tasks = self.stage.pool.positions(assignment.tasks)
                self.cost += float(self.stage.costs[row, tasks].sum())


def _estimate(selector: Selector, candidate: str) -> Estimate | None:
    try:
        return selector.estimate(candidate)
    except NoOutcomeError:
        return None


Values = dict[str, float | int | None]
"""Metrics by name; None where one is undefined."""

_ROUNDING = 10.0**-DECIMALS


def measured(played: Played) -> Values:
    """The metrics of a replayed search, over its generated candidates.

    spearman, kendall: Between estimates and true scores; None where either does not vary.
    rank: Of the winner by true score; 1 is the best, ties share the best rank.
    regret: True score of the best candidate minus that of the winner.
    rmse: Root of the mean squared difference between estimate and true score.
    coverage: Share of the intervals that hold the true score; None without intervals.
    expected_regret, probability: Stated by the choice; None without a joint model.
    evaluations, share, cost: Of the search; share of evaluating everything.

    Candidates without an estimate (every outcome missing) count for rank and regret only.

    >>> from coevolve import protocol
    >>> from coevolve.analysis import synthetic_matrix
    >>> from coevolve.analysis.replay_search import Stage, play
    >>> stage = Stage.of(synthetic_matrix(tasks=20, candidates=6).series[0], seed=0)
    >>> values = measured(play(stage, protocol("full"), fraction=1.0))
    >>> values["spearman"], values["rank"], values["regret"], values["coverage"], values["share"]
    (1.0, 1, 0.0, 1.0, 1.0)
    """
    names, truth = played.stage.series.generated, played.stage.truth
    true = np.array([truth[name] for name in names])
    seen = [i for i, estimate in enumerate(played.estimates) if estimate is not None]
    estimates = [estimate for estimate in played.estimates if estimate is not None]
    values, targets = np.array([estimate.value for estimate in estimates]), true[seen]
    won, stated = truth[played.choice.candidate], played.choice.confidence
    return {
        "spearman": known(spearman(values, targets)),
        "kendall": known(kendall(values, targets)),
        "rank": 1 + int((true > won + _ROUNDING).sum()),
        "regret": float(true.max() - won),
        "rmse": float(np.sqrt(np.mean((values - targets) ** 2))),
        "coverage": _coverage(estimates, targets.tolist()),
        "expected_regret": stated.regret if stated else None,
        "probability": stated.probability if stated else None,
        **spent(played),
    }


def spent(played: Played) -> Values:
    """The cost of a replayed search."""
    everything = len(played.stage.series.generated) * len(played.stage.pool)
    return {
        "evaluations": played.evaluations,
        "share": played.evaluations / everything,
        "cost": played.cost,
    }


def known(value: float) -> float | None:
    """The value, or None for NaN."""
    return None if math.isnan(value) else value


def _coverage(estimates: Sequence[Estimate], true: Sequence[float]) -> float | None:
    inside = [
        estimate.low - _ROUNDING <= target <= estimate.high + _ROUNDING
        for estimate, target in zip(estimates, true, strict=True)
        if estimate.low is not None and estimate.high is not None
    ]
    return float(np.mean(inside)) if inside else None
