"""Standings, differences with intervals, and starting harnesses that may win."""

import json
import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from coevolve import Comparison, Estimate, Missing, Pool, SearchProtocol, Selector, protocol
from coevolve.benchmarks.synthetic import SyntheticWorld
from coevolve.core.choice import MostEvaluated
from coevolve.core.designs import Draw, UniformDesign
from coevolve.core.estimators import Difference, Estimator, Hajek, HorvitzThompson, RawMean
from coevolve.errors import InputError, NoOutcomeError, UnknownCandidateError

from .draws import successive_draws
from .strategies import TASKS, answer, scores, started

SIX = TASKS[:6]
X = dict(zip(SIX, [1.0, 0.0, 1.0, 1.0, 0.5, 0.0], strict=True))
Y = dict(zip(SIX, [1.0, 1.0, 0.0, 0.25, 0.5, 0.1], strict=True))


def told(selector: Selector, **candidates: dict[str, float]) -> Selector:
    for assignment in selector.ask(list(candidates)):
        outcomes = candidates[assignment.candidate]
        selector.tell(assignment, {task: outcomes[task] for task in assignment.tasks})
    return selector


def test_standings_rank_everybody() -> None:
    selector = started("joint")
    answer(selector, selector.ask(["a"])[0], seed=3)
    (waiting,) = selector.ask(["b"])
    selector.observe("old", scores(7, TASKS[:9]))
    rows = selector.standings()
    values = [row.estimate.value for row in rows if row.estimate is not None]
    assert values == sorted(values, reverse=True)
    assert [row.rank for row in rows] == [1, 2, 3, 4, None]
    kinds = {row.candidate: (row.kind, row.round) for row in rows}
    assert kinds == {
        "start-a": ("start", 0),
        "start-b": ("start", 0),
        "a": ("candidate", 1),
        "b": ("candidate", 2),
        "old": ("observed", 2),
    }
    assert (rows[-1].candidate, rows[-1].waiting) == ("b", len(waiting))
    assert "no score yet" in rows[-1].reason
    assert selector.best().candidate == "a"


def test_equal_estimates_keep_their_order() -> None:
    selector = started("full")
    for assignment in selector.ask(["x", "y"]):
        answer(selector, assignment, seed=1)
    assert [row.candidate for row in selector.standings()][:3] == ["start-a", "x", "y"]


@pytest.mark.parametrize("scale", [(0.0, 1.0), (0.0, 10.0)])
def test_a_joint_model_compares_with_its_covariance(scale: tuple[float, float]) -> None:
    selector = Selector(Pool(TASKS, scale=scale), protocol="joint", fraction=0.4, confidence=0.9)
    span = scale[1]
    for start in (1, 2):
        selector.tell_full(f"s{start}", {t: span * x for t, x in scores(start).items()})
    for assignment in selector.ask(["a", "b"]):
        seed = 3 if assignment.candidate == "a" else 4
        results = scores(seed, assignment.tasks)
        selector.tell(assignment, {task: span * x for task, x in results.items()})
    found, back = selector.compare("a", "b"), selector.compare("b", "a")
    one, other = selector.estimate("a"), selector.estimate("b")
    assert found.value == pytest.approx(one.value - other.value)
    assert found.method == "joint"
    assert found.se is not None
    assert one.se is not None
    assert other.se is not None
    assert 0 < found.se < one.se + other.se
    assert found.low == pytest.approx(found.value - 1.6449 * found.se, abs=1e-3)
    assert (back.value, back.se) == (-found.value, found.se)
    assert found.probability is not None
    assert found.probability + (back.probability or 0) == pytest.approx(1)
    assert (found.probability > 0.5) == (found.value > 0)
    assert json.loads(json.dumps(found.to_json()))["a"] == "a"


ESTIMATORS: list[Estimator] = [RawMean(), HorvitzThompson(), Hajek(), Difference()]


def drawing(chosen: tuple[int, ...], rule: SearchProtocol, patch: pytest.MonkeyPatch) -> None:
    """Let the design of a protocol draw these tasks, with its own probabilities."""
    real = type(rule.design).draw

    def draw(self: object, *given: object) -> Draw:
        return Draw(np.array(chosen), real(self, *given).probabilities)  # type: ignore[arg-type]

    patch.setattr(type(rule.design), "draw", draw)


