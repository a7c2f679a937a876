"""Loops of other programs: threads, asking again, dead candidates, looks without a barrier."""

import copy
import json
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Barrier

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevolve import Assignment, Estimate, Missing, Outcome, Pool, Selector, protocols
from coevolve.errors import ChangedOutcomeError, NoOutcomeError
from tests.effort import effort

from .strategies import TASKS, answer, scores, started

THREADS = 8
PROTOCOLS = tuple(known.name for known in protocols())


def estimates(selector: Selector) -> dict[str, Estimate | None]:
    found: dict[str, Estimate | None] = {}
    for name in (*selector.starts, *selector.candidates):
        try:
            found[name] = selector.estimate(name)
        except NoOutcomeError:
            found[name] = None
    return found


def at_once(act: Callable[[int], object]) -> None:
    """Run an act in several threads that start together; raise what any of them raised."""
    gate = Barrier(THREADS)

    def begin(thread: int) -> None:
        gate.wait()
        act(thread)

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(begin, range(THREADS)))


def assert_restorable(selector: Selector) -> None:
    restored = Selector.from_events(json.loads(json.dumps(selector.events)))
    assert restored.events == selector.events
    assert estimates(restored) == estimates(selector)
    assert [a.tasks for a in restored.outstanding()] == [a.tasks for a in selector.outstanding()]


@pytest.mark.parametrize("name", ["task-coevolve", "joint", "adaptive", "naive"])
def test_threads_may_ask_tell_and_estimate_at_once(name: str) -> None:
    selector = started(name, fraction=0.3)

    def work(thread: int) -> None:
        for number in range(effort(2, 8)):
            candidate = f"c{thread}-{number}"
            assignments = selector.ask([candidate])
            for assignment in assignments:
                for task in assignment.tasks:
                    selector.tell(assignment, scores(thread, (task,)))
            selector.estimate(candidate)
            for more in selector.ask(candidates=[candidate]):
                answer(selector, more, seed=thread)
            selector.best()

    at_once(work)
    assert len(selector.candidates) == THREADS * effort(2, 8)
    assert selector.outstanding() == []
    assert_restorable(selector)


ACTS = ("ask", "again", "tell", "part", "withdraw", "more", "estimate", "best", "full")


@given(
    st.sampled_from(PROTOCOLS),
    st.lists(st.lists(st.sampled_from(ACTS), max_size=6), min_size=THREADS, max_size=THREADS),
)
@settings(max_examples=effort(8, 100), deadline=None)
def test_whatever_threads_do_the_events_restore(name: str, scripts: list[list[str]]) -> None:
    selector, numbers = started(name, fraction=0.3), count()

    def act(what: str, thread: int) -> None:
        mine = [a for a in selector.outstanding() if a.candidate.startswith(f"{thread}-")]
        if what == "ask":
            selector.ask([f"{thread}-{next(numbers)}"])
        elif what == "again":
            assert {a.tasks for a in mine} >= {
                a.tasks for own in mine for a in selector.ask([own.candidate])
            }
        elif what == "more":
            selector.ask(candidates=selector.candidates)
        elif what == "estimate":
            estimates(selector)
        elif what == "best" and any(estimates(selector)[n] for n in selector.candidates):
            selector.best()
        for assignment in mine:
            if what == "tell":
                answer(selector, assignment, seed=thread)
            elif what == "part":
                selector.tell(assignment, scores(thread, assignment.tasks[:1]))
            elif what == "withdraw":
                selector.withdraw(assignment, "died", shared=bool(thread % 2))
            elif what == "full":
                selector.tell_full(assignment.candidate, scores(thread))

    def work(thread: int) -> None:
        for what in scripts[thread]:
            try:
                act(what, thread)
            except NoOutcomeError:
                assert what == "best"  # another thread's candidate changed meanwhile

    at_once(work)
    assert_restorable(selector)


def test_results_that_are_still_being_made_may_use_the_selector() -> None:
    selector = started()
    (assignment,) = selector.ask(["c"])
    with ThreadPoolExecutor(1) as other:

        def run(task: str) -> Outcome:
            assert other.submit(lambda: selector.candidates).result(timeout=30) == ("c",)
            return Outcome(candidate="c", task=task, score=1.0)

        selector.tell(assignment, (run(task) for task in assignment.tasks))
    assert selector.outstanding() == []


def test_selectors_can_still_be_copied() -> None:
    selector = started()
    answer(selector, selector.ask(["c"])[0])
    for twin in (copy.deepcopy(selector), pickle.loads(pickle.dumps(selector))):
        assert twin.events == selector.events
        assert twin.ask(["d"])[0].tasks == copy.deepcopy(selector).ask(["d"])[0].tasks


