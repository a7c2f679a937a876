"""Rules of other papers as protocols, to compare with.

`halving`, `racing`, `racing-wilcoxon` and `thompson` spend a budget on candidates in another way;
`mid-range`, `item-information` and `active-testing` draw tasks in another way.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Literal, Self

import numpy as np

from coevolve.core.allocation import Request, SearchView, granted, share, split
from coevolve.core.arrays import Floats, ranks
from coevolve.core.choice import MostEvaluated
from coevolve.core.designs import PivotalDesign, SuccessiveDesign, UniformDesign
from coevolve.core.estimators import HorvitzThompson
from coevolve.core.joint import Joint
from coevolve.core.outcomes import is_whole
from coevolve.core.pool import Pool
from coevolve.core.protocols import SearchProtocol, register_part
from coevolve.core.variance import expected_success
from coevolve.core.weights import InformationWeights, TaskView
from coevolve.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fraction:
    """An allocation that spends the share ρ of the pool for each candidate.

    Args:
        fraction: ρ; all candidates together spend at most ρ times the pool for each of them.
    """

    fraction: float = 0.2
    needs_model: ClassVar[bool] = False

    def __post_init__(self) -> None:
        share(self.fraction, Pool(["any"]))

    def at(self, fraction: float) -> Self:
        return replace(self, fraction=fraction)


@register_part
@dataclass(frozen=True, slots=True, kw_only=True)
class Halving(_Fraction):
    """Asynchronous successive halving [Li2020]: a promoted candidate gets more tasks.

    Every candidate starts with a small share of the tasks, the first rung. A candidate is promoted
    to the next rung when its raw mean is in the top 1/η of all that reached its rung, as long as
    the budget lasts.

    Args:
        fraction: ρ.
        factor: η, by how much the field shrinks and the number of tasks grows.

    >>> Halving(fraction=0.2).sizes(Pool(map(str, range(100))), np.ones(100))
    (10,)
    """

    factor: int = 2

    def __post_init__(self) -> None:
        _Fraction.__post_init__(self)
        if not is_whole(self.factor, least=2):
            raise InputError(f"factor must be a whole number of at least 2, got {self.factor!r}.")

    def sizes(self, pool: Pool, weights: Floats) -> tuple[int, ...]:
        return tuple(max(1, size // self.factor) for size in share(self.fraction, pool))

    def further(self, view: SearchView) -> Sequence[Request]:
        budget = granted(self.fraction, view) - view.spent
        rungs = [sum(self.sizes(view.pool, np.empty(0)))]
        while rungs[-1] * self.factor < len(view.pool):
            rungs.append(rungs[-1] * self.factor)
        rungs.append(len(view.pool))
        for here, above in reversed(list(pairwise(rungs))):
            reached = np.flatnonzero(view.asked >= here)
            best = reached[np.argsort(-view.means[reached], kind="stable")]
            keep = max(1, len(best) // self.factor) if view.final else len(best) // self.factor
            waiting = [int(i) for i in best[:keep] if view.asked[i] < above]
            if waiting and (size := min(above - int(view.asked[waiting[0]]), budget)) > 0:
                return [Request(waiting[0], split(size, view.left[waiting[0]]))]
        return []


@register_part
@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRacing(_Fraction):
    """Every candidate runs the same tasks in the same order until a paired test drops it.

    Use it with a design that does not redraw. The champion is the best of the candidates that ran
    the most tasks. A candidate that is not significantly behind the champion on the tasks they
    share gets the next batch. When all others have caught up or dropped out, the champion gets it.

    Args:
        fraction: ρ.
        test: Student's t or Wilcoxon's signed ranks, both on the paired differences.
        level: A candidate is dropped where the one-sided p-value is below this.

    >>> PairedRacing(fraction=0.2).sizes(Pool(map(str, range(100))), np.ones(100))
    (5,)
    """

    test: Literal["t", "wilcoxon"] = "t"
    level: float = 0.1

    def __post_init__(self) -> None:
        _Fraction.__post_init__(self)
        if self.test not in ("t", "wilcoxon"):
            raise InputError(f"test must be 't' or 'wilcoxon', got {self.test!r}.")
        if not 0 < self.level < 0.5:
            raise InputError(f"level must be in (0, 0.5), got {self.level}.")

    def sizes(self, pool: Pool, weights: Floats) -> tuple[int, ...]:
        return tuple(max(1, n // 4) for n in share(self.fraction, pool))

    def further(self, view: SearchView) -> Sequence[Request]:
        batch = sum(self.sizes(view.pool, np.empty(0)))
        batch = min(batch, granted(self.fraction, view) - view.spent)
        if batch <= 0:
            return []
        ahead = np.flatnonzero(view.asked == view.asked.max())
        champion = int(ahead[np.argmax(np.nan_to_num(view.means[ahead], nan=-1.0))])
        behind = [i for i in range(len(view.candidates)) if view.asked[i] < view.asked[champion]]
        for racer in sorted(behind, key=lambda i: -view.asked[i]):
            size = min(batch, int(view.asked[champion] - view.asked[racer]))
            if _p_value(view, racer, champion, self.test) >= self.level:
                return [Request(racer, split(size, view.left[racer]))]
        return [Request(champion, split(batch, view.left[champion]))]


def _p_value(view: SearchView, racer: int, champion: int, test: str) -> float:
    """One-sided p-value of the racer being worse on the tasks both have a score on."""
    tasks, scores = view.outcomes(racer)
    others, marks = view.outcomes(champion)
    _, mine, theirs = np.intersect1d(tasks, others, assume_unique=True, return_indices=True)
    gap = scores[mine] - marks[theirs]
    if len(gap) < 2 or np.ptp(gap) == 0:
        return 0.0 if len(gap) and gap[0] < 0 else 1.0
    from scipy.special import ndtr, stdtr  # on first use: it takes long to import

    if test == "wilcoxon":
        return float(ndtr(signed_rank(gap)))
    t = gap.mean() / (gap.std(ddof=1) / np.sqrt(len(gap)))
    return float(stdtr(len(gap) - 1, t))


def signed_rank(gap: Floats) -> float:
    """Wilcoxon's signed-rank statistic in standard deviations, for differences not all zero.

    >>> round(signed_rank(np.array([-1.0, -1.0, -0.5, 0.25, 0.0])), 3)
    -1.473
    """
    gap = gap[gap != 0]
    rank = ranks(np.abs(gap))
    return float((np.sign(gap) @ rank) / np.sqrt(rank @ rank))


@register_part
@dataclass(frozen=True, slots=True, kw_only=True)
class Thompson(_Fraction):
    """Candidates as arms of a bandit: the highest draw from their beta posteriors gets a task.

    A new candidate starts with one task per pool. The rest of its share goes to the winners of
    further draws, one task each. Several tasks are asked for at once, so that they can run in
    parallel.

    Args:
        fraction: ρ.
        parallel: How many tasks are asked for at once, as a share of m; 0 for one at a time.

    >>> Thompson(fraction=0.2).sizes(Pool(map(str, range(100))), np.ones(100))
    (1,)
    """

    parallel: float = 0.5

    def __post_init__(self) -> None:
        _Fraction.__post_init__(self)
        if not 0 <= self.parallel <= 1:
            raise InputError(f"parallel must be a share from 0 to 1, got {self.parallel!r}.")

    def sizes(self, pool: Pool, weights: Floats) -> tuple[int, ...]:
        return (1,) * len(pool.names)

    def further(self, view: SearchView) -> Sequence[Request]:
        many = max(1, int(self.parallel * sum(share(self.fraction, view.pool))))
        many = min(many, granted(self.fraction, view) - view.spent)
        left = view.left.sum(axis=1)
        if many <= 0 or not left.any():
            return []
        failed = view.scored - view.solved
        drawn = view.rng.beta(1 + view.solved, 1 + failed, size=(many, len(left)))
        drawn[:, left == 0] = -1
        times = np.bincount(drawn.argmax(axis=1), minlength=len(left))
        return [
            Request(int(arm), split(int(times[arm]), view.left[arm]))
            for arm in np.flatnonzero(times)
        ]


@register_part
@dataclass(frozen=True, slots=True, kw_only=True)
class Stepwise(_Fraction):
    """The same m tasks for every candidate, drawn in steps, so that the weights can follow.

    Args:
        fraction: ρ.
        steps: Number of draws that make up m; as many as there are tasks where there are fewer.

    >>> Stepwise(fraction=0.2, steps=4).sizes(Pool(map(str, range(100))), np.ones(100))
    (5,)
    """

    steps: int = 4
    needs_rounds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _Fraction.__post_init__(self)
        if not is_whole(self.steps, least=1):
            raise InputError(f"steps must be a whole number of at least 1, got {self.steps!r}.")

    def sizes(self, pool: Pool, weights: Floats) -> tuple[int, ...]:
        return tuple(-(-size // self.steps) for size in share(self.fraction, pool))

    def further(self, view: SearchView) -> Sequence[Request]:
        total = np.array(share(self.fraction, view.pool))
        step = np.array(self.sizes(view.pool, np.empty(0)))
        whole = np.array([len(view.pool.members(name)) for name in view.pool.names])
        wanted = {i: np.minimum(step, total - (whole - view.left[i])) for i in view.newest}
        return [
            Request(int(index), tuple(np.maximum(sizes, 0).tolist()))
            for index, sizes in wanted.items()
            if (sizes > 0).any()
        ]


@register_part
@dataclass(frozen=True, slots=True, kw_only=True)
class MidRangeWeights:
    """Tasks with 30% to 70% past success first, the others only where these do not suffice.

    Args:
        low: Least success rate p̄_t of a task that is kept.
        high: Largest success rate of a task that is kept.
        rest: Weight of the others; positive, because they fill up the draw.

    >>> from coevolve.core.outcome_table import History
    >>> view = TaskView(history=History(mean=np.array([0.1, 0.3, 0.7]), count=np.full(3, 9)))
    >>> MidRangeWeights()(view).tolist()
    [0.001, 1.0, 1.0]
    """

    low: float = 0.3
    high: float = 0.7
    rest: float = 1e-3
    needs_history: ClassVar[bool] = True
    needs_model: ClassVar[bool] = False
    window: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high <= 1:
            raise InputError(
                f"low and high must be in order and in [0, 1], got {self.low} and {self.high}."
            )
        if not 0 < self.rest <= 1:
            raise InputError(f"rest must be in (0, 1], got {self.rest}.")

    def __call__(self, view: TaskView) -> Floats:
        p = view.history.anchors
        inside = (p >= self.low - 1e-9) & (p <= self.high + 1e-9)
        return np.where(inside, 1.0, self.rest)


@register_part
@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedScoreWeights:
    """Active testing's acquisition: weights in proportion to the expected score of the task.

    A beta-binomial model of the history (`coevolve.core.variance`) gives the expectation:
    w_t = θ_t. Drawn in this proportion, x_t / w_t varies least [Kossen2021].

    >>> from coevolve.core.outcome_table import History
    >>> view = TaskView(history=History(mean=np.array([0.0, 1.0]), count=np.array([2, 2])))
    >>> ExpectedScoreWeights()(view).round(2).tolist()
    [0.1, 0.9]
    """

    needs_history: ClassVar[bool] = True
    needs_model: ClassVar[bool] = False
    window: ClassVar[int | None] = None

    def __call__(self, view: TaskView) -> Floats:
        return np.maximum(expected_success(view.history), 1e-6)


MID_RANGE = SearchProtocol(
    name="mid-range",
    summary="rival: only tasks with 30-70% past success; raw mean",
    weighting=MidRangeWeights(),
    design=SuccessiveDesign(),
)
HALVING = SearchProtocol(
    name="halving",
    summary="rival: successive halving over candidates; raw mean",
    allocation=Halving(),
    choice=MostEvaluated(),
)
RACING = SearchProtocol(
    name="racing",
    summary="rival: candidates race on shared tasks; a paired t-test drops them",
    design=UniformDesign(redraws=False),
    allocation=PairedRacing(),
    choice=MostEvaluated(),
)
RACING_WILCOXON = SearchProtocol(
    name="racing-wilcoxon",
    summary="rival: the same with Wilcoxon's signed ranks",
    design=UniformDesign(redraws=False),
    allocation=PairedRacing(test="wilcoxon"),
    choice=MostEvaluated(),
)
THOMPSON = SearchProtocol(
    name="thompson",
    summary="rival: Thompson sampling over candidates, a draw for every task",
    allocation=Thompson(),
    choice=MostEvaluated(),
)
ITEM_INFORMATION = SearchProtocol(
    name="item-information",
    summary="rival: most informative tasks under a fitted item-response model",
    weighting=InformationWeights(power=8.0),
    design=PivotalDesign(),
    estimator=Joint(),
    allocation=Stepwise(steps=3),
)
ACTIVE_TESTING = SearchProtocol(
    name="active-testing",
    summary="rival: draws by a surrogate's expectation, in five steps, with LURE weights",
    weighting=ExpectedScoreWeights(),
    design=PivotalDesign(),
    estimator=HorvitzThompson(),
    allocation=Stepwise(steps=5),
)
RIVALS = (
    MID_RANGE,
    HALVING,
    RACING,
    RACING_WILCOXON,
    THOMPSON,
    ITEM_INFORMATION,
    ACTIVE_TESTING,
)