def compared(rule: SearchProtocol) -> Comparison:
    selector = Selector(Pool(SIX), protocol=rule, fraction=0.5)
    selector.tell_full("s", dict.fromkeys(SIX, 1.0) | {SIX[0]: 0.0, SIX[4]: 0.0})
    return told(selector, x=X, y=Y).compare("x", "y")


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_paired_differences_by_enumeration(estimator: Estimator) -> None:
    """Over every draw of 3 of 6 tasks: the mean is exact, and so is the mean of the variance."""
    rule = SearchProtocol(name="pairs", design=UniformDesign(), estimator=estimator)
    values, variances = [], []
    for chosen in combinations(range(6), 3):
        with pytest.MonkeyPatch.context() as patch:
            drawing(chosen, rule, patch)
            found = compared(rule)
        differences = [X[SIX[t]] - Y[SIX[t]] for t in chosen]
        assert (found.method, found.tasks) == ("paired", 3)
        assert found.value == pytest.approx(np.mean(differences))
        values.append(found.value)
        variances.append(np.nan if found.se is None else found.se**2)
    assert np.mean(values) == pytest.approx(np.mean(list(X.values())) - np.mean(list(Y.values())))
    assert not np.isnan(variances).any()
    assert np.mean(variances) == pytest.approx(np.var(values))


def test_paired_differences_of_a_weighted_draw_are_unbiased() -> None:
    """Over every draw of the paper's design, with its probability."""
    rule = replace(protocol("task-coevolve"), name="pairs", estimator=Difference())
    weights = compared_weights(rule)
    mean = 0.0
    for chosen, chance in successive_draws(weights, 3).items():
        with pytest.MonkeyPatch.context() as patch:
            drawing(chosen, rule, patch)
            mean += chance * compared(rule).value
    assert mean == pytest.approx(np.mean(list(X.values())) - np.mean(list(Y.values())))


def compared_weights(rule: SearchProtocol) -> np.ndarray:
    selector = Selector(Pool(SIX), protocol=rule, fraction=1.0)
    selector.tell_full("s", dict.fromkeys(SIX, 1.0) | {SIX[0]: 0.0, SIX[4]: 0.0})
    return selector.ask(["c"])[0].designs[0].weights


def test_the_paired_value_is_the_difference_of_the_estimates() -> None:
    for name in ("random-resample", "random-estimate", "task-coevolve", "naive"):
        selector = started(name, fraction=0.5)
        told(selector, x=scores(5), y=scores(6))
        found = selector.compare("x", "y")
        apart = selector.estimate("x").value - selector.estimate("y").value
        assert found.method == "paired"
        assert found.value == pytest.approx(apart)


def test_pairs_are_narrower_than_two_intervals() -> None:
    selector = started(fraction=0.5)
    nearly = {task: 1 - x if task == "t03" else x for task, x in scores(5).items()}
    told(selector, x=scores(5), y=nearly)
    found = selector.compare("x", "y")
    if found.se is not None:
        assert found.se < (selector.estimate("x").se or 0) / 2


def test_only_tasks_that_both_have_a_score_on_make_pairs() -> None:
    selector = started("random-resample", fraction=0.5)
    x, y = selector.ask(["x", "y"])
    lost = Missing("no sandbox", shared=True)
    selector.tell(x, {**scores(5, x.tasks), x.tasks[0]: lost})
    selector.tell(y, {**scores(6, y.tasks), y.tasks[1]: lost})
    found = selector.compare("x", "y")
    rest = x.tasks[2:]
    assert found.tasks == 8
    assert found.value == pytest.approx(np.mean([scores(5)[t] - scores(6)[t] for t in rest]))


def test_a_subset_that_is_kept_makes_pairs_over_rounds() -> None:
    kept, redrawn = started("naive"), started("random-resample")
    for selector in (kept, redrawn):
        told(told(selector, x=scores(5)), y=scores(6))
    assert kept.compare("x", "y").method == "paired"
    found = redrawn.compare("x", "y")
    one, other = redrawn.estimate("x"), redrawn.estimate("y")
    assert (found.method, found.value) == ("independent", one.value - other.value)
    if one.se is not None and other.se is not None:
        assert found.se == pytest.approx(math.hypot(one.se, other.se))


