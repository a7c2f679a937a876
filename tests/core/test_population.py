"""Whole evaluations: means, intervals for other tasks like these, and paired differences."""

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from coevolve.core.outcomes import Missing
from coevolve.core.pool import Pool
from coevolve.core.population import Evaluated, part_of
from coevolve.errors import InputError, NoOutcomeError, UnknownTaskError

TASKS = [f"t{i}" for i in range(12)]


def told(scores: list[float]) -> dict[tuple[str, int], float | Missing]:
    return {(f"t{i}", 0): score for i, score in enumerate(scores)}


@given(st.lists(st.floats(0, 1), min_size=12, max_size=12).filter(lambda s: np.ptp(s) > 1e-3))
def test_the_interval_is_students_over_the_tasks(scores: list[float]) -> None:
    results = Evaluated(Pool(TASKS))
    results.tell("one", told(scores))
    found = results.estimate("one")
    mean, se = np.mean(scores), np.std(scores, ddof=1) / np.sqrt(12)
    reach = se * scipy.stats.t.ppf(0.975, 11)
    assert found.value == pytest.approx(mean, abs=1e-9)
    assert found.se == pytest.approx(se, rel=1e-6)
    assert found.low == pytest.approx(max(0.0, mean - reach), abs=1e-6)
    assert found.high == pytest.approx(min(1.0, mean + reach), abs=1e-6)
    assert not found.exact


def test_a_difference_is_that_of_each_task() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.uniform(size=12).tolist(), rng.uniform(size=12).tolist()
    results = Evaluated(Pool(TASKS))
    results.tell("a", told(a))
    results.tell("b", told(b))
    found = results.compare("a", "b")
    apart = np.array(a) - np.array(b)
    assert found is not None
    assert found.value == pytest.approx(apart.mean())
    assert found.se == pytest.approx(apart.std(ddof=1) / np.sqrt(12), rel=1e-6)
    assert found.method == "paired"
    assert found.tasks == 12


def test_pools_count_with_their_weights_and_trials_are_averaged() -> None:
    pool = Pool(["a", "b", "c"], pools=["x", "x", "y"], weights={"x": 0.25, "y": 0.75})
    results = Evaluated(pool)
    results.tell("one", {("a", 0): 1.0, ("a", 1): 0.0, ("b", 0): 1.0, ("c", 0): 0.5})
    assert results.estimate("one").value == pytest.approx(0.25 * 0.75 + 0.75 * 0.5)
    assert results.scores("one") == {"a": 0.5, "b": 1.0, "c": 0.5}


def test_a_missing_outcome_leaves_the_sample_unless_only_this_harness_lost_it() -> None:
    lost = Missing("the service was down", shared=True)
    own = Missing("no answer", shared=False)
    results = Evaluated(Pool(["a", "b", "c"]))
    results.tell("unlucky", {("a", 0): 1.0, ("b", 0): 1.0, ("c", 0): lost})
    results.tell("choosy", {("a", 0): 1.0, ("b", 0): 1.0, ("c", 0): own})
    assert results.estimate("unlucky").value == 1.0
    assert results.estimate("unlucky").tasks == 2
    assert results.estimate("choosy").value == pytest.approx(2 / 3)
    assert "counts as failed" in results.estimate("choosy").note


def test_no_outcome_in_a_pool_is_no_score() -> None:
    results = Evaluated(Pool({"x": ["a", "b"], "y": ["c"]}))
    results.tell("one", {("a", 0): 1.0, ("b", 0): 0.0, ("c", 0): Missing("down", shared=True)})
    results.tell("two", {("a", 0): 1.0, ("b", 0): 0.0, ("c", 0): 1.0})
    with pytest.raises(NoOutcomeError, match="no score in pool 'y'"):
        results.estimate("one")
    assert results.compare("two", "one") is None


def test_a_part_of_a_pool_keeps_the_proportions_of_its_pools() -> None:
    pool = Pool(
        ["a", "b", "c", "d"],
        pools=["x", "y", "y", "z"],
        weights={"x": 0.2, "y": 0.2, "z": 0.6},
    )
    part = part_of(pool, ["c", "a"])
    assert part.tasks == ("a", "c")
    assert part.weights.tolist() == pytest.approx([0.5, 0.5])
    with pytest.raises(UnknownTaskError, match="'nosuch'"):
        part_of(pool, ["nosuch"])
    with pytest.raises(InputError, match="one task or more"):
        part_of(pool, [])
