"""Outcomes that were not drawn, and tasks that join the pool later."""

import json
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevolve import Estimate, Missing, Outcome, Pool, Selector, protocol
from coevolve.errors import (
    ChangedOutcomeError,
    InputError,
    NoOutcomeError,
    PhaseError,
    PoolError,
    ScoreError,
    UnknownTaskError,
)
from tests.effort import effort

from .strategies import TASKS, answer, scores, started

MORE = tuple(f"n{i:02d}" for i in range(10))


def restored(selector: Selector) -> Selector:
    again = Selector.from_events(json.loads(json.dumps(selector.events)))
    assert again.events == selector.events
    return again


def without_counts(estimate: Estimate) -> dict[str, Any]:
    found = estimate.to_json()
    assert found.pop("ignored") == 3
    return found


@pytest.mark.parametrize("name", ["random-resample", "random-estimate", "task-coevolve"])
def test_design_based_estimates_ignore_what_was_observed_and_say_so(name: str) -> None:
    plain, seen = started(name), started(name)
    for selector in (plain, seen):
        answer(selector, selector.ask(["c"])[0])
    seen.observe("c", dict.fromkeys(TASKS[:3], 1.0))
    assert without_counts(seen.estimate("c")) == plain.estimate("c").to_json()
    assert str(seen.estimate("c")).endswith("; 3 observed are ignored)")
    assert seen.scores("c") == plain.scores("c")
    assert seen.evaluations == plain.evaluations
    assert seen.best().candidate == "c"
    assert restored(seen).estimate("c") == seen.estimate("c")


def test_an_exact_score_stays_exact() -> None:
    selector = started()
    selector.observe("start-a", dict.fromkeys(TASKS[:3], 0.5))
    estimate = selector.estimate("start-a")
    assert estimate.exact
    assert (estimate.value, estimate.ignored) == (np.mean(list(scores(1).values())), 3)


def test_the_joint_model_uses_what_was_observed() -> None:
    plain, seen = started("joint"), started("joint")
    (one,), (other,) = plain.ask(["c"]), seen.ask(["c"])
    plain.tell(one, dict.fromkeys(one.tasks, 1.0))
    seen.tell(other, dict.fromkeys(other.tasks, 1.0))
    rest = [task for task in TASKS if task not in other.tasks]
    seen.observe("c", dict.fromkeys(rest, 0.0))
    before, after = plain.estimate("c"), seen.estimate("c")
    assert after.value < before.value
    assert after.se is not None
    assert before.se is not None
    assert after.se < before.se
    assert (after.tasks, after.observed, after.ignored) == (4, 16, 0)
    assert str(after).endswith("(4 of 20 tasks and 16 observed, joint)")
    assert after.check is not None
    assert (after.check.ignored, after.check.value) == (16, before.check and before.check.value)
    assert restored(seen).estimate("c") == after


def test_what_was_observed_counts_the_same_before_and_after_the_first_round() -> None:
    """An observed candidate is no starting harness, whenever its outcomes come."""
    rule = protocol("joint", design="uniform")
    estimates = []
    for early in (True, False):
        selector = Selector(Pool(TASKS), protocol=rule, fraction=0.3, seed=4)
        selector.tell_full("start", scores(1))
        past = {f"past-{n}": scores(n + 10, TASKS[:8]) for n in range(4)}
        for name, found in past.items() if early else ():
            selector.observe(name, found)
        (assignment,) = selector.ask(["c"])
        answer(selector, assignment)
        for name, found in past.items() if not early else ():
            selector.observe(name, found)
        estimates.append({name: selector.estimate(name).value for name in ("c", *past)})
    assert estimates[0] == pytest.approx(estimates[1], abs=0.005)


def test_a_candidate_may_be_known_by_observed_outcomes_alone() -> None:
    selector = started("joint")
    selector.observe("old", scores(5, TASKS[:10]))
    estimate = selector.estimate("old")
    assert (estimate.tasks, estimate.drawn, estimate.observed, estimate.coverage) == (0, 0, 10, 1)
    assert selector.observed == ("old",)
    assert selector.candidates == ()
    answer(selector, selector.ask(["c"])[0])
    assert selector.best().candidate == "c"
    design = started()
    design.observe("old", scores(5, TASKS[:10]))
    with pytest.raises(NoOutcomeError, match=r"'old': its outcomes on 10 tasks were observed and"):
        design.estimate("old")
    (assignment,) = design.ask(["old"])
    answer(design, assignment, seed=5)
    assert (design.estimate("old").ignored, design.observed) == (10, ())
    assert restored(design).estimate("old") == design.estimate("old")


