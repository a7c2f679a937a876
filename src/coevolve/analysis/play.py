"""One search, replayed: a protocol sees of a series only what it asks for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import batched

import numpy as np

from coevolve.analysis.plan import CONFIDENCE
from coevolve.analysis.series import Series
from coevolve.core.arrays import Floats
from coevolve.core.assignment import Assignment
from coevolve.core.choice import Choice
from coevolve.core.estimate import Estimate
from coevolve.core.outcomes import Missing
from coevolve.core.pool import Pool
from coevolve.core.protocols import SearchProtocol
from coevolve.core.selector import Selector
from coevolve.errors import NoOutcomeError

_UNKNOWN = Missing("not in the matrix")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """What all replays of a series with one seed share: the truth, and what there is to see.

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
        """Stage on which cells are told as they are, or as draws from them."""
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
    """How a replayed search ended.

    `estimates` are those of the generated candidates, None where every outcome is missing; `cost`
    is what the evaluations cost, if that is known.
    """

    stage: Stage
    selector: Selector
    choice: Choice
    estimates: tuple[Estimate | None, ...]
    evaluations: int
    cost: float | None


def play(stage: Stage, protocol: SearchProtocol, *, fraction: float, per_round: int = 1) -> Played:
    """Replay a search: reveal the starting harnesses, then what is asked for, round by round.

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
    audience = _Audience(stage, selector)
    for new in batched(series.generated, per_round):
        audience.answer(selector.ask(new))
        while more := selector.ask():
            audience.answer(more)
    while more := selector.ask(final=True):
        audience.answer(more)
    return Played(
        stage=stage,
        selector=selector,
        choice=selector.best(),
        estimates=tuple(_estimate(selector, candidate) for candidate in series.generated),
        evaluations=selector.evaluations,
        cost=audience.cost,
    )


@dataclass(slots=True)
class _Audience:
    """Answers what a selector asks, and adds up what it costs."""

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
