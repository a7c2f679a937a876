"""What a candidate loses beyond others counts as failed: dropping a task never pays."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from coevolve import Missing, Outcome, Pool, Selector
from coevolve.core.events import sealed
from coevolve.core.missingness import Losses

TASKS = [f"t{i}" for i in range(12)]
LOST = Missing("429: slow down")


def selector(protocol: str = "full", **settings: object) -> Selector:
    made = Selector(Pool(TASKS), protocol=protocol, seed=3, **settings)  # type: ignore[arg-type]
    for name, solved in (("a", 5), ("b", 6)):
        made.tell_full(name, {task: float(i < solved) for i, task in enumerate(TASKS)})
    return made


def tell(made: Selector, knows: dict[str, int], rest: float | Missing) -> None:
    """A round of candidates that know the first tasks; the first one has `rest` on the others."""
    for number, assignment in enumerate(made.ask(list(knows))):
        known = TASKS[: knows[assignment.candidate]]
        other = rest if number == 0 else 0.0
        made.tell(assignment, {t: 1.0 if t in known else other for t in assignment.tasks})


@pytest.mark.parametrize(
    "protocol", ["full", "naive", "random-resample", "task-coevolve", "joint"]
)
def test_dropping_tasks_gives_the_estimate_of_failing_them(protocol: str) -> None:
    fraction = {} if protocol == "full" else {"fraction": 0.5}
    dropped, failed = selector(protocol, **fraction), selector(protocol, **fraction)
    tell(dropped, {"strategic": 4, "honest": 6}, LOST)
    tell(failed, {"strategic": 4, "honest": 6}, 0.0)
    value = failed.estimate("strategic").value
    assert dropped.estimate("strategic").value == pytest.approx(value, abs=1e-9)
    assert dropped.best().candidate == failed.best().candidate
    assert "without a score count as failed" in dropped.estimate("strategic").note
    assert LOST in dropped.scores("strategic").values()


def test_what_others_lost_too_is_missing() -> None:
    made = selector()
    for assignment in made.ask(["one", "two"]):
        scores = {t: 1.0 if i < 4 else 0.0 for i, t in enumerate(TASKS)}
        made.tell(assignment, {t: LOST if i % 2 else s for i, (t, s) in enumerate(scores.items())})
    estimate = made.estimate("one")
    assert estimate.tasks == 6
    assert estimate.value == pytest.approx(2 / 6)


def test_a_shared_loss_never_counts_as_failed() -> None:
    made = selector()
    tell(made, {"alone": 4}, Missing("the service is down", shared=True))
    assert made.estimate("alone").value == 1.0
    assert made.estimate("alone").tasks == 4


def test_a_starting_harness_is_not_suspected() -> None:
    made = Selector(Pool(TASKS), seed=3)
    made.tell_full("a", {t: LOST if i > 5 else 1.0 for i, t in enumerate(TASKS)})
    made.tell_full("b", dict.fromkeys(TASKS, 0.0))
    assert made.estimate("a").value == 1.0


def test_a_round_is_not_drawn_again_for_what_one_candidate_lost() -> None:
    made = selector("task-coevolve", fraction=0.5)
    tell(made, {"strategic": 0, "honest": 6}, LOST)
    assert made.ask() == []
    assert made.estimate("strategic").value <= 0.5


def test_events_of_earlier_versions_keep_their_missing_outcomes() -> None:
    made = selector()
    tell(made, {"alone": 4}, LOST)
    events = [dict(event) for event in made.events]
    assert len(events[-1].pop("unexplained")) == 8
    old = Selector.from_events(_resealed(events))
    assert old.estimate("alone").value == 1.0
    assert Selector.from_events(made.events).estimate("alone").value == pytest.approx(4 / 12)


def _resealed(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for seq, event in enumerate(events):
        body = {k: v for k, v in event.items() if k not in ("type", "seq", "seal")}
        before = found[-1]["seal"] if found else ""
        found.append(dict(sealed(seq, event["type"], body, before).event))
    return found


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3])
def test_dropping_costs_at_least_what_failing_costs_by_enumeration(rate: float) -> None:
    """Over all chance losses of 10 outcomes, as many zeros remain as of s honest failures."""
    size = 10
    for dropped in range(4):
        expected = 0.0
        for lost in product((0, 1), repeat=size - dropped):
            chance = rate ** sum(lost) * (1 - rate) ** (len(lost) - sum(lost))
            losses = Losses(seed=0)
            cells = [(i, 0) for i in range(sum(lost) + dropped)]
            losses.add("new", told=size, lost=cells)
            expected += chance * len(losses.failures("new", rate))
        assert expected >= dropped * (1 - rate) - 1e-9


def test_which_losses_count_is_a_random_part() -> None:
    counts = np.zeros(8)
    for seed in range(400):
        losses = Losses(seed=seed)
        losses.add("new", told=16, lost=[(i, 0) for i in range(8)])
        failed = losses.failures("new", 0.25)
        assert len(failed) == 4
        counts[[task for task, _ in failed]] += 1
    assert counts == pytest.approx(200, abs=50)  # five standard deviations


def test_outcomes_told_twice_are_counted_once() -> None:
    made = selector()
    (assignment,) = made.ask(["new"])
    rows = [Outcome(candidate="new", task=t, score=LOST) for t in TASKS[:6]]
    made.tell(assignment, rows)
    made.tell(assignment, [*rows, *(Outcome(candidate="new", task=t, score=1) for t in TASKS[6:])])
    assert made.estimate("new").value == pytest.approx(0.5)