def test_asking_again_returns_the_open_assignments_and_records_nothing() -> None:
    selector = started()
    first = selector.ask(["a", "b"])
    events = selector.events
    assert selector.ask(["a", "b"]) == first
    assert selector.ask(["b"]) == first[1:]
    assert selector.plan(["a"]) == []
    answer(selector, first[0])
    assert selector.ask(["a", "b"]) == first[1:]
    assert len(selector.events) == len(events) + 1
    assert selector.ask(["a"]) == []
    known, new = selector.ask(["b", "c"])
    assert (known, new.candidate, new.round) == (first[1], "c", 2)
    assert selector.ask(["c", "b"]) == [new, known]


def test_a_restored_selector_returns_equal_assignments() -> None:
    selector = started()
    first = selector.ask(["a", "b"])
    restored = Selector.from_events(json.loads(json.dumps(selector.events)))
    assert restored.ask(["a", "b"]) == restored.outstanding() == first
    assert set(restored.outstanding()) == set(pickle.loads(pickle.dumps(first)))
    assert first[0] != first[1]
    assert first[0] != started(seed=99).ask(["a", "b"])[0]


def test_asking_again_returns_an_open_further_look() -> None:
    selector = started("adaptive", fraction=0.4)
    (first,) = selector.ask(["a"])
    answer(selector, first)
    (more,) = selector.ask(final=True)
    assert selector.ask(["a"]) == [more]


def test_a_further_look_does_not_wait_for_others() -> None:
    selector = started("adaptive", fraction=0.8)
    (slow,) = selector.ask(["slow"])
    (quick,) = selector.ask(["quick"])
    answer(selector, quick)
    assert selector.ask() == []  # waits for all
    assert selector.ask(candidates=["slow"]) == []  # is out itself
    (more,) = selector.ask(candidates=["quick", "slow"])
    assert (more.candidate, more.batch) == ("quick", 1)
    assert not set(more.tasks) & set(quick.tasks)
    assert selector.ask(candidates=["quick"]) == []
    answer(selector, more)
    answer(selector, slow)
    assert_restorable(selector)


def test_a_candidate_that_is_no_contender_gets_no_further_look() -> None:
    selector = Selector(Pool(TASKS), protocol="adaptive", fraction=0.5)
    selector.tell_full("start", scores(1))
    for rank, name in enumerate(["good", "fair", "bad"]):
        (assignment,) = selector.ask([name])
        selector.tell(assignment, dict.fromkeys(assignment.tasks, 1.0 - rank / 2))
    assert selector.ask(candidates=["bad"]) == []
    assert [a.candidate for a in selector.ask(candidates=["good", "bad"])] == ["good"]


def test_one_lost_draw_is_repeated_while_another_round_is_out() -> None:
    selector = started(fraction=0.5)
    (lost,) = selector.ask(["lost"])
    selector.ask(["slow"])
    selector.tell(lost, dict.fromkeys(lost.tasks, Missing("no network", shared=True)))
    (again,) = selector.ask(candidates=["lost"])
    assert (again.candidate, again.batch, again.trials) == ("lost", 1, (1,))
    assert selector.ask(candidates=["lost"]) == []


def test_candidates_of_a_round_may_get_their_second_draws_one_by_one() -> None:
    selector = started(fraction=0.5)
    for assignment in selector.ask(["a", "b"]):
        selector.tell(assignment, dict.fromkeys(assignment.tasks, Missing("x", shared=True)))
    assert [a.candidate for a in selector.ask(candidates=["b"])] == ["b"]
    assert [a.candidate for a in selector.ask()] == ["a"]
    assert selector.ask() == []


def test_a_withdrawn_candidate_is_out_of_the_way() -> None:
    selector = started("adaptive", fraction=0.4)
    (dead,) = selector.ask(["dead"])
    (alive,) = selector.ask(["alive"])
    answer(selector, alive)
    selector.withdraw(dead, "its process was killed", shared=True)
    assert selector.outstanding() == []
    assert {a.candidate for a in selector.ask(final=True)} == {"alive"}
    with pytest.raises(NoOutcomeError, match="candidate 'dead': no score"):
        selector.estimate("dead")
    choice = selector.best()
    assert (choice.candidate, choice.left_out) == ("alive", ("dead",))
    assert_restorable(selector)


def test_withdrawing_again_or_after_the_end_changes_no_estimate() -> None:
    selector = started()
    (assignment,) = selector.ask(["c"])
    answer(selector, assignment)
    before = selector.estimate("c").value
    selector.withdraw(assignment, "died")
    events = selector.events
    selector.withdraw(assignment, "died again")
    assert selector.events == events
    assert selector.estimate("c").value == before
    assert selector.evaluations == len(assignment.tasks)


