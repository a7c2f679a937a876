"""What users rely on when they ask, tell and estimate."""

from dataclasses import replace

import numpy as np
import pytest

from coevolve import Missing, Outcome, Pool, Selector, Usage, protocol
from coevolve.core.choice import HighestEstimate
from coevolve.core.designs import SuccessiveDesign
from coevolve.core.estimators import PhaseZeroRule, RawMean
from coevolve.core.joint import Joint
from coevolve.core.weights import TaskView, VarianceWeights
from coevolve.errors import InputError

from .strategies import BUILT_IN, TASKS, answer, scores, started


def test_the_front_door_of_the_design() -> None:
    selector = started(fraction=0.2, seed=7)
    (assignment,) = selector.ask(["candidate-1"])
    assert assignment.candidate == "candidate-1"
    assert len(assignment.tasks) == 4
    assert assignment.probabilities.keys() == set(assignment.tasks)
    answer(selector, assignment)
    assert selector.ask() == []
    estimate = selector.estimate("candidate-1")
    assert (estimate.tasks, estimate.pool_size) == (4, 20)
    assert selector.best().candidate == "candidate-1"


def test_candidates_of_a_round_share_a_draw_and_rounds_do_not() -> None:
    selector = started()
    first, second = selector.ask(["a", "b"])
    third, *_ = selector.ask(["c"])
    assert first.tasks == second.tasks
    assert first.round == second.round == 1
    assert third.round == 2
    assert third.tasks != first.tasks


def test_a_draw_per_candidate() -> None:
    first, second = started(draw_per="candidate").ask(["a", "b"])
    assert first.tasks != second.tasks


def test_the_fixed_subset_stays() -> None:
    selector = started("naive")
    draws = {selector.ask([f"c{i}"])[0].tasks for i in range(5)}
    assert len(draws) == 1


def test_full_evaluates_everything_at_any_fraction() -> None:
    selector = started("full", fraction=0.2)
    (assignment,) = selector.ask(["c"])
    assert assignment.tasks == TASKS
    answer(selector, assignment, seed=5)
    estimate = selector.estimate("c")
    assert estimate.value == pytest.approx(np.mean(list(scores(5).values())))
    assert (estimate.se, estimate.method) == (0, "full set")


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_protocol_runs_a_search(name: str) -> None:
    pool = Pool.grouped({"x": TASKS[:8], "y": TASKS[8:]})
    selector = Selector(pool, protocol=name, fraction=0.3, seed=1)
    for seed, start in enumerate(["start-a", "start-b"]):
        selector.tell_full(start, scores(seed))
    for round in range(3):
        for assignment in selector.ask([f"c{round}{i}" for i in range(2)]):
            answer(selector, assignment, seed=round)
    drawn = 20 if name == "full" else 3 + 4
    assert selector.evaluations == 3 * 2 * drawn
    assert selector.best().candidate in selector.candidates


def test_the_weights_follow_the_history_told_so_far() -> None:
    selector = started()
    (assignment,) = selector.ask(["c"])
    (design,) = assignment.designs
    history = selector.history()
    expected = VarianceWeights()(TaskView(history=history))[design.positions]
    assert design.weights.tolist() == expected.tolist()
    assert design.anchors.tolist() == history.mean[design.positions].tolist()
    assert design.anchor_mean == history.mean.mean()


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("full", "full"),
        ("naive", "fixed"),
        ("random-resample", "uniform"),
        ("random-estimate", "uniform"),
        ("task-coevolve", "successive"),
    ],
)
def test_every_draw_is_recorded(name: str, method: str) -> None:
    selector = started(name, seed=11)
    (assignment,) = selector.ask(["c"])
    (design,) = assignment.designs
    assert (design.method, design.round, design.pool, design.seed[0]) == (method, 1, "all", 11)
    assert design.tasks == assignment.tasks
    assert [TASKS[i] for i in design.positions] == list(design.tasks)
    recorded = selector.events[-1]["draws"][0][0]
    assert recorded["tasks"] == list(design.tasks)
    assert recorded["probabilities"] == design.probabilities.tolist()


