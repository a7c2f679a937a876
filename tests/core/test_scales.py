"""Scores on any scale and ids of any type change only what a user sees."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevolve import Missing, Outcome, Pool, Selector
from coevolve.errors import ChangedOutcomeError, ConfigError, ScoreError
from tests.effort import effort

from .strategies import TASKS, scores

PROTOCOLS = ("full", "random-resample", "task-coevolve", "joint", "adaptive")


def search(protocol: str, scale: tuple[float, float]) -> Selector:
    low, high = scale

    def told(seed: int, tasks: tuple[Any, ...] = TASKS) -> dict[Any, float]:
        return {task: low + (high - low) * x for task, x in scores(seed, tasks).items()}

    selector = Selector(Pool(TASKS, scale=scale), protocol=protocol, fraction=0.4, seed=3)
    for start in (1, 2):
        selector.tell_full(f"start-{start}", told(start))
    for number in (5, 6):
        for assignment in selector.ask([f"c{number}"]):
            selector.tell(assignment, told(number, assignment.tasks))
    return selector


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("scale", [(0.0, 10.0), (-1.0, 1.0), (100.0, 1000.0)])
def test_estimates_come_back_on_the_scale_of_the_scores(
    name: str, scale: tuple[float, float]
) -> None:
    unit, scaled = search(name, (0.0, 1.0)), search(name, scale)
    low, span = scale[0], scale[1] - scale[0]
    for candidate in ("start-1", "c5", "c6"):
        one, other = unit.estimate(candidate), scaled.estimate(candidate)
        assert other.value == pytest.approx(low + span * one.value)
        assert (one.se is None) == (other.se is None)
        if one.se is not None and one.low is not None:
            assert other.se == pytest.approx(span * one.se)
            assert other.low == pytest.approx(low + span * one.low)
        assert (other.scale, other.tasks) == (scale, one.tasks)
        if one.check is not None and other.check is not None:
            assert other.check.value == pytest.approx(low + span * one.check.value)
    assert unit.best().candidate == scaled.best().candidate
    assert unit.history().mean.tolist() == scaled.history().mean.tolist()
    assert scaled.scores("start-1")["t00"] in scale
    assert "clipped" not in str(scaled.estimate("start-1"))


def test_a_choice_is_explained_on_the_scale() -> None:
    selector = search("full", (0.0, 100.0))
    mean = 100 * float(np.mean(list(scores(6).values())))
    assert str(selector.estimate("c6")) == f"{mean:.1f} (20 of 20 tasks, full set)"
    assert f"highest estimate {selector.best().estimate.value:.1f}" in selector.best().why
    difference = search("task-coevolve", (0.0, 100.0)).best()
    assert difference.estimate.value > 20


def test_scores_outside_the_scale_are_refused() -> None:
    selector = Selector(Pool(["a", "b"], scale=(-2, 3)), protocol="full")
    (assignment,) = selector.ask(["c"])
    with pytest.raises(ScoreError, match=r"must be a number in \[-2, 3\], got 3.5"):
        selector.tell(assignment, {"a": 3.5})
    outcome = Outcome(candidate="c", task="a", score=-2.5)
    with pytest.raises(ScoreError, match=r"in \[-2, 3\], got -2.5"):
        selector.tell(assignment, [outcome])
    plain = Selector(Pool(["a"]), protocol="full")
    (other,) = plain.ask(["c"])
    with pytest.raises(ScoreError, match=r"in \[0, 1\], got -2.5"):
        plain.tell(other, [outcome])


@given(
    st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6)).map(lambda p: (p[0], p[0] + p[1])),
    st.lists(st.floats(0, 1), min_size=4, max_size=4),
)
@settings(max_examples=effort(25, 200), deadline=None)
def test_what_is_told_is_recorded_as_it_was_told(
    scale: tuple[float, float], shares: list[float]
) -> None:
    """Events hold the user's own numbers; repeats are equal, anything else is a change."""
    tasks = ["a", "b", "c", "d"]
    told = {
        task: min(max(scale[0] + share * (scale[1] - scale[0]), scale[0]), scale[1])
        for task, share in zip(tasks, shares, strict=True)
    }
    selector = Selector(Pool(tasks, scale=scale), protocol="full")
    (assignment,) = selector.ask(["c"])
    selector.tell(assignment, told)
    assert selector.events[-1]["scores"] == list(told.values())
    events = selector.events
    selector.tell(assignment, told)
    selector.tell_full("c", told)
    assert selector.events[: len(events)] == events
    restored = Selector.from_events(json.loads(json.dumps(selector.events)))
    assert restored.estimate("c") == selector.estimate("c")
    value = selector.estimate("c").value
    assert value == pytest.approx(np.mean(list(told.values())), abs=1e-9 * max(map(abs, scale)))