def test_past_outcomes_can_stand_for_phase_0() -> None:
    selector = Selector(Pool(TASKS), fraction=0.2)
    with pytest.raises(PhaseError, match="or observe for past outcomes"):
        selector.ask(["c"])
    past: dict[str, float | Missing] = dict(scores(1))
    selector.observe("last year's", past | {TASKS[0]: Missing("lost")})
    (assignment,) = selector.ask(["c"])
    (design,) = assignment.designs
    anchors = [scores(1)[t] for t in assignment.tasks if t != TASKS[0]]
    shown = design.anchors.tolist()
    assert [a for a, t in zip(shown, assignment.tasks, strict=True) if t != TASKS[0]] == anchors
    answer(selector, assignment)
    assert restored(selector).best() == selector.best()
    with pytest.raises(PhaseError, match="is new; tell_full adds"):
        selector.tell_full("last year's", scores(1))


def test_an_observed_start_may_still_be_told_in_full() -> None:
    selector = Selector(Pool(TASKS), fraction=0.2)
    selector.observe("s", scores(1, TASKS[:5]))
    selector.tell_full("s", scores(1))
    assert selector.starts == ("s",)
    assert selector.observed == ()
    assert selector.estimate("s").exact
    assert selector.history().count.tolist() == [1] * 20  # a candidate counts once per task


def test_repeats_are_ignored_and_changes_refused() -> None:
    selector = started()
    known: dict[str, float | list[float]] = {"t00": 1.0, "t01": [0.0, 1.0]}
    selector.observe("old", known)
    events = selector.events
    selector.observe("old", {"t00": [1.0], "t01": [0.0]})
    selector.observe("old", [Outcome(candidate="old", task="t01", trial=1, score=1)])
    selector.observe("old", {"t05": Missing("lost")})
    assert selector.events == events
    with pytest.raises(ChangedOutcomeError, match=r"as 1\.0 and was told as 0\.0.*pass a list"):
        selector.observe("old", {"t00": 0.0})
    with pytest.raises(UnknownTaskError, match="'t99'"):
        selector.observe("old", {"t99": 0.0})
    with pytest.raises(ScoreError, match="got 2"):
        selector.observe("old", {"t02": 2})
    with pytest.raises(InputError, match="the name of a candidate"):
        selector.observe("", {"t02": 1})
    assert selector.events == events


def test_observed_outcomes_do_not_take_the_place_of_told_ones() -> None:
    selector = started()
    (assignment,) = selector.ask(["c"])
    selector.observe("c", dict.fromkeys(assignment.tasks, 0.0))
    selector.tell(assignment, dict.fromkeys(assignment.tasks, 1.0))
    assert set(selector.scores("c").values()) == {1.0}
    assert selector.estimate("c").tasks == 4


def test_draws_after_an_observation_stay_unbiased_by_enumeration() -> None:
    """Weights and anchors that observed outcomes changed still give E Ŝ = S, over every draw."""
    from coevolve.core.inclusion import successive_inclusion
    from coevolve.core.weights import TaskView, VarianceWeights

    tasks = TASKS[:6]
    selector = Selector(Pool(tasks), fraction=0.5)
    selector.observe("old", {"t00": 1.0, "t01": 0.0, "t02": 1.0})
    selector.observe("older", {"t00": 0.0, "t03": 1.0})
    history = selector.history()
    weights = VarianceWeights()(TaskView(history=history))
    pi, anchors = successive_inclusion(weights, 3), history.anchors
    (assignment,) = selector.ask(["c"])
    (design,) = assignment.designs
    assert design.probabilities.tolist() == pytest.approx(pi[design.positions].tolist())
    truth = np.array([1.0, 0.0, 0.0, 1.0, 0.5, 1.0])
    from .draws import successive_draws

    mean = sum(
        chance * (anchors.mean() + ((truth - anchors) / pi)[list(drawn)].sum() / len(tasks))
        for drawn, chance in successive_draws(weights, 3).items()
    )
    assert mean == pytest.approx(truth.mean())


def grown(name: str = "task-coevolve", **options: Any) -> tuple[Selector, dict[str, float]]:
    """Two candidates before ten more tasks, and one after; all outcomes of the last."""
    selector = started(name, **options)
    for assignment in selector.ask(["a", "b"]):
        answer(selector, assignment, seed=4)
    selector.add_tasks(MORE)
    return selector, scores(9) | {task: float(i % 3 == 0) for i, task in enumerate(MORE)}


