"""The synthetic world: known truth, the same for whoever asks."""

import numpy as np
import pytest

from coevolve.benchmarks.synthetic import Harness, RoundDone, SyntheticWorld, search
from coevolve.errors import InputError
from tests.effort import effort

WORLD = SyntheticWorld(pools={"x": 30, "y": 50}, ease={"x": -3.0, "y": 2.0}, seed=4)


def test_outcomes_follow_from_the_seed_alone() -> None:
    (one, _), (other, _) = (
        SyntheticWorld(pools={"x": 30, "y": 50}, ease={"x": -3.0, "y": 2.0}, seed=4).start(2)
        for _ in range(2)
    )
    assert one == other
    assert WORLD.outcomes(one).tolist() == WORLD.outcomes(other).tolist()
    assert WORLD.outcomes(one).tolist() != WORLD.outcomes(one, trial=1).tolist()


def test_scores_approach_the_truth_with_more_trials() -> None:
    """2,000 trials of 80 tasks: within 4.5 standard errors of at most 0.5 / sqrt(n)."""
    harness = WORLD.start(1)[0]
    assert WORLD.score(harness, trials=2_000) == pytest.approx(
        WORLD.truth(harness), abs=4.5 * 0.5 / np.sqrt(2_000 * 30)
    )


def test_ease_makes_pools_easy_or_hard() -> None:
    probabilities = WORLD.probabilities(WORLD.start(1)[0])
    hard, easy = (probabilities[WORLD.pool.members(name)].mean() for name in ("x", "y"))
    assert hard < 0.3 < 0.6 < easy


def test_more_skill_solves_more() -> None:
    weak, strong = (Harness(name="h", skills=(level,) * 3) for level in (0.0, 1.0))
    assert (WORLD.probabilities(strong) > WORLD.probabilities(weak)).all()


def test_children_mend_what_they_are_shown_and_drift() -> None:
    parent = WORLD.start(1)[0]
    child = WORLD.child(parent, [3, 5, 7], round=2, index=1)
    assert child == WORLD.child(parent, [7, 5, 3], round=2, index=1)
    assert len(child.mended) == WORLD.mends
    assert child.mended < {3, 5, 7}
    assert child.skills != parent.skills
    assert WORLD.child(parent, [], round=2, index=1).mended == frozenset()


def test_drift_moves_skills_over_rounds() -> None:
    rising = SyntheticWorld(pools={"x": 5}, drift=0.5, seed=1)
    harness = rising.start(1)[0]
    for round in range(1, 31):
        harness = rising.child(harness, [], round=round, index=0)
    assert np.mean(harness.skills) > 10


def test_hard_tasks_tend_to_cost_more() -> None:
    world = SyntheticWorld(pools={"x": 2_000}, seed=2)
    assert world.pool.costs is not None
    weak = world.probabilities(Harness(name="h", skills=(0.0,) * 3))
    assert np.corrcoef(world.pool.costs, weak)[0, 1] < -0.2


@pytest.mark.parametrize(
    "name", ["full", "naive", "random-resample", "random-estimate", "task-coevolve"]
)
def test_a_search_ends_with_a_measured_winner(name: str) -> None:
    rounds: list[RoundDone] = []
    result = search(WORLD, protocol=name, rounds=4, per_round=2, report=rounds.append)
    assert [done.round for done in rounds] == [1, 2, 3, 4]
    assert result.evaluations == 8 * (80 if name == "full" else 16)
    assert 0 <= result.regret <= 1
    assert -1 <= result.spearman <= 1
    assert result.truth <= result.best


def test_searches_repeat_exactly() -> None:
    first, second = (search(WORLD, protocol="task-coevolve", rounds=3) for _ in range(2))
    assert first == second


def test_full_search_beats_a_fixed_subset() -> None:
    """Over 12 worlds, or 2, the mean true score of the winner differs by more than 5 points."""
    found = {
        name: np.mean(
            [
                search(SyntheticWorld(pools={"all": 89}, seed=seed), protocol=name).truth
                for seed in range(effort(2, 12))
            ]
        )
        for name in ("full", "naive")
    }
    assert found["full"] > found["naive"] + 0.05


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"skills": 0}, "skills must be at least 1"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"pools": {"x": 0}}, "every pool needs a task"),
        ({"sharpness": 0.0}, "must be positive"),
        ({"ease": {"z": 1.0}}, "pool 'z', which has no tasks"),
    ],
)
def test_worlds_without_sense(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SyntheticWorld(**({"pools": {"x": 3}} | arguments))  # type: ignore[arg-type]
