"""The adaptive allocation: first looks, contenders, reserve, and when to stop."""

import numpy as np
import pytest

from coevolve import Pool
from coevolve.core.allocation import AdaptiveShare, SearchView, improvements, ranked
from coevolve.core.arrays import Floats
from coevolve.core.posterior import Posterior
from coevolve.errors import InputError

TASKS = 100


def posterior(scores: list[float], sd: list[float]) -> Posterior:
    return Posterior(
        scores=np.array(scores),
        covariance=np.diag(np.square(sd)),
        chances=np.full((len(scores), TASKS), 0.5),
        newcomer=np.full(TASKS, 0.5),
        parameters=None,
    )


def view(
    scores: list[float], sd: list[float], asked: list[int], *, final: bool = False
) -> SearchView:
    left = TASKS - np.array(asked)[:, None]

    def outcomes(name: str) -> tuple[Floats, Floats]:
        raise AssertionError(f"the outcomes of {name} are for the model")

    return SearchView(
        pool=Pool([f"t{i}" for i in range(TASKS)]),
        candidates=tuple(f"c{i}" for i in range(len(scores))),
        newest=np.array([len(scores) - 1]),
        left=left,
        asked=np.array(asked),
        waiting=np.zeros(len(scores), dtype=np.bool_),
        spent=sum(asked),
        round=len(scores),
        final=final,
        rng=np.random.default_rng(0),
        model=lambda: posterior(scores, sd),
        outcomes=outcomes,  # type: ignore[arg-type]
    )


def test_the_leader_comes_first_then_who_may_overtake_it() -> None:
    close, sure, wild = 0.58, 0.59, 0.45
    found = ranked(improvements(posterior([close, 0.6, sure, wild], [0.03, 0.03, 0.0001, 0.3])))
    assert found == [1, 3, 0, 2]


def test_correlated_errors_do_not_make_a_contender() -> None:
    shared = posterior([0.6, 0.57, 0.57], [0.1, 0.1, 0.1])
    shared.covariance[0, 1] = shared.covariance[1, 0] = 0.00999
    assert ranked(improvements(shared)) == [0, 2, 1]


def test_in_a_round_the_reserve_is_kept() -> None:
    rule = AdaptiveShare(fraction=0.2, first_look=0.5, reserve=0.25, batch=0.25)  # m is 20
    requests = rule.further(view([0.6, 0.5], [0.1, 0.1], [10, 10]))
    assert [(request.candidate, request.sizes) for request in requests] == [(0, (5,)), (1, (5,))]
    assert rule.further(view([0.6, 0.5], [0.1, 0.1], [15, 15])) == []


def test_in_the_end_the_reserve_is_spent_and_no_more() -> None:
    rule = AdaptiveShare(fraction=0.2, first_look=0.5, reserve=0.25, batch=0.25)
    requests = rule.further(view([0.6, 0.5], [0.1, 0.1], [15, 18], final=True))
    assert [(request.candidate, request.sizes) for request in requests] == [(0, (5,)), (1, (2,))]
    assert rule.further(view([0.6, 0.5], [0.1, 0.1], [20, 20], final=True)) == []


def test_who_is_clearly_behind_gets_nothing() -> None:
    scores, sd = [0.3, 0.6, 0.2, 0.59], [0.03] * 4
    requests = AdaptiveShare(fraction=0.2).further(view(scores, sd, [8] * 4))
    assert {request.candidate for request in requests} == {1, 3}


def test_an_earlier_candidate_may_be_looked_at_again() -> None:
    requests = AdaptiveShare(fraction=0.2).further(view([0.6, 0.3, 0.2], [0.05] * 3, [8] * 3))
    assert requests[0].candidate == 0


def test_who_has_run_every_task_is_passed_over() -> None:
    rows = view([0.6, 0.58, 0.55], [0.0, 0.05, 0.05], [100, 8, 8], final=True)
    requests = AdaptiveShare(fraction=0.5, contenders=2).further(rows)
    assert [request.candidate for request in requests] == [1, 2]


def test_it_stops_when_little_can_be_lost() -> None:
    sure, unsure = [0.001, 0.001], [0.2, 0.2]
    rule = AdaptiveShare(fraction=0.2, regret=0.01)
    assert rule.further(view([0.6, 0.5], sure, [8, 8], final=True)) == []
    assert rule.further(view([0.6, 0.5], unsure, [8, 8], final=True))
    assert AdaptiveShare(fraction=0.2).further(view([0.6, 0.5], sure, [8, 8], final=True))


def test_even_the_smallest_budget_gives_everybody_a_task() -> None:
    pool = Pool([f"t{i}" for i in range(9)], pools=["x"] * 3 + ["y"] * 6)
    assert AdaptiveShare(fraction=0.01).sizes(pool, np.empty(0)) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"first_look": 0}, r"first_look must be in \(0, 1\], got 0"),
        ({"batch": 2}, r"batch must be in \(0, 1\], got 2"),
        ({"reserve": -0.1}, r"reserve must be in \[0, 1\], got -0.1"),
        ({"regret": 2}, r"regret must be in \[0, 1\], got 2"),
        ({"contenders": 0}, "contenders must be a whole number of at least 1, got 0"),
        ({"fraction": 0}, r"fraction must be in \(0, 1\], got 0"),
    ],
)
def test_parameters_without_sense_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        AdaptiveShare(**arguments)  # type: ignore[arg-type]
