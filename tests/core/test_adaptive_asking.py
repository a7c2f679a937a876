"""Protocols that keep asking: budgets, batches, restoring, and the design-based check."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import pytest

from coevolve import Assignment, Missing, Pool, SearchProtocol, Selector, protocol, protocols
from coevolve.core.allocation import Adaptive, Request, SearchView, Share, share
from coevolve.core.arrays import Floats
from coevolve.core.assignment import drawn_samples
from coevolve.core.designs import PivotalDesign, UniformDesign
from coevolve.core.estimators import Difference, HorvitzThompson
from coevolve.core.joint import Joint
from coevolve.core.posterior import Cells, Deferred, Posterior
from coevolve.core.weights import TaskView
from coevolve.errors import InputError, NotAskedError
from coevolve_reproductions.rivals import RACING, RIVALS
from tests.effort import effort

TASKS = tuple(f"t{i}" for i in range(40))
ADAPTIVE = [p for p in (*protocols(), *RIVALS) if isinstance(p.allocation, Adaptive)]


def truth(candidate: int) -> dict[str, float]:
    rng = np.random.default_rng(candidate)
    ease = np.linspace(-3, 3, len(TASKS)) + 0.2 * candidate
    return dict(zip(TASKS, (rng.random(len(TASKS)) < 1 / (1 + np.exp(-ease))) * 1.0, strict=True))


def search(
    protocol: str | SearchProtocol,
    *,
    candidates: Sequence[int] = range(2, 8),
    pools: bool = False,
    look: Callable[[Selector], object] = lambda selector: None,
) -> Selector:
    """A whole search at 20%; the name of a candidate is its number."""
    pool = Pool(TASKS, pools=["x"] * 15 + ["y"] * 25 if pools else None)
    selector = Selector(pool, protocol=protocol, fraction=0.2, seed=3)

    def tell(assignments: list[Assignment]) -> bool:
        for assignment in assignments:
            scores = truth(int(assignment.candidate))
            selector.tell(assignment, {task: scores[task] for task in assignment.tasks})
            look(selector)
        return bool(assignments)

    for start in range(2):
        selector.tell_full(f"{start}", truth(start))
    for number in candidates:
        tell(selector.ask([f"{number}"]))
        while tell(selector.ask()):
            pass
    while tell(selector.ask(final=True)):
        pass
    return selector


@pytest.mark.parametrize("pools", [False, True])
@pytest.mark.parametrize("known", ADAPTIVE, ids=lambda known: known.name)
def test_no_adaptive_protocol_exceeds_the_budget_of_a_fixed_share(
    known: SearchProtocol, pools: bool
) -> None:
    selector = search(known, pools=pools)
    granted = 6 * sum(share(0.2, selector.pool))
    assert granted / 2 <= selector.evaluations <= granted
    assert selector.best().candidate in selector.candidates


@pytest.mark.parametrize("known", ADAPTIVE, ids=lambda known: known.name)
def test_no_task_is_asked_twice_of_a_candidate(known: SearchProtocol) -> None:
    selector = search(known)
    asked: dict[str, list[str]] = {}
    for event in selector.events:
        if event["type"] == "drawn":
            for at, candidate in enumerate(event["candidates"]):
                draw = event["draws"][at if len(event["draws"]) > 1 else 0]
                asked.setdefault(candidate, []).extend(t for d in draw for t in d["tasks"])
    assert all(len(set(tasks)) == len(tasks) for tasks in asked.values())


@pytest.mark.parametrize("known", ADAPTIVE, ids=lambda known: known.name)
def test_restored_anywhere_it_continues_alike(known: SearchProtocol) -> None:
    selector = search(known, candidates=[2, 3, 4])
    events = json.loads(json.dumps(selector.events))
    drawn = [event["seq"] for event in events if event["type"] == "drawn"]
    for cut in (*drawn[1::3], drawn[-1]):
        restored = Selector.from_events(events[:cut], protocol=known)
        event = events[cut]
        if event["kind"] == "first":
            restored.ask(event["candidates"])
        elif not restored.ask():
            restored.ask(final=True)
        assert restored.events[-1] == event


def test_looking_at_estimates_does_not_change_what_is_asked() -> None:
    curious = search("adaptive", look=lambda selector: selector.best())
    assert curious.events == search("adaptive").events


def test_racers_run_the_same_tasks_in_the_same_order_until_they_are_behind() -> None:
    selector = search(RACING, candidates=[30, 2, 3, 4, 5])
    asked: dict[str, set[str]] = {}
    for event in selector.events:
        if event["type"] == "told":
            asked.setdefault(event["candidate"], set()).update(event["tasks"])
    subsets = sorted(asked.values(), key=len)
    assert all(small <= large for small, large in pairwise(subsets))
    assert len(asked["5"]) < len(asked["30"])
    assert selector.best().candidate == "30"


@dataclass(frozen=True, slots=True, kw_only=True)
class Twice:
    """Half of m at once, the other half when that is told."""

    fraction: float = 0.2
    needs_model: ClassVar[bool] = False

    def at(self, fraction: float) -> Self:
        return replace(self, fraction=fraction)

    def sizes(self, pool: Pool, weights: Floats) -> tuple[int, ...]:
        return tuple(size // 2 for size in share(self.fraction, pool))

    def further(self, view: SearchView) -> Sequence[Request]:
        half = self.sizes(view.pool, np.empty(0))
        return [Request(int(i), half) for i in view.newest if view.asked[i] == sum(half)]


TWICE = SearchProtocol(
    name="twice", design=PivotalDesign(), estimator=Difference(), allocation=Twice()
)


def told(selector: Selector, scores: dict[str, float]) -> None:
    for assignment in selector.outstanding():
        selector.tell(assignment, {task: scores[task] for task in assignment.tasks})


def test_a_users_own_allocation_can_ask_for_more() -> None:
    selector = Selector(Pool(TASKS), protocol=TWICE, fraction=0.2)
    selector.tell_full("0", truth(0))
    (first,) = selector.ask(["2"])
    assert selector.ask() == []  # the first half is not told yet
    told(selector, truth(2))
    (second,) = selector.ask()
    assert (len(first.tasks), len(second.tasks), second.batch, second.round) == (4, 4, 1, 1)
    assert not set(first.tasks) & set(second.tasks)
    assert selector.estimate("2").tasks == 4  # while the second half is out
    told(selector, truth(2))
    assert selector.ask() == []
    assert selector.estimate("2").tasks == 8


def test_the_estimate_of_two_batches_is_unbiased() -> None:
    """Mean over 200 searches, within four standard errors of 0.007; over 4,000, of 0.0015."""
    values, scores = [], truth(9)
    for seed in range(effort(200, 4_000)):
        selector = Selector(Pool(TASKS[::4]), protocol=TWICE, fraction=0.4, seed=seed)
        selector.tell_full("0", {task: truth(0)[task] for task in TASKS[::4]})
        selector.ask(["9"])
        told(selector, scores)
        selector.ask()
        told(selector, scores)
        values.append(selector.estimate("9").value)
    exact = np.mean([scores[task] for task in TASKS[::4]])
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values) - exact) < 4 * error


def test_requests_are_cut_to_what_is_left() -> None:
    rule = replace(TWICE, allocation=Twice(fraction=1.0), design=UniformDesign())
    selector = Selector(Pool(TASKS), protocol=rule)
    selector.tell_full("0", truth(0))
    selector.ask(["2"])
    told(selector, truth(2))
    selector.ask()
    told(selector, truth(2))
    assert selector.estimate("2").exact


def test_requests_for_candidates_that_are_not_there_are_refused() -> None:
    class Wrong(Twice):
        def further(self, view: SearchView) -> Sequence[Request]:
            return [Request(7, (1,))]

    selector = Selector(Pool(TASKS), protocol=replace(TWICE, allocation=Wrong()))
    selector.tell_full("0", truth(0))
    selector.ask(["2"])
    told(selector, truth(2))
    with pytest.raises(InputError, match=r"requested Request\(candidate=7"):
        selector.ask()


def test_final_does_not_go_with_new_candidates() -> None:
    with pytest.raises(InputError, match="takes no new candidates"):
        Selector(Pool(TASKS), protocol="full").ask(["a"], final=True)


def test_an_assignment_of_another_batch_is_not_taken_for_this_one() -> None:
    selector = Selector(Pool(TASKS), protocol=TWICE)
    selector.tell_full("0", truth(0))
    (first,) = selector.ask(["2"])
    told(selector, truth(2))
    with pytest.raises(NotAskedError, match="is not from this selector"):
        selector.tell(replace(first, batch=1), {})


def test_a_failed_first_batch_is_drawn_again_before_anything_else() -> None:
    selector = Selector(Pool(TASKS), protocol="adaptive", fraction=0.2)
    selector.tell_full("0", truth(0))
    (first,) = selector.ask(["2"])
    selector.tell(first, dict.fromkeys(first.tasks, Missing("crash", shared=True)))
    (again,) = selector.ask()
    assert (again.batch, again.trials) == (1, (1,))
    told(selector, truth(2))
    assert selector.estimate("2").tasks == len(again.tasks)
    for further in selector.ask(final=True):
        assert further.trials == (1,)


HALVES = replace(TWICE, design=UniformDesign(), estimator=HorvitzThompson())


def estimates(lost: Callable[[Assignment], bool], searches: int = effort(250, 1_500)) -> Floats:
    """Estimates of a candidate in two batches of 4 of 20 tasks, some of them lost; truth 0.5."""
    tasks = TASKS[:20]
    scores = {task: float(i % 2) for i, task in enumerate(tasks)}
    values = []
    for seed in range(searches):
        selector = Selector(Pool(tasks), protocol=HALVES, fraction=0.4, seed=seed)
        selector.tell_full("0", dict.fromkeys(tasks, 1.0))
        selector.ask(["c"])
        while waiting := selector.outstanding():
            for assignment in waiting:
                gone = Missing("lost", shared=True) if lost(assignment) else None
                selector.tell(assignment, {t: gone or scores[t] for t in assignment.tasks})
            selector.ask()
        values.append(selector.estimate("c").value)
    return np.array(values)


@pytest.mark.parametrize(
    "lost",
    [
        lambda assignment: False,
        lambda assignment: assignment.batch == 1,  # the second batch
        lambda assignment: assignment.batch == 0,  # the first, so that the round is drawn again
    ],
    ids=["nothing", "second batch", "first batch"],
)
def test_lost_batches_do_not_bias_the_estimate(lost: Callable[[Assignment], bool]) -> None:
    values = estimates(lost)
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - 0.5) < 4 * error


def test_a_candidate_that_always_breaks_down_is_not_asked_for_ever() -> None:
    selector = Selector(Pool(TASKS), protocol="adaptive", fraction=0.2)
    selector.tell_full("0", truth(0))
    asked = 0
    for name in ("2", "broken", "3"):
        assignments = selector.ask([name])
        while assignments:
            for assignment in assignments:
                scores = truth(2)
                broken = assignment.candidate == "broken"
                asked += broken * len(assignment.tasks)
                selector.tell(
                    assignment,
                    {
                        t: Missing("crash", shared=True) if broken else scores[t]
                        for t in assignment.tasks
                    },
                )
            assignments = selector.ask() or selector.ask(final=name == "3")
    assert asked == 2 * 4  # a first look, and the same again


def test_scoring_a_candidate_in_full_ends_the_wait_for_it() -> None:
    selector = Selector(Pool(TASKS), protocol="adaptive", fraction=0.2)
    selector.tell_full("0", truth(0))
    (first,) = selector.ask(["2"])
    selector.tell(first, dict.fromkeys(first.tasks, Missing("crash", shared=True)))
    assert selector.ask()  # drawn again
    selector.tell_full("2", truth(2))
    assert selector.outstanding() == []
    (other,) = selector.ask(["3"])
    selector.tell(other, {task: truth(3)[task] for task in other.tasks})
    assert selector.ask(final=True)


def test_further_draws_are_recorded_with_the_past_of_the_first() -> None:
    """Anchors are those of the start alone, although another candidate was told in between."""
    selector = Selector(Pool(TASKS), protocol=TWICE, fraction=0.2, draw_per="candidate")
    selector.tell_full("0", truth(0))
    firsts = selector.ask(["2", "3"])
    for assignment in firsts:
        scores = truth(int(assignment.candidate))
        selector.tell(assignment, {task: scores[task] for task in assignment.tasks})
    further = selector.ask()
    for assignment in further:
        (design,) = assignment.designs
        assert design.anchors.tolist() == [truth(0)[task] for task in assignment.tasks]
        assert design.anticipation is None
    assert len({assignment.designs[0].seed for assignment in (*firsts, *further)}) == 4


def test_batches_together_have_no_anticipated_variance() -> None:
    selector = Selector(Pool(TASKS), protocol=TWICE, fraction=0.2)
    selector.tell_full("0", truth(0))
    (first,) = selector.ask(["2"])
    told(selector, truth(2))
    (second,) = selector.ask()
    told(selector, truth(2))
    everything, scores = np.arange(len(TASKS)), np.array(list(truth(2).values()))
    alone = drawn_samples([first.designs], everything, scores)[0]
    both = drawn_samples([first.designs, second.designs], everything, scores)[0]
    assert alone.anticipation is not None
    assert (both.anticipation, len(both.scores), both.drawn) == (None, 8, 8)


def test_an_open_further_batch_is_noted() -> None:
    selector = Selector(Pool(TASKS), protocol=TWICE, fraction=0.2)
    selector.tell_full("0", truth(0))
    selector.ask(["2"])
    told(selector, truth(2))
    selector.ask()
    assert "4 more trials are asked for and not told yet" in selector.estimate("2").note


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubbish:
    """Weights, an allocation or a model that returns what it is told to."""

    what: str = ""
    needs_model: ClassVar[bool] = False
    needs_history: ClassVar[bool] = False
    window: ClassVar[int | None] = None

    def value(self) -> Any:
        return eval(self.what, {"np": np, "Request": Request, "nan": np.nan})

    def __call__(self, view: TaskView) -> Any:
        return self.value()

    def at(self, fraction: float) -> Self:
        return self

    def sizes(self, pool: Pool, weights: Floats) -> Any:
        return self.value()


@dataclass(frozen=True, slots=True, kw_only=True)
class RubbishRequests(Twice):
    what: str = ""

    def further(self, view: SearchView) -> Any:
        return eval(self.what, {"Request": Request})


@pytest.mark.parametrize(
    "what", ["np.ones(3)", "np.full(40, nan)", "-np.ones(40)", "np.zeros(40)", "None"]
)
def test_weights_that_are_none_are_refused(what: str) -> None:
    rule = replace(TWICE, weighting=Rubbish(what=what), allocation=Share())
    with pytest.raises(InputError, match="must give each of the 40 tasks a positive weight"):
        Selector(Pool(TASKS), protocol=replace(rule, estimator=HorvitzThompson())).ask(["c"])


@pytest.mark.parametrize("what", ["()", "(3, 3)", "(0,)", "(41,)", "(2.5,)", "('2',)", "(None,)"])
def test_sizes_that_do_not_fit_are_refused(what: str) -> None:
    rule = replace(TWICE, allocation=Rubbish(what=what), estimator=HorvitzThompson())
    with pytest.raises(InputError, match=r"must draw from 1 to \[40\] tasks"):
        Selector(Pool(TASKS), protocol=rule).ask(["c"])


@pytest.mark.parametrize(
    "what",
    [
        "[3]",
        "['ab']",
        "[Request(0, (1, 1))]",
        "[Request(0, (-1,))]",
        "[Request(0, (1.5,))]",
        "[Request(0.0, (1,))]",
        "[Request(-1, (1,))]",
        "[Request(0, None)]",
        "[Request(0, (1,)), Request(0, (1,))]",
    ],
)
def test_requests_that_make_no_sense_are_refused(what: str) -> None:
    rule = replace(TWICE, allocation=RubbishRequests(what=what))
    selector = Selector(Pool(TASKS), protocol=rule)
    selector.tell_full("0", truth(0))
    selector.ask(["2"])
    told(selector, truth(2))
    before = selector.events
    with pytest.raises(InputError, match="RubbishRequests"):
        selector.ask()
    assert selector.events == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"scores": np.full(1, np.nan)},
        {"scores": np.zeros(7)},
        {"covariance": -np.eye(1)},
        {"newcomer": np.zeros(3)},
        {"wide": np.eye(1)},
    ],
)
def test_a_model_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    class Wrong(Joint):
        def fit(self, cells: Cells, start: Posterior | None) -> Posterior:
            return replace(Joint.fit(self, cells, start), **wrong)

    selector = Selector(Pool(TASKS), protocol=replace(protocol("adaptive"), estimator=Wrong()))
    selector.tell_full("0", truth(0))
    with pytest.raises(InputError, match="must give"):
        selector.ask(["2"])


@pytest.mark.parametrize("wrong", [np.full((1, 1), np.nan), np.zeros(3), -np.eye(1)])
def test_intervals_that_make_no_sense_are_refused_when_they_are_read(wrong: Floats) -> None:
    class Wrong(Joint):
        def fit(self, cells: Cells, start: Posterior | None) -> Posterior:
            return replace(Joint.fit(self, cells, start), wide=Deferred(lambda: wrong))

    selector = Selector(Pool(TASKS), protocol=replace(protocol("joint"), estimator=Wrong()))
    selector.observe("0", {TASKS[0]: 1.0})
    with pytest.raises(InputError, match=r"Wrong.* must give"):
        selector.estimate("0")


def test_parts_that_look_at_a_model_need_one() -> None:
    with pytest.raises(InputError, match=r"draws by a joint model; use one as the estimator"):
        replace(protocol("adaptive"), estimator=Difference())