def test_later_draws_are_from_all_tasks() -> None:
    selector, outcomes = grown(fraction=0.4)
    assert len(selector.pool) == 30
    (assignment,) = selector.ask(["late"])
    (design,) = assignment.designs
    assert (len(assignment.tasks), design.pool_size) == (12, 30)
    assert set(assignment.tasks) & set(MORE)  # tasks without outcomes have the highest weight
    selector.tell(assignment, {task: outcomes[task] for task in assignment.tasks})
    assert (selector.estimate("late").pool_size, selector.estimate("late").note) == (30, "")
    assert restored(selector).estimate("late") == selector.estimate("late")


def test_estimates_from_before_are_for_the_tasks_before() -> None:
    before = started()
    for assignment in before.ask(["a", "b"]):
        answer(before, assignment, seed=4)
    selector, outcomes = grown()
    for name in ("start-a", "a"):
        old, now = before.estimate(name), selector.estimate(name)
        assert (now.value, now.se, now.pool_size) == (old.value, old.se, 20)
        assert "10 tasks were added since; this is an estimate for the 20 before" in now.note
        assert not now.exact
    selector.tell_full("start-a", scores(1) | {task: outcomes[task] for task in MORE})
    assert selector.estimate("start-a").exact
    assert restored(selector).estimate("b") == selector.estimate("b")


def test_the_joint_model_estimates_all_candidates_for_all_tasks() -> None:
    selector, _ = grown("joint")
    for name, tasks in (("start-a", 20), ("a", 4)):
        estimate = selector.estimate(name)
        assert (estimate.method, estimate.tasks, estimate.pool_size) == ("joint", tasks, 30)
        assert estimate.se is not None
        assert estimate.se > 0.02
    check = selector.estimate("a").check
    assert check is not None
    assert check.pool_size == 20
    assert "added since" in check.note
    assert restored(selector).estimate("a") == selector.estimate("a")


def test_further_looks_stay_within_the_tasks_of_the_first() -> None:
    selector, outcomes = grown("adaptive", fraction=0.5)
    (assignment,) = selector.ask(["late"])
    selector.tell(assignment, {task: outcomes[task] for task in assignment.tasks})
    looks = 0
    while more := selector.ask(final=True):
        for further in more:
            looks += 1
            old = further.candidate != "late"
            assert not old or not set(further.tasks) & set(MORE)
            selector.tell(further, {task: outcomes[task] for task in further.tasks})
    assert looks > 2
    assert restored(selector).best() == selector.best()


def test_a_repeated_draw_is_from_all_tasks() -> None:
    selector = started(fraction=0.5)
    (lost,) = selector.ask(["c"])
    selector.tell(lost, dict.fromkeys(lost.tasks, Missing("no network", shared=True)))
    selector.add_tasks(MORE)
    (again,) = selector.ask()
    assert (len(again.tasks), again.designs[0].pool_size) == (15, 30)
    selector.tell(again, dict.fromkeys(again.tasks, 1.0))
    assert selector.estimate("c").pool_size == 30


def test_estimates_after_growth_are_unbiased() -> None:
    """Mean over 400 searches within four standard errors of the score on all 30 tasks."""
    values, (_, outcomes) = [], grown()
    for seed in range(effort(400, 2_000)):
        selector, _ = grown(seed=seed, fraction=0.4)
        (assignment,) = selector.ask(["late"])
        selector.tell(assignment, {task: outcomes[task] for task in assignment.tasks})
        values.append(selector.estimate("late").value)
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values) - np.mean(list(outcomes.values()))) < 4 * error


def test_a_new_pool_may_join() -> None:
    selector = Selector(
        Pool({"x": TASKS[:10], "y": TASKS[10:]}), fraction=0.2, protocol="adaptive"
    )
    selector.tell_full("s", scores(1))
    answer(selector, selector.ask(["old"])[0])
    selector.add_tasks({"z": MORE})
    assert selector.pool.weights.tolist() == [1 / 3] * 3
    (assignment,) = selector.ask(["new"])
    assert len(assignment.designs) == 3
    selector.tell(assignment, dict.fromkeys(assignment.tasks, 1.0))
    while more := selector.ask(final=True):
        for further in more:
            selector.tell(further, dict.fromkeys(further.tasks, 1.0))
    assert restored(selector).best() == selector.best()


