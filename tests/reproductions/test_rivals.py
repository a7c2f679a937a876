"""The rival rules do what their papers say."""

from typing import Any

import numpy as np
import pytest

from coevolve import History, Pool
from coevolve.core.allocation import Request, SearchView
from coevolve.core.weights import TaskView
from coevolve.errors import InputError
from coevolve_reproductions.rivals import (
    ExpectedScoreWeights,
    Halving,
    MidRangeWeights,
    PairedRacing,
    Stepwise,
    Thompson,
)

TASKS = 100


def view(
    scores: list[list[float]], *, final: bool = False, newest: int = 1, seed: int = 0
) -> SearchView:
    """A search whose candidates have these scores on the first tasks of the pool."""
    pool = Pool([f"t{i}" for i in range(TASKS)])
    outcomes = {f"c{i}": np.array(row) for i, row in enumerate(scores)}
    return SearchView(
        pool=pool,
        candidates=tuple(outcomes),
        newest=np.arange(len(scores))[-newest:],
        left=np.array([[TASKS - len(row)] for row in scores]),
        asked=np.array([len(row) for row in scores]),
        waiting=np.zeros(len(scores), dtype=np.bool_),
        spent=sum(len(row) for row in scores),
        round=len(scores),
        final=final,
        rng=np.random.default_rng(seed),
        model=lambda: pytest.fail("a rival without a model looked at one"),
        outcomes=lambda name: (np.arange(len(outcomes[name])), outcomes[name]),
    )


def test_stepwise_fills_up_the_newest_to_their_share() -> None:
    rule = Stepwise(fraction=0.1, steps=4)
    assert rule.further(view([[1.0] * 10, [1.0] * 3])) == [Request(1, (3,))]
    assert rule.further(view([[1.0] * 10, [1.0] * 9])) == [Request(1, (1,))]
    assert rule.further(view([[1.0] * 3, [1.0] * 10])) == []


def test_halving_promotes_the_better_half_of_a_rung() -> None:
    rule = Halving(fraction=0.2)  # rungs of 10, 20, 40, 80 and 100 tasks
    good, bad = [1.0] * 10, [0.0] * 10
    assert rule.further(view([bad, good])) == [Request(1, (10,))]
    assert rule.further(view([bad, good * 2])) == []
    promoted = rule.further(view([bad, good * 2, bad, bad, [1.0] * 9 + [0.0]]))
    assert promoted == [Request(4, (10,))]


def test_halving_spends_what_is_left_in_the_end_and_no_more() -> None:
    rule = Halving(fraction=0.2)
    rows = [[0.0] * 10, [1.0] * 20]
    assert rule.further(view(rows)) == []
    assert rule.further(view(rows, final=True)) == [Request(1, (10,))]
    assert rule.further(view([[0.0] * 10, [1.0] * 30], final=True)) == []


@pytest.mark.parametrize("test", ["t", "wilcoxon"])
def test_racing_drops_whoever_is_behind_on_the_shared_tasks(test: Any) -> None:
    rule = PairedRacing(fraction=0.2, test=test)
    ahead = [1.0, 1.0, 1.0, 1.0, 0.0] * 4
    assert rule.further(view([ahead, ahead[:5]])) == [Request(1, (5,))]
    hopeless = [0.0] * 5
    assert rule.further(view([ahead, hopeless])) == [Request(0, (5,))]


def test_racers_catch_up_but_do_not_overtake_in_a_batch() -> None:
    assert PairedRacing(fraction=0.2).further(view([[1.0] * 8, [1.0] * 5])) == [Request(1, (3,))]


def test_thompson_prefers_whoever_solves_more() -> None:
    times = np.zeros(2)
    for seed in range(200):
        for candidate, (size,) in Thompson(fraction=0.2).further(
            view([[1.0] * 9 + [0.0], [0.0] * 9 + [1.0]], seed=seed)
        ):
            times[candidate] += size
    assert times.sum() == 200 * 10  # half of m = 20
    assert times[0] > 0.97 * times.sum()


def test_thompson_one_at_a_time() -> None:
    (request,) = Thompson(fraction=0.2, parallel=0).further(view([[1.0], [0.0]]))
    assert request.sizes == (1,)


def test_the_middle_range_is_drawn_first_and_filled_up() -> None:
    weights = MidRangeWeights()(
        TaskView(history=History(mean=np.array([0.0, 0.3, 0.5, 0.71]), count=np.full(4, 10)))
    )
    assert weights.tolist() == [0.001, 1.0, 1.0, 0.001]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Halving(factor=1), "factor must be a whole number of at least 2, got 1"),
        (lambda: Stepwise(steps=0), "steps must be a whole number of at least 1, got 0"),
        (lambda: Thompson(parallel=2), "parallel must be a share from 0 to 1, got 2"),
        (lambda: PairedRacing(test="u"), "test must be 't' or 'wilcoxon', got 'u'"),  # type: ignore[arg-type]
        (lambda: PairedRacing(level=0.5), r"level must be in \(0, 0.5\), got 0.5"),
        (lambda: MidRangeWeights(low=0.8), "low and high must be in order"),
        (lambda: MidRangeWeights(rest=0), r"rest must be in \(0, 1\], got 0"),
        (lambda: Halving(fraction=0), r"fraction must be in \(0, 1\], got 0"),
    ],
)
def test_parameters_without_sense_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_expected_scores_follow_the_history() -> None:
    history = History(mean=np.linspace(0, 1, 11), count=np.full(11, 10))
    weights = ExpectedScoreWeights()(TaskView(history=history))
    assert (np.diff(weights) > 0).all()
    assert (weights > 0).all()