def test_a_window_looks_at_the_last_rounds_only() -> None:
    recent = replace(protocol("task-coevolve"), weighting=VarianceWeights(window=1))
    selector = started(protocol=recent)  # type: ignore[arg-type]
    for round in range(1, 4):
        (assignment,) = selector.ask([f"c{round}"])
        (design,) = assignment.designs
        expected = VarianceWeights()(TaskView(history=selector.history(round - 1)))
        assert design.weights.tolist() == expected[design.positions].tolist()
        answer(selector, assignment)


def test_outcomes_may_be_told_in_parts_and_any_order() -> None:
    whole, parts = started(), started()
    (one,) = whole.ask(["c"])
    (other,) = parts.ask(["c"])
    answer(whole, one)
    for task in reversed(other.tasks):
        assert parts.outstanding() == [other]
        parts.tell(other, scores(9, (task,)))
    assert parts.outstanding() == []
    assert parts.estimate("c") == whole.estimate("c")
    draws = [selector.ask(["d"])[0] for selector in (whole, parts)]
    assert draws[0].tasks == draws[1].tasks
    assert draws[0].probabilities == draws[1].probabilities


def test_equal_repeats_change_nothing() -> None:
    selector = started()
    (assignment,) = selector.ask(["c"])
    selector.tell(assignment, {assignment.tasks[0]: Missing("crash", shared=True)})
    events = selector.events
    selector.tell(assignment, {assignment.tasks[0]: Missing("crash", shared=True)})
    selector.tell_full("start-a", scores(1))
    assert selector.events == events
    assert selector.evaluations == 1


def test_several_candidates_may_be_outstanding() -> None:
    selector = started()
    (first,) = selector.ask(["a"])
    (second,) = selector.ask(["b"])
    assert selector.outstanding() == [first, second]
    answer(selector, second)
    assert selector.best().candidate == "b"
    answer(selector, first)
    assert selector.outstanding() == []


def test_missing_is_not_zero() -> None:
    selector = started("random-resample", fraction=0.5)
    (assignment,) = selector.ask(["c"])
    results: dict[str, float | Missing] = dict.fromkeys(assignment.tasks, 1.0)
    results[assignment.tasks[0]] = Missing("sandbox died", shared=True)
    selector.tell(assignment, results)
    estimate = selector.estimate("c")
    assert estimate.value == 1.0
    assert (estimate.tasks, estimate.drawn) == (9, 10)
    assert selector.history().count.sum() == 2 * 20 + 9


def test_a_round_with_under_half_its_scores_is_drawn_again_once() -> None:
    selector = started(fraction=0.5)
    (first,) = selector.ask(["c"])
    for task in first.tasks[:4]:
        selector.tell(first, {task: 1.0})
    assert selector.ask() == []
    selector.tell(first, dict.fromkeys(first.tasks[4:], Missing("no network", shared=True)))
    assert selector.estimate("c").coverage == 0.4
    (second,) = selector.ask()
    assert (second.candidate, second.round, second.batch, second.trials) == ("c", 1, 1, (1,))
    assert selector.ask() == []
    selector.tell(second, dict.fromkeys(second.tasks, Missing("no network still", shared=True)))
    assert selector.ask() == []


def test_half_the_scores_are_enough() -> None:
    selector = started(fraction=0.5)
    (assignment,) = selector.ask(["c"])
    selector.tell(assignment, dict.fromkeys(assignment.tasks[:5], 1.0))
    selector.tell(assignment, dict.fromkeys(assignment.tasks[5:], Missing("x", shared=True)))
    assert selector.ask() == []


