"""95% intervals cover the full-set score about as often as they say, in the synthetic world."""

import numpy as np
import pytest

from coevolve import Pool, Selector
from coevolve.benchmarks.synthetic import SyntheticWorld
from tests.effort import effort


def coverage(
    *, tasks: int, fraction: float, sharpness: float, rounds: int, worlds: int, per_round: int
) -> tuple[float, int]:
    """Share of the intervals that hold the full-set score, and how many there were."""
    held = []
    for seed in range(worlds):
        world = SyntheticWorld(pools={"all": tasks}, sharpness=sharpness, seed=seed)
        selector = Selector(
            Pool(world.pool.tasks), fraction=fraction, seed=seed, draw_per="candidate"
        )
        start = world.start(2)
        for harness in start:
            selector.tell_full(
                harness.name, dict(zip(world.pool.tasks, world.outcomes(harness), strict=True))
            )
        for round in range(1, rounds + 1):
            new = {
                child.name: child
                for i in range(per_round)
                for child in [world.child(start[i % 2], range(tasks), round=round, index=i)]
            }
            for assignment in selector.ask(list(new)):
                child = new[assignment.candidate]
                scores = dict(zip(world.pool.tasks, world.outcomes(child), strict=True))
                selector.tell(assignment, {task: scores[task] for task in assignment.tasks})
                estimate = selector.estimate(child.name)
                assert estimate.low is not None
                assert estimate.high is not None
                held.append(estimate.low <= world.score(child) <= estimate.high)
    return float(np.mean(held)), len(held)


@pytest.mark.parametrize("sharpness", [0.7, 3.0])
def test_intervals_of_the_difference_estimator(sharpness: float) -> None:
    """N = 500, m = 100: between 90% and 98%, by noisy and by nearly certain outcomes."""
    share, number = coverage(
        tasks=500, fraction=0.2, sharpness=sharpness, rounds=4, worlds=effort(5, 15), per_round=12
    )
    assert number == effort(240, 720)
    assert 0.90 <= share <= 0.98


def test_smaller_draws() -> None:
    """N = 89, m = 18: between 90% and 99%."""
    share, _ = coverage(tasks=89, fraction=0.2, sharpness=0.7, rounds=4, worlds=15, per_round=12)
    assert 0.90 <= share <= 0.99