def test_a_changed_score_is_named_on_the_scale() -> None:
    selector = Selector(Pool(["a", "b"], scale=(0, 10)), protocol="full")
    (assignment,) = selector.ask(["c"])
    selector.tell(assignment, {"a": 7})
    with pytest.raises(ChangedOutcomeError, match=r"recorded as 7.0 and was told as 8.0"):
        selector.tell(assignment, {"a": 8})


TYPED: tuple[Any, ...] = (("even", 2), ("even", 4), 1, 3, 5.5, "seven", 9, ("odd", ("x",)))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_tasks_and_candidates_have_ids_of_any_json_type(name: str) -> None:
    selector = Selector(Pool(TYPED), protocol=name, fraction=0.5, seed=1)
    selector.tell_full(0, {task: float(i % 2) for i, task in enumerate(TYPED)})
    selector.tell_full(("start", 1), dict.fromkeys(TYPED, 1.0))
    for candidate in (7, ("child", 8)):
        (assignment,) = selector.ask([candidate])
        assert assignment.candidate == candidate
        assert set(assignment.tasks) <= set(TYPED)
        first, *rest = assignment.tasks
        selector.tell(assignment, {first: Missing("crash")})
        selector.tell(assignment, [Outcome(candidate=candidate, task=t, score=1) for t in rest])
    assert selector.candidates == (7, ("child", 8))
    assert selector.starts == (0, ("start", 1))
    events = json.loads(json.dumps(selector.events))
    restored = Selector.from_events(events)
    assert list(restored.events) == events
    assert restored.pool.tasks == TYPED
    assert restored.candidates == selector.candidates
    for candidate in (0, 7, ("child", 8)):
        assert restored.estimate(candidate) == selector.estimate(candidate)
    assert restored.best() == selector.best()
    assert json.loads(json.dumps(restored.best().to_json()))["candidate"] in (7, ["child", 8])
    assert restored.plan([("new", 1)]) == selector.plan([("new", 1)])
    (planned,) = selector.plan([("new", 1)])
    assert json.loads(json.dumps(planned)) == planned
    selector.follow(json.loads(json.dumps(planned)))
    assert selector.ask([("new", 1)])[0].candidate == ("new", 1)


def test_numbers_from_numpy_name_the_same_tasks() -> None:
    selector = Selector(Pool(np.arange(4)), protocol="full")
    (assignment,) = selector.ask([np.int64(1)])
    selector.tell(assignment, dict.fromkeys(np.arange(4), 1.0))
    assert selector.candidates == (1,)
    assert selector.events[-1]["tasks"] == [0, 1, 2, 3]
    assert selector.estimate(1).exact


@pytest.mark.parametrize("pool", [Pool(["a"], scale=(0, 2)), Pool([1, 2])])
def test_a_run_needs_text_and_scores_from_0_to_1(pool: Pool) -> None:
    from coevolve import optimize

    with pytest.raises(ConfigError, match="text as ids of tasks and scores from 0 to 1"):
        optimize(pool, ["a", "b"], lambda candidate, task: 1.0, lambda view: "c", rounds=1)