def test_the_second_draw_counts_for_the_estimate() -> None:
    selector = started("random-resample", fraction=0.5)
    (first,) = selector.ask(["c"])
    selector.tell(first, dict.fromkeys(first.tasks, Missing("x", shared=True)))
    (second,) = selector.ask()
    selector.tell(second, dict.fromkeys(second.tasks, 1.0))
    assert selector.estimate("c").value == 1.0
    assert selector.estimate("c").coverage == 1.0


def test_repeated_trials_count_as_their_mean() -> None:
    selector = Selector(Pool(TASKS), protocol="random-resample", fraction=0.1, trials=3)
    (assignment,) = selector.ask(["c"])
    assert assignment.trials == (0, 1, 2)
    one, other = assignment.tasks
    parts: dict[str, list[float | Missing]] = {
        one: [1.0, 0.0],
        other: [1, 1, Missing("x", shared=True)],
    }
    selector.tell(assignment, parts)
    assert selector.estimate("c").value == pytest.approx((0.5 + 1.0) / 2)
    selector.tell(assignment, [Outcome(candidate="c", task=one, trial=2, score=1.0)])
    assert selector.estimate("c").value == pytest.approx((2 / 3 + 1.0) / 2)
    assert selector.history().count.sum() == 2
    assert selector.evaluations == 6


def test_usage_adds_up() -> None:
    selector = started()
    (assignment,) = selector.ask(["c"])
    usage = Usage(tokens_in=10, dollars=0.5)
    selector.tell(
        assignment,
        [Outcome(candidate="c", task=t, score=1.0, usage=usage) for t in assignment.tasks],
    )
    assert selector.usage == Usage(tokens_in=40, dollars=2.0)


def test_re_scoring_a_candidate_in_full_makes_it_exact() -> None:
    selector = started()
    (assignment,) = selector.ask(["c"])
    selector.tell(assignment, scores(9, assignment.tasks[:1]))
    selector.tell_full("c", scores(9))
    estimate = selector.estimate("c")
    assert estimate.exact
    assert estimate.value == pytest.approx(np.mean(list(scores(9).values())))
    assert selector.outstanding() == []
    assert selector.starts == ("start-a", "start-b")


def test_a_starting_harness_with_gaps_is_estimated_from_the_rest() -> None:
    selector = Selector(Pool(TASKS))
    selector.tell_full(
        "s", dict.fromkeys(TASKS[:15], 1.0) | dict.fromkeys(TASKS[15:], Missing("x", shared=True))
    )
    estimate = selector.estimate("s")
    assert (estimate.value, estimate.coverage) == (1.0, 0.75)
    assert selector.history().groups()["unseen"] == 5
    (assignment,) = selector.ask(["c"])
    assert len(assignment.tasks) == 4


def test_the_estimator_rule_is_settled_once_by_phase_zero() -> None:
    pool = Pool.grouped({"x": TASKS[:10], "y": TASKS[10:]})
    selector = Selector(pool, fraction=0.3)
    selector.tell_full("s", {t: float(t < "t12") for t in TASKS})
    answer(selector, selector.ask(["c"])[0])
    (drawn,) = [e for e in selector.events if e["type"] == "drawn"]
    assert drawn["decision"]["means"] == {"x": 1.0, "y": 0.2}
    assert selector.estimate("c").method == "Hájek"
    answer(selector, selector.ask(["d"])[0])
    assert [e["decision"] for e in selector.events if e["type"] == "drawn"][1] is None


def test_ties_and_better_starts_are_told() -> None:
    selector = Selector(Pool(TASKS), protocol="naive", fraction=0.2)
    selector.tell_full("s", dict.fromkeys(TASKS, 1.0))
    for assignment in selector.ask(["a", "b"]):
        selector.tell(assignment, dict.fromkeys(assignment.tasks, 0.0))
    choice = selector.best()
    assert (choice.candidate, choice.tied_with, choice.better_start) == ("a", ("b",), "s")