def test_what_cannot_be_added_changes_nothing() -> None:
    selector = started()
    events = selector.events
    with pytest.raises(PoolError, match="'t00' is already in the pool"):
        selector.add_tasks(["t00"])
    with pytest.raises(PoolError, match="at least one task"):
        selector.add_tasks([])
    assert selector.events == events


STEPS = st.lists(
    st.sampled_from(["ask", "more", "tell", "observe", "grow", "withdraw", "full"]), max_size=12
)


@given(st.sampled_from(["task-coevolve", "joint", "adaptive", "naive", "full"]), STEPS)
@settings(max_examples=effort(25, 250), deadline=None)
def test_any_order_of_these_restores(name: str, steps: list[str]) -> None:
    selector = started(name, fraction=0.3)
    for number, step in enumerate(steps):
        waiting = selector.outstanding()
        if step == "ask":
            selector.ask([f"c{number}"])
        elif step == "more":
            selector.ask(candidates=selector.candidates)
        elif step == "observe":
            some = [f"c{number}", *selector.candidates, "start-a"]
            selector.observe(some[number % len(some)], {selector.pool.tasks[number]: 1.0})
        elif step == "grow":
            selector.add_tasks([f"new-{number}", ("new", number)])
        elif step == "full" and selector.candidates:
            told = selector.scores(selector.candidates[0])
            everything = dict.fromkeys(selector.pool.tasks, 1.0) | {
                t: 1.0 if isinstance(s, Missing) else s for t, s in told.items()
            }
            selector.tell_full(selector.candidates[0], everything)
        elif waiting and step == "tell":
            selector.tell(waiting[0], dict.fromkeys(waiting[0].tasks, 0.5))
        elif waiting and step == "withdraw":
            selector.withdraw(waiting[-1], "died", shared=True)
    again = restored(selector)
    for candidate in (*selector.starts, *selector.candidates, *selector.observed):
        try:
            expected = selector.estimate(candidate)
        except NoOutcomeError:
            continue
        assert again.estimate(candidate) == expected
        assert expected.tasks <= expected.pool_size <= len(selector.pool)
    assert again.plan(["probe"]) == selector.plan(["probe"])


def test_every_subset_of_a_grown_pool_has_the_probability_that_is_recorded() -> None:
    """Frequencies of 2,000 draws of 2 of 4 tasks, within five standard errors of π."""
    seen = dict.fromkeys(combinations(("a", "b", "x", "y"), 2), 0)
    drawn = effort(2_000, 10_000)
    rule = protocol("task-coevolve")
    selector = Selector(Pool(["a", "b"]), protocol=rule, fraction=0.5, draw_per="candidate")
    selector.tell_full("s", {"a": 1.0, "b": 0.0})
    selector.add_tasks(["x", "y"])
    assignments = selector.ask([f"c{i}" for i in range(drawn)])
    recorded: dict[str, float] = {}
    for assignment in assignments:
        seen[tuple(sorted(assignment.tasks))] += 1
        recorded |= assignment.probabilities
    assert sum(recorded.values()) == pytest.approx(2)
    for task, pi in recorded.items():
        found = sum(count for pair, count in seen.items() if task in pair) / drawn
        assert abs(found - pi) < 5 * np.sqrt(pi * (1 - pi) / drawn)


@pytest.mark.parametrize("protocol", ["adaptive", "joint", "task-coevolve"])
def test_estimates_that_were_read_before_an_event_are_those_of_a_restored_selector(
    protocol: str,
) -> None:
    selector = Selector(Pool(range(12)), protocol=protocol, fraction=0.5, seed=3)

    def check() -> None:
        """Read every estimate, with its check and notes."""
        restored = Selector.from_events(selector.events)
        for name in (*selector.starts, *selector.candidates):
            assert selector.estimate(name) == restored.estimate(name)

    selector.tell_full("start", {task: float(task % 2) for task in range(12)})
    one, two, three = selector.ask(["one", "two", "three"])
    for number, assignment in enumerate((one, two, three)):
        selector.tell(assignment, {assignment.tasks[0]: number / 2})
    check()
    selector.tell(one, dict.fromkeys(one.tasks[1:], 1.0))
    check()
    selector.tell(two, {two.tasks[1]: Missing("it broke")})
    check()
    selector.withdraw(three, "it died")
    check()
    selector.observe("two", {one.tasks[0]: 1.0})
    check()
    selector.add_tasks([12, 13])
    check()
    selector.tell_full("one", {t: selector.scores("one").get(t, 0.5) for t in range(14)})
    check()
