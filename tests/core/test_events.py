"""Damaged, truncated and reordered streams, and going on bit for bit."""

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevolve import Missing, Pool, SearchProtocol, Selector
from coevolve.core.arrays import Floats
from coevolve.core.events import sealed
from coevolve.core.weights import TaskView
from coevolve.errors import EventError

from .strategies import TASKS, answer, scores, started


def steps() -> Iterator[Selector]:
    """A selector after each of its events, Phase 0 first."""
    selector = started(seed=3, fraction=0.3)
    yield selector
    for round in range(3):
        assignments = selector.ask([f"c{round}", f"d{round}"])
        yield selector
        for assignment in assignments:
            answer(selector, assignment, seed=round)
            yield selector
    (assignment,) = selector.ask(["last"])
    yield selector
    selector.tell(assignment, {assignment.tasks[0]: Missing("time-out")})
    yield selector
    selector.tell(assignment, {assignment.tasks[1]: 0.3})
    yield selector


def finished() -> Selector:
    *_, last = steps()
    return last


def moment(selector: Selector) -> Any:
    """What a selector knows, but for its events."""
    waiting = [(a.candidate, a.tasks, a.probabilities) for a in selector.outstanding()]
    history = selector.history()
    known = selector.starts, selector.candidates, selector.evaluations, waiting
    return known, history.mean.tobytes(), history.count.tolist()


EVENTS = json.loads(json.dumps(finished().events))


