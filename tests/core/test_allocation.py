"""How many tasks a round draws: the numbers of the paper's tables."""

import numpy as np
import pytest

from coevolve import Pool, Selector
from coevolve.core.allocation import CostShare, Share, WholePool, share, split
from coevolve.core.inclusion import successive_inclusion
from coevolve.errors import InputError

TEXT = Pool.grouped(
    {"uspto": [f"u{i}" for i in range(30)]}
    | {name: [f"{name}{i}" for i in range(50)] for name in ("s2d", "law")}
)
TERMINAL = Pool([f"t{i}" for i in range(89)])


@pytest.mark.parametrize(
    ("allocation", "sizes", "evaluations"),
    [
        (WholePool(), (30, 50, 50), 7_800),
        (Share(fraction=0.07, rounding="floor"), (2, 3, 3), 480),
        (Share(fraction=0.2), (6, 10, 10), 1_560),
        (Share(fraction=0.07), (3, 4, 4), 660),
    ],
)
def test_text_classification(
    allocation: Share | WholePool, sizes: tuple[int, ...], evaluations: int
) -> None:
    """Table `tc`: 20 rounds of 3 candidates; the 7% row rounds down."""
    assert allocation.sizes(TEXT, np.ones(len(TEXT))) == sizes
    assert 20 * 3 * sum(sizes) == evaluations


def test_terminal_bench() -> None:
    """Table `tb_cost`: 10 rounds of one candidate, 890 and 180 trials."""
    assert 10 * sum(WholePool().sizes(TERMINAL, np.ones(len(TERMINAL)))) == 890
    assert 10 * sum(Share(fraction=0.2).sizes(TERMINAL, np.ones(len(TERMINAL)))) == 180


@pytest.mark.parametrize(("name", "evaluations"), [("full", 7_800), ("naive", 1_560)])
def test_evaluations_of_a_whole_search(name: str, evaluations: int) -> None:
    selector = Selector(TEXT, protocol=name, fraction=0.2)
    for round in range(20):
        for assignment in selector.ask([f"{round}-{i}" for i in range(3)]):
            selector.tell(assignment, dict.fromkeys(assignment.tasks, 1.0))
    assert selector.evaluations == evaluations


def test_every_pool_gets_a_task() -> None:
    assert Share(fraction=0.001, rounding="floor").sizes(TEXT, np.ones(len(TEXT))) == (1, 1, 1)


def test_floating_point_does_not_add_a_task() -> None:
    assert Share(fraction=0.07).sizes(Pool([str(i) for i in range(100)]), np.ones(100)) == (7,)


@pytest.mark.parametrize("fraction", [0, -0.1, 1.0001, float("nan"), True, "0.2", None])
def test_fractions_outside_the_range_are_refused(fraction: float) -> None:
    for allocation in (Share(), WholePool()):
        with pytest.raises(InputError, match="fraction must be in"):
            allocation.at(fraction)


def test_unknown_rounding_is_refused() -> None:
    with pytest.raises(InputError, match="'ceil' or 'floor', got 'up'"):
        Share(rounding="up")  # type: ignore[arg-type]


def test_a_share_of_the_cost_buys_more_tasks_where_they_are_cheap() -> None:
    costs = [1.0] * 50 + [9.0] * 50
    pool = Pool([str(i) for i in range(100)], costs=costs)
    cheap = 1 / np.array(costs)
    assert CostShare(fraction=0.2).sizes(pool, np.ones(100)) == (20,)
    (size,) = CostShare(fraction=0.2).sizes(pool, cheap)
    pi = successive_inclusion(cheap, size)
    assert pi @ np.array(costs) == pytest.approx(0.2 * sum(costs), rel=0.03)
    assert size > 40


def test_without_costs_a_share_of_the_cost_is_a_share_of_the_tasks() -> None:
    pool = Pool([str(i) for i in range(89)])
    assert CostShare(fraction=0.2).sizes(pool, np.ones(89)) == share(0.2, pool)


def test_splitting_over_pools_loses_nothing() -> None:
    for size in range(30):
        parts = split(size, np.array([7, 0, 13, 5]))
        assert sum(parts) == min(size, 25)
        assert parts[1] == 0
