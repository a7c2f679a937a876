"""Bad input is named, with its value, and leaves the selector as it was."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from coevolve import Missing, Outcome, Pool, Selector, Usage, protocol
from coevolve.core.arrays import Floats
from coevolve.core.designs import Draw
from coevolve.errors import (
    ChangedOutcomeError,
    CoevolveError,
    InputError,
    NoOutcomeError,
    NotAskedError,
    PhaseError,
    PoolError,
    ScoreError,
    UnknownCandidateError,
    UnknownProtocolError,
    UnknownTaskError,
)

from .strategies import TASKS, answer, scores, started

Act = Callable[[Selector], object]


def busy() -> Selector:
    """Two rounds: one complete, one with a first outcome of four."""
    selector = started(seed=3)
    answer(selector, selector.ask(["done"])[0])
    (assignment,) = selector.ask(["open"])
    selector.tell(assignment, {assignment.tasks[0]: 1.0})
    return selector


def tell(results: Callable[[tuple[str, ...]], Any]) -> Act:
    """Tell results made from the tasks that were asked."""
    return lambda s: s.tell(s.outstanding()[0], results(s.outstanding()[0].tasks))


def other_task(tasks: tuple[str, ...]) -> str:
    return next(task for task in TASKS if task not in tasks)


CASES: dict[str, tuple[Act, type[CoevolveError], str]] = {
    "score above 1": (tell(lambda t: {t[1]: 1.5}), ScoreError, r"\[0, 1\], got 1\.5"),
    "score below 0": (tell(lambda t: {t[1]: -1}), ScoreError, r"got -1"),
    "NaN": (tell(lambda t: {t[1]: float("nan")}), ScoreError, "got nan"),
    "text": (tell(lambda t: {t[1]: "1.0"}), ScoreError, "got '1.0'"),
    "None": (tell(lambda t: {t[1]: None}), ScoreError, "got None"),
    "good then bad": (tell(lambda t: {t[1]: 1.0, t[2]: 7}), ScoreError, "got 7"),
    "unknown task": (tell(lambda t: {"t99": 1.0}), UnknownTaskError, "'t99'.*Did you mean"),
    "task not asked": (tell(lambda t: {other_task(t): 1.0}), NotAskedError, "was not asked"),
    "trial not asked": (
        tell(lambda t: [Outcome(candidate="open", task=t[1], trial=1, score=1.0)]),
        NotAskedError,
        "trial 1 of task",
    ),
    "too many trials": (tell(lambda t: {t[1]: [1.0, 1.0]}), NotAskedError, "got 2 scores"),
    "someone else's outcome": (
        tell(lambda t: [Outcome(candidate="done", task=t[1], score=1.0)]),
        InputError,
        "'done' was told for 'open'",
    ),
    "not an outcome": (tell(lambda t: [1.0]), InputError, "Outcomes, got 1.0"),
    "changed score": (tell(lambda t: {t[0]: 0.0}), ChangedOutcomeError, "as 1.0 and .* as 0.0"),
    "score to missing": (
        tell(lambda t: {t[0]: Missing("x")}),
        ChangedOutcomeError,
        "as 1.0 and was told as 'x'",
    ),
    "contradiction in one call": (
        tell(lambda t: [Outcome(candidate="open", task=t[1], score=s) for s in (0.0, 1.0)]),
        ChangedOutcomeError,
        "given twice",
    ),
    "foreign assignment": (
        lambda s: s.tell(started(seed=99).ask(["open"])[0], {}),
        NotAskedError,
        "not from this selector",
    ),
    "unknown candidate": (lambda s: s.estimate("opne"), UnknownCandidateError, "mean 'open'"),
    "start as candidate": (lambda s: s.ask(["start-a"]), InputError, "'start-a' is a starting"),
    "more for a stranger": (
        lambda s: s.ask(candidates=["opne"]),
        UnknownCandidateError,
        "not asked about before.*mean 'open'",
    ),
    "more for a start": (
        lambda s: s.ask(candidates=["start-a"]),
        InputError,
        "'start-a' is a starting harness, told in full",
    ),
    "winner by text": (
        lambda s: s.best(include_start="no"),  # type: ignore[arg-type]
        InputError,
        "True or False, got 'no'",
    ),
    "new and known": (lambda s: s.ask(["new"], candidates=["open"]), InputError, "not both"),
    "withdrawn for nothing": (
        lambda s: s.withdraw(s.outstanding()[0], ""),
        ScoreError,
        "needs a reason",
    ),
    "candidate twice": (lambda s: s.ask(["new", "new"]), InputError, "'new' is named twice"),
    "a string": (lambda s: s.ask("new"), InputError, "list of candidate names, got 'new'"),
    "a set": (lambda s: s.ask({"new"}), InputError, "names, got {'new'}"),
    "no list": (lambda s: s.ask(5), InputError, "names, got 5"),  # type: ignore[arg-type]
    "no assignment": (lambda s: s.tell(None, {}), InputError, "one that ask returned, got None"),  # type: ignore[arg-type]
    "no results": (tell(lambda t: None), InputError, "got None"),
    "no candidate": (lambda s: s.estimate(["open"]), UnknownCandidateError, "is unknown"),
    "a huge score": (tell(lambda t: {t[1]: 10**400}), ScoreError, "must be a number"),
    "a doubled outcome that changes": (
        tell(lambda t: [Outcome(candidate="open", task=t[1], score=s) for s in (1.0, 1.0, 0.5)]),
        ChangedOutcomeError,
        "given twice",
    ),
    "empty name": (lambda s: s.ask([""]), InputError, "non-empty text, .* got ''"),
    "nothing": (lambda s: s.ask([None]), InputError, "got None"),
    "late start": (lambda s: s.tell_full("late", scores(1)), PhaseError, "'late' is new"),
    "full with gaps": (
        lambda s: s.tell_full("done", {}),
        InputError,
        "20 of 20 tasks have fewer, such as 't00'",
    ),
    "full with a changed score": (
        lambda s: s.tell_full("start-a", scores(1) | {"t00": 0.25}),
        ChangedOutcomeError,
        "never rewritten",
    ),
    "full with an unknown task": (
        lambda s: s.tell_full("start-a", scores(1) | {"t77": 1.0}),
        UnknownTaskError,
        "'t77'",
    ),
}


@pytest.mark.parametrize(("act", "error", "message"), CASES.values(), ids=CASES.keys())
def test_bad_input_changes_nothing(act: Act, error: type[CoevolveError], message: str) -> None:
    selector, untouched = busy(), busy()
    with pytest.raises(error, match=message):
        act(selector)
    assert selector.events == untouched.events
    assert selector.evaluations == untouched.evaluations
    assert selector.history().mean.tobytes() == untouched.history().mean.tobytes()
    after, expected = selector.ask(["next"]), untouched.ask(["next"])
    assert [a.tasks for a in after] == [a.tasks for a in expected]


def test_ids_that_are_false_are_refused_like_others() -> None:
    selector = Selector(Pool([0, 1, 2]), protocol="joint", fraction=0.5)
    selector.tell_full(0, {0: 1, 1: 0, 2: 1})
    events = selector.events
    with pytest.raises(InputError, match="candidate 0 is a starting harness"):
        selector.ask([0])
    with pytest.raises(PoolError, match="task 0 is already in the pool"):
        selector.add_tasks([0])
    assert selector.events == events


def test_missing_with_another_reason_is_a_change() -> None:
    selector = started()
    (assignment,) = selector.ask(["c"])
    selector.tell(assignment, {assignment.tasks[0]: Missing("one")})
    for other in (Missing("two"), 0.0):
        with pytest.raises(ChangedOutcomeError, match="recorded as 'one'"):
            selector.tell(assignment, {assignment.tasks[0]: other})


def test_several_trials_want_lists() -> None:
    selector = Selector(Pool(TASKS), protocol="naive", trials=2)
    (assignment,) = selector.ask(["c"])
    with pytest.raises(InputError, match="has 2 trials; tell a list"):
        selector.tell(assignment, {assignment.tasks[0]: 1.0})


def test_asking_before_phase_zero() -> None:
    selector = Selector(Pool(TASKS))
    with pytest.raises(PhaseError, match="call tell_full for one or more"):
        selector.ask(["c"])
    assert len(selector.events) == 1


def test_estimating_from_nothing() -> None:
    selector = started()
    selector.ask(["c"])
    with pytest.raises(NoOutcomeError, match="no score in pool 'all' yet"):
        selector.estimate("c")
    with pytest.raises(NoOutcomeError, match="no candidate has an estimate yet"):
        selector.best()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fraction": 0}, "fraction must be in .*, got 0"),
        ({"fraction": 1.1}, "got 1.1"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"seed": 0.5}, "got 0.5"),
        ({"seed": None}, "got None"),
        ({"trials": 0}, "trials must be a whole number of at least 1, got 0"),
        ({"trials": 70_372_647}, "trials must be at most 10,000, got 70372647"),
        ({"draw_per": "task"}, "'round' or 'candidate', got 'task'"),
        ({"confidence": 95}, "confidence must be between 0 and 1, got 95"),
        ({"pool": ["a"]}, "pool must be a Pool, got list"),
    ],
)
def test_settings_without_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Selector(**({"pool": Pool(TASKS)} | options))


def test_unknown_protocols() -> None:
    with pytest.raises(UnknownProtocolError, match="Did you mean 'random-resample'"):
        Selector(Pool(TASKS), protocol="random-resampel")


def test_a_design_that_fails_leaves_no_trace() -> None:
    @dataclass
    class Broken:
        name: ClassVar[str] = "broken"
        redraws: ClassVar[bool] = True

        def draw(self, weights: Floats, size: int, rng: np.random.Generator) -> Draw:
            raise RuntimeError("no luck today")

    selector = started(protocol=replace(protocol("task-coevolve"), design=Broken()))  # type: ignore[arg-type]
    events = selector.events
    with pytest.raises(RuntimeError, match="no luck"):
        selector.ask(["c"])
    assert selector.events == events
    selector.tell_full("start-c", scores(3))


@pytest.mark.parametrize(
    ("chosen", "probabilities", "message"),
    [
        ([0, 0, 1, 2], [0.2] * 20, "not 4 different tasks"),
        ([0, 1], [0.2] * 20, "not 4 different tasks"),
        ([0, 1, 2, 3], [0.0] * 20, r"a probability in \(0, 1\]"),
        ([0, 1, 2, 3], [0.2] * 4, "each of the 20 tasks"),
    ],
)
def test_a_design_that_draws_nonsense_is_named(
    chosen: list[int], probabilities: list[float], message: str
) -> None:
    @dataclass
    class Odd:
        name: ClassVar[str] = "odd"
        redraws: ClassVar[bool] = True

        def draw(self, weights: Floats, size: int, rng: np.random.Generator) -> Draw:
            return Draw(np.array(chosen), np.array(probabilities))

    selector = started(protocol=replace(protocol("task-coevolve"), design=Odd()))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=message):
        selector.ask(["c"])


def test_usage_of_the_wrong_kind() -> None:
    with pytest.raises(ScoreError, match="usage seconds"):
        Usage(seconds=-1.0)