def resealed(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same events with seals that fit, as a forger would make them."""
    result: list[dict[str, Any]] = []
    for seq, event in enumerate(events):
        body = {k: v for k, v in event.items() if k not in ("seq", "type", "seal")}
        before = result[-1]["seal"] if result else ""
        result.append(sealed(seq, event["type"], body, before).event)
    return result


def test_events_are_plain_json() -> None:
    assert list(finished().events) == EVENTS


def test_every_prefix_restores_to_that_moment() -> None:
    lengths = []
    for selector in steps():
        lengths.append(len(selector.events))
        restored = Selector.from_events(EVENTS[: lengths[-1]])
        assert moment(restored) == moment(selector)
    assert lengths == list(range(3, len(EVENTS) + 1))


def test_a_restored_selector_continues_bit_for_bit() -> None:
    original, restored = finished(), Selector.from_events(EVENTS)
    assert restored.best() == original.best()
    assert restored.best().confidence == original.best().confidence
    for selector in (original, restored):
        (open_one,) = selector.outstanding()
        selector.tell(open_one, scores(4, open_one.tasks[2:]))
        for assignment in selector.ask(["x", "y"]):
            answer(selector, assignment, seed=8)
    assert restored.events == original.events
    names = (*original.starts, *original.candidates)
    assert [restored.estimate(n) for n in names] == [original.estimate(n) for n in names]
    assert restored.history().mean.tobytes() == original.history().mean.tobytes()


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to everything in a JSON value that is neither list nor object."""
    if isinstance(value, dict):
        return [leaf for key in value for leaf in leaves(value[key], (*path, key))]
    if isinstance(value, list):
        return [leaf for i, item in enumerate(value) for leaf in leaves(item, (*path, i))]
    return [path]


LEAVES = leaves(EVENTS)


def changed(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return 1
    if isinstance(value, int | float):
        return value + 1
    return value + "x"


@given(st.sampled_from(LEAVES))
def test_any_changed_value_is_noticed(path: tuple[Any, ...]) -> None:
    events = copy.deepcopy(EVENTS)
    place = events
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = changed(place[path[-1]])
    with pytest.raises(EventError, match=f"event {path[0]}|number"):
        Selector.from_events(events)


@given(st.permutations(range(len(EVENTS))))
def test_any_other_order_is_noticed(order: list[int]) -> None:
    if order == list(range(len(EVENTS))):
        return
    with pytest.raises(EventError, match="missing or out of order"):
        Selector.from_events(EVENTS[i] for i in order)


@given(st.integers(0, len(EVENTS) - 2))
def test_a_lost_event_is_noticed(lost: int) -> None:
    with pytest.raises(EventError, match=f"event {lost} has number {lost + 1}"):
        Selector.from_events(EVENTS[:lost] + EVENTS[lost + 1 :])


def forged(edit: Callable[[list[dict[str, Any]]], object]) -> list[dict[str, Any]]:
    events = copy.deepcopy(EVENTS)
    edit(events)
    return resealed(events)


FORGED: dict[str, tuple[Callable[[list[dict[str, Any]]], object], str]] = {
    "no opening": (lambda e: e.pop(0), "first event must be 'opened', got 'told_full'"),
    "another schema": (lambda e: e[0].update(schema=1), "schema 1; this version reads schema 2"),
    "unknown type": (lambda e: e[1].update(type="drank"), "'drank'.*its type is unknown"),
    "unknown task": (lambda e: e[4].update(tasks=["t99"] * 6), "not asked"),
    "task not asked": (lambda e: e[4]["tasks"].__setitem__(0, "t00x"), "not asked"),
    "a field lost": (lambda e: e[3].pop("draws"), "event 3 .*'draws'"),
    "a field of another type": (lambda e: e[1].update(scores=3), "event 1"),
    "rounds skipped": (lambda e: e[3].update(round=2), "round 2 cannot follow round 0"),
    "told before drawn": (lambda e: e[4].update(candidate="nobody"), "event 4"),
    "an unknown part": (
        lambda e: e[0]["protocol"]["weighting"].update(part="Magic"),
        "'Magic', which is not a built-in part",
    ),
    "a pool of nothing": (lambda e: e[0]["pool"].update(tasks=[]), "at least one task"),
}


@pytest.mark.parametrize(("edit", "message"), FORGED.values(), ids=FORGED.keys())
def test_well_sealed_nonsense_is_refused(
    edit: Callable[[list[dict[str, Any]]], object], message: str
) -> None:
    with pytest.raises(EventError, match=message):
        Selector.from_events(forged(edit))


@pytest.mark.parametrize("junk", [None, 3, "text", [], {}, {"seq": 0}])
def test_junk_is_refused(junk: Any) -> None:
    with pytest.raises(EventError, match="event 0 is not an event"):
        Selector.from_events([junk])


def test_nothing_is_refused() -> None:
    with pytest.raises(EventError, match="no events"):
        Selector.from_events([])


@dataclass(frozen=True)
class MostlyHard:
    """A weighting of a user's own."""

    edge: float = 0.5
    needs_history: ClassVar[bool] = True
    needs_model: ClassVar[bool] = False
    window: ClassVar[int | None] = None

    def __call__(self, view: TaskView) -> Floats:
        return np.where(view.history.anchors < self.edge, 2.0, 1.0)


def test_parts_of_ones_own_are_passed_again() -> None:
    mine = SearchProtocol(name="mine", weighting=MostlyHard())
    selector = Selector(Pool(TASKS), protocol=mine, fraction=0.35)
    selector.tell_full("s", scores(1))
    with pytest.raises(EventError, match="pass the protocol they were made with"):
        Selector.from_events(selector.events)
    restored = Selector.from_events(selector.events, protocol=mine)
    assert restored.ask(["c"])[0].tasks == selector.ask(["c"])[0].tasks


def test_an_event_of_another_kind_is_named_with_what_to_do() -> None:
    first, *_ = started(seed=3, fraction=0.3).events
    body = {key: value for key, value in first.items() if key not in ("seq", "type", "seal")}
    lacking = sealed(0, "opened", {k: v for k, v in body.items() if k != "seed"}, "")
    told = sealed(1, "told", {"candidate": "x"}, first["seal"])
    for events in ([lacking.event], [first, told.event]):
        with pytest.raises(
            EventError, match=r"is missing\. The events are not those of a sel"
        ) as e:
            Selector.from_events(events)
        assert "KeyError" not in str(e.value)