def test_a_late_outcome_of_a_withdrawn_trial_is_refused() -> None:
    selector = started()
    (assignment,) = selector.ask(["c"])
    selector.withdraw(assignment, "lost the worker", shared=True)
    with pytest.raises(ChangedOutcomeError, match="recorded as 'lost the worker'"):
        answer(selector, assignment)
    assert selector.ask(["c"]) == []
    selector.tell_full("c", scores(9))
    assert selector.estimate("c").exact


def test_what_a_withdrawn_candidate_lost_does_not_excuse_others() -> None:
    """`dead` lost everything; without it, `c` lost more than the starts and pays for that."""

    def estimate(dead: bool) -> Estimate:
        selector = Selector(Pool(TASKS), protocol="random-resample", fraction=0.5)
        selector.tell_full("start", scores(1))
        first, *others = selector.ask(["c", "dead"] if dead else ["c"])
        results: dict[str, float | Missing] = dict.fromkeys(first.tasks, 1.0)
        selector.tell(first, results | {first.tasks[0]: Missing("crash")})
        for other in others:
            selector.withdraw(other, "crash")
        return selector.estimate("c")

    assert estimate(dead=True) == estimate(dead=False)
    assert estimate(dead=True).value == 0.9


def withdrawn_halfway(selector: Selector, assignment: Assignment, shared: bool) -> Estimate:
    half = assignment.tasks[: len(assignment.tasks) // 2]
    order = np.random.default_rng(selector.events[0]["seed"]).permutation(assignment.tasks)
    truth = scores(9)
    selector.tell(assignment, {str(task): truth[str(task)] for task in order[: len(half)]})
    selector.withdraw(assignment, "the machine is gone", shared=shared)
    return selector.estimate(assignment.candidate)


def test_a_part_of_a_draw_still_gives_an_unbiased_estimate() -> None:
    """Mean over 400 draws within four standard errors; half of each draw was told, at random."""
    values, siblings = [], []
    for seed in range(effort(400, 2_000)):
        selector = started(fraction=0.5, seed=seed)
        dead, sibling = selector.ask(["dead", "sibling"])
        values.append(withdrawn_halfway(selector, dead, shared=True).value)
        answer(selector, sibling, seed=5)
        siblings.append(selector.estimate("sibling").value)
    for found, seed in ((values, 9), (siblings, 5)):
        error = np.std(found) / np.sqrt(len(found))
        assert abs(np.mean(found) - np.mean(list(scores(seed).values()))) < 4 * error


def test_dying_does_not_pay() -> None:
    """Without an explanation, the trials that were withdrawn count as failed."""
    selector = started("random-resample", fraction=0.5)
    (assignment,) = selector.ask(["c"])
    selector.tell(assignment, dict.fromkeys(assignment.tasks[:5], 1.0))
    selector.withdraw(assignment, "crash")
    estimate = selector.estimate("c")
    assert estimate.value == 0.5
    assert "5 trials without a score count as failed" in estimate.note
    assert "withdrawn: crash" in estimate.note


@pytest.mark.parametrize("shared", [False, True])
def test_a_full_set_with_failed_trials_does_not_claim_to_be_exact(shared: bool) -> None:
    selector = started("task-coevolve", fraction=0.5)
    (assignment,) = selector.ask(["c"])
    selector.tell(assignment, dict.fromkeys(assignment.tasks[:5], 1.0))
    selector.withdraw(assignment, "crash", shared=shared)
    selector.tell_full("c", dict.fromkeys(selector.pool.tasks, 1.0))
    estimate = selector.estimate("c")
    assert estimate.exact == shared
    if shared:  # the lost trials left the sample, and every task has a score
        assert (estimate.value, estimate.se, estimate.low) == (1.0, 0.0, 1.0)
    else:  # their scores are unknown, and they count as failed beside those told later
        assert estimate.value < 1.0
        assert (estimate.se, estimate.low, estimate.high) == (None, None, None)
        assert "5 trials without a score count as failed" in estimate.note
        assert str(estimate).startswith(f"{estimate.value:.3f} ± ? (")
        assert selector.compare("c", "start-a").se is None


def test_tasks_that_were_withdrawn_are_not_spent() -> None:
    def looks(dead: bool) -> int:
        selector = started("adaptive", fraction=0.4)
        for name in ("a", "b"):
            (assignment,) = selector.ask([name])
            if dead and name == "b":
                selector.withdraw(assignment, "died", shared=True)
            else:
                answer(selector, assignment, seed=3)
        while more := selector.ask(final=True):
            for assignment in more:
                answer(selector, assignment, seed=3)
        return selector.evaluations

    assert looks(dead=True) == looks(dead=False) == 16