def test_a_start_may_win_if_the_choice_includes_it() -> None:
    rule = replace(protocol("naive"), choice=HighestEstimate(include_start=True))
    selector = Selector(Pool(TASKS), protocol=rule)
    selector.tell_full("s", dict.fromkeys(TASKS, 1.0))
    (assignment,) = selector.ask(["a"])
    selector.tell(assignment, dict.fromkeys(assignment.tasks, 0.0))
    assert selector.best().candidate == "s"


def test_seeds_make_draws() -> None:
    draws = [started(seed=seed).ask(["c"])[0].tasks for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_the_papers_monte_carlo_mode() -> None:
    rule = replace(protocol("task-coevolve"), design=SuccessiveDesign(inclusion="monte-carlo"))
    exact, simulated = started(), started(protocol=rule)  # type: ignore[arg-type]
    one, other = exact.ask(["c"])[0], simulated.ask(["c"])[0]
    assert one.tasks == other.tasks
    for task in one.tasks:
        difference = abs(one.probabilities[task] - other.probabilities[task])
        assert 0 < difference < 0.05


def test_the_same_outcome_twice_counts_once() -> None:
    selector = started()
    (assignment,) = selector.ask(["c"])
    outcome = Outcome(candidate="c", task=assignment.tasks[0], score=1.0)
    selector.tell(assignment, [outcome, outcome])
    assert selector.evaluations == 1
    selector.tell(assignment, scores(9, assignment.tasks[1:]))
    assert selector.outstanding() == []


def test_gaps_in_a_full_evaluation_leave_an_error() -> None:
    """Of 20 tasks 8 have no score: neither exact nor certain."""
    selector = started("full")
    (assignment,) = selector.ask(["c"])
    results: dict[str, float | Missing] = dict(scores(9))
    selector.tell(assignment, results | dict.fromkeys(TASKS[:8], Missing("x", shared=True)))
    estimate = selector.estimate("c")
    assert estimate.se is not None
    assert estimate.se > 0.05
    assert not estimate.exact


def test_a_starting_harness_without_any_score_stands_aside() -> None:
    selector = started()
    selector.tell_full("broken", dict.fromkeys(TASKS, Missing("x", shared=True)))
    (assignment,) = selector.ask(["c"])
    answer(selector, assignment)
    assert selector.best().candidate == "c"


def test_a_failed_second_draw_falls_back_on_the_first() -> None:
    selector = started("random-resample", fraction=0.5)
    (first,) = selector.ask(["c"])
    selector.tell(first, dict.fromkeys(first.tasks[:4], 1.0))
    selector.tell(first, dict.fromkeys(first.tasks[4:], Missing("x", shared=True)))
    before = selector.estimate("c")
    (second,) = selector.ask()
    assert second.tasks != first.tasks
    assert selector.estimate("c") == before
    selector.tell(second, dict.fromkeys(second.tasks, Missing("x", shared=True)))
    assert selector.estimate("c") == before
    assert "under half" in before.note


def test_a_round_waits_for_all_its_candidates_before_it_is_drawn_again() -> None:
    selector = started(fraction=0.5)
    first, second = selector.ask(["a", "b"])
    selector.tell(first, dict.fromkeys(first.tasks, Missing("x", shared=True)))
    assert selector.ask() == []
    selector.tell(second, dict.fromkeys(second.tasks, Missing("x", shared=True)))
    assert [again.candidate for again in selector.ask()] == ["a", "b"]


def test_a_pool_without_any_score_is_drawn_again() -> None:
    pool = Pool.grouped({"x": TASKS[:4], "y": TASKS[4:]})
    selector = Selector(pool, protocol="random-estimate", fraction=0.25)
    selector.tell_full("s", scores(1))
    (assignment,) = selector.ask(["c"])
    results: dict[str, float | Missing] = dict.fromkeys(assignment.tasks, 1.0)
    selector.tell(assignment, results | {assignment.tasks[0]: Missing("x", shared=True)})
    (again,) = selector.ask()
    assert again.batch == 1


def test_the_pooled_raw_mean_does_without_a_pool() -> None:
    pool = Pool.grouped({"x": TASKS[:4], "y": TASKS[4:]})
    pooled = replace(protocol("random-resample"), estimator=RawMean(together=True))
    selector = Selector(pool, protocol=pooled, fraction=0.25)
    (assignment,) = selector.ask(["c"])
    results: dict[str, float | Missing] = dict.fromkeys(assignment.tasks, 1.0)
    selector.tell(assignment, results | {assignment.tasks[0]: Missing("x", shared=True)})
    assert selector.estimate("c").value == 1.0


def test_a_missing_trial_can_be_made_good_by_re_scoring() -> None:
    selector = started()
    (assignment,) = selector.ask(["c"])
    results: dict[str, float | Missing] = dict(scores(9, assignment.tasks))
    selector.tell(assignment, results | {assignment.tasks[0]: Missing("no network", shared=True)})
    selector.tell_full("c", scores(9))
    assert selector.estimate("c").exact
    assert selector.history().count.min() == 3


def test_the_unfinished_do_not_win_over_the_finished() -> None:
    selector = Selector(Pool(TASKS), protocol="random-resample", fraction=0.5)
    (done,) = selector.ask(["done"])
    selector.tell(done, dict.fromkeys(done.tasks, 0.0))
    (fresh,) = selector.ask(["fresh"])
    selector.tell(fresh, {fresh.tasks[0]: 1.0})
    choice = selector.best()
    assert (choice.candidate, choice.left_out) == ("done", ("fresh",))
    assert choice.why == (
        "highest estimate 0.000; fresh has 1.000, but some of its trials have no score"
    )
    (newest,) = selector.ask(["newest"])
    selector.tell(newest, {newest.tasks[0]: 1.0})
    assert selector.best().why.endswith(
        "fresh has 1.000 and 1 other more than this, but some of their trials have no score"
    )
    assert "9 of 10 trials are not told yet" in selector.estimate("fresh").note


def test_full_is_exact_only_when_all_trials_are_told() -> None:
    selector = Selector(Pool(TASKS), protocol="full", trials=2)
    (assignment,) = selector.ask(["c"])
    selector.tell(assignment, {task: [1.0] for task in TASKS})
    assert not selector.estimate("c").exact
    selector.tell(assignment, {task: [1.0, 0.0] for task in TASKS})
    assert selector.estimate("c").exact


def test_pools_are_drawn_independently() -> None:
    pool = Pool.grouped({"x": [f"x{i}" for i in range(30)], "y": [f"y{i}" for i in range(30)]})
    selector = Selector(pool, protocol="random-resample", fraction=0.3)
    (assignment,) = selector.ask(["c"])
    x, y = ([task[1:] for task in assignment.tasks if task[0] == name] for name in "xy")
    assert x != y


def test_traces_and_usage_of_phase_zero_are_recorded() -> None:
    selector = Selector(Pool(TASKS))
    outcomes = [
        Outcome(candidate="s", task=t, score=1.0, usage=Usage(seconds=1.0), trace=f"log/{t}")
        for t in TASKS
    ]
    selector.tell_full("s", outcomes)
    assert selector.usage.seconds == 20
    (assignment,) = selector.ask(["c"])
    told = [Outcome(candidate="c", task=t, score=1.0, trace=t) for t in assignment.tasks]
    selector.tell(assignment, told[:1])
    selector.tell(assignment, told)
    assert selector.events[-1]["traces"] == {str(i): o.trace for i, o in enumerate(told[1:])}


def test_records_cannot_be_changed() -> None:
    selector = started()
    (assignment,) = selector.ask(["c"])
    with pytest.raises(ValueError, match="read-only"):
        assignment.designs[0].probabilities[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        selector.pool.weights[0] = 2.0


def test_numpy_numbers_and_generators_are_welcome() -> None:
    selector = Selector(Pool(TASKS), fraction=np.float32(0.5), seed=np.int64(3), protocol="naive")  # type: ignore[arg-type]
    (assignment,) = selector.ask(name for name in ["c"])
    ones: list[float] = list(np.ones(10, dtype=np.float32))
    selector.tell(assignment, dict(zip(assignment.tasks, ones, strict=True)))
    assert selector.estimate("c").value == 1.0


def test_a_candidate_that_lost_most_of_its_outcomes_is_not_chosen_over_one_that_did_not() -> None:
    tasks = [f"task-{i}" for i in range(20)]
    selector = Selector(Pool(tasks), fraction=0.4, seed=1)
    for start, solved in (("a", 10), ("b", 6)):
        selector.tell_full(start, {task: float(i < solved) for i, task in enumerate(tasks)})
    (seen,) = selector.ask(["seen"])
    selector.tell(seen, {task: float(i % 2) for i, task in enumerate(seen.tasks)})
    down = Missing("the service is down", shared=True)
    for asked in [*selector.ask(["lost"]), *selector.ask()]:
        scores: dict[str, float | Missing] = dict.fromkeys(asked.tasks, down)
        scores[asked.tasks[0]] = 1.0
        selector.tell(asked, scores)
    assert selector.estimate("lost").value > selector.estimate("seen").value
    choice = selector.best()
    assert (choice.candidate, choice.left_out) == ("seen", ("lost",))


def test_one_candidate_of_a_round_that_lost_most_of_its_outcomes_gets_another_draw() -> None:
    tasks = [f"task-{i}" for i in range(20)]
    selector = Selector(Pool(tasks), fraction=0.4, seed=1)
    for start, solved in (("a", 10), ("b", 6)):
        selector.tell_full(start, {task: float(i < solved) for i, task in enumerate(tasks)})
    seen, lost = selector.ask(["seen", "lost"])
    selector.tell(seen, dict.fromkeys(seen.tasks, 0.0))
    down = Missing("the service is down", shared=True)
    selector.tell(lost, dict.fromkeys(lost.tasks[1:], down) | {lost.tasks[0]: 1.0})
    (again,) = selector.ask()
    assert again.candidate == "lost"
    selector.tell(again, dict.fromkeys(again.tasks, 1.0))
    assert selector.ask() == []
    assert (selector.best().candidate, selector.best().left_out) == ("lost", ())


def test_of_incomplete_candidates_one_with_half_of_its_trials_is_chosen() -> None:
    tasks = [f"task-{i}" for i in range(20)]
    selector = Selector(Pool(tasks), fraction=0.5, seed=1)
    for start, solved in (("a", 10), ("b", 6)):
        selector.tell_full(start, {task: float(i < solved) for i, task in enumerate(tasks)})
    few, most = selector.ask(["few", "most"])
    selector.tell(few, dict.fromkeys(few.tasks[:3], 1.0))
    selector.tell(most, {task: float(i > 3) for i, task in enumerate(most.tasks[:9])})
    assert selector.estimate("few").value > selector.estimate("most").value
    assert (selector.best().candidate, selector.best().left_out) == ("most", ("few",))


def test_another_estimator_chooses_from_the_same_outcomes_and_changes_nothing() -> None:
    selector = started("task-coevolve")
    for assignment in selector.ask(["a", "b", "c"]):
        answer(selector, assignment)
    before = [(row.candidate, row.estimate) for row in selector.standings()]
    events = selector.events
    assert selector.best_by(Joint()).estimate.method == "joint"
    assert selector.best_by(RawMean()).estimate.method == "raw mean"
    assert [(row.candidate, row.estimate) for row in selector.standings()] == before
    assert selector.events == events


@pytest.mark.parametrize("wrong", ["joint", Joint, PhaseZeroRule()])
def test_another_estimator_must_be_one(wrong: object) -> None:
    selector = started("naive")
    answer(selector, selector.ask(["a"])[0])
    with pytest.raises(InputError, match="estimator must be an estimator or a joint model"):
        selector.best_by(wrong)  # type: ignore[arg-type]