def test_a_start_is_known_exactly() -> None:
    selector = told(started(), x=scores(5))
    found, estimate = selector.compare("x", "start-a"), selector.estimate("x")
    assert (found.method, found.se) == ("independent", estimate.se)
    assert found.low == pytest.approx(estimate.low - selector.estimate("start-a").value)  # type: ignore[operator]
    exact = selector.compare("start-a", "start-b")
    assert (exact.method, exact.se, exact.low) == ("exact", 0.0, exact.value)
    assert str(exact).endswith("(exact)")


def test_comparisons_of_different_pools_say_so() -> None:
    selector = told(started(), x=scores(5))
    selector.add_tasks(["new-1", "new-2"])
    (assignment,) = selector.ask(["y"])
    selector.tell(assignment, dict.fromkeys(assignment.tasks, 1.0))
    found = selector.compare("x", "y")
    assert "for different tasks" in found.note
    assert "for different tasks" in str(found)


def test_what_cannot_be_compared() -> None:
    selector = told(started(), x=scores(5))
    selector.ask(["y"])
    with pytest.raises(InputError, match="two candidates, got 'x' twice"):
        selector.compare("x", "x")
    with pytest.raises(UnknownCandidateError, match="'z' is unknown"):
        selector.compare("x", "z")
    with pytest.raises(NoOutcomeError, match="candidate 'y'"):
        selector.compare("x", "y")


def test_intervals_of_pairs_hold_the_difference() -> None:
    """N = 500, m = 100 in the synthetic world: 95% intervals hold in 90% to 98%."""
    held = []
    for seed in range(12):
        world = SyntheticWorld(pools={"all": 500}, sharpness=0.7, seed=seed)
        selector = Selector(Pool(world.pool.tasks), fraction=0.2, seed=seed)
        start = world.start(2)
        for harness in start:
            outcomes = dict(zip(world.pool.tasks, world.outcomes(harness), strict=True))
            selector.tell_full(harness.name, outcomes)
        new = {
            child.name: child
            for i in range(8)
            for child in [world.child(start[i % 2], range(500), round=1, index=i)]
        }
        for assignment in selector.ask(list(new)):
            child = new[assignment.candidate]
            outcomes = dict(zip(world.pool.tasks, world.outcomes(child), strict=True))
            selector.tell(assignment, {task: outcomes[task] for task in assignment.tasks})
        for a, b in combinations(new, 2):
            found = selector.compare(a, b)
            assert found.low is not None
            assert found.high is not None
            held.append(found.low <= world.score(new[a]) - world.score(new[b]) <= found.high)
    assert 0.90 <= np.mean(held) <= 0.98


def test_a_start_may_win_if_the_caller_says_so() -> None:
    selector = Selector(Pool(TASKS), protocol="naive", fraction=0.5)
    selector.tell_full("s", dict.fromkeys(TASKS, 1.0))
    with pytest.raises(NoOutcomeError, match="no candidate"):
        selector.best()
    assert selector.best(include_start=True).candidate == "s"
    told(selector, x=dict.fromkeys(TASKS, 0.0))
    assert selector.best().candidate == "x"
    assert selector.best().better_start == "s"
    assert selector.best(include_start=True).candidate == "s"
    assert selector.best(include_start=False).candidate == "x"


def test_any_rule_of_choice_can_include_the_starts() -> None:
    rule = replace(protocol("joint"), name="most", choice=MostEvaluated())
    selector = Selector(Pool(TASKS), protocol=rule, fraction=0.5)
    selector.tell_full("s", dict.fromkeys(TASKS, 1.0))
    told(selector, x=dict.fromkeys(TASKS, 0.0))
    assert selector.best().candidate == "x"
    choice = selector.best(include_start=True)
    assert (choice.candidate, choice.better_start) == ("s", None)
    assert choice.confidence is not None
    assert choice.confidence.probability > 0.9


def test_estimates_are_rows_of_the_standings() -> None:
    selector = told(started(), x=scores(5), y=scores(6))
    for row in selector.standings():
        assert isinstance(row.estimate, Estimate)
        assert row.estimate == selector.estimate(row.candidate)
