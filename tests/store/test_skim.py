"""A fold passes over what a later event sums up, and over nothing else."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coevolve.core.events import Event, sealed
from coevolve.store import RunStore
from coevolve.store.event_file import Skimmer, has_type, parsed
from tests.effort import effort

TYPES = st.sampled_from(["outcome", "failed", "told", "noted"])
TEXTS = st.text('",:{}[]\\aé\ud800', max_size=6) | st.sampled_from(
    ["outcome", "told", ',"type":"told"', '{"type":"failed"}', '"type":"outcome"', "}"]
)
# Around "type" in the order of keys, and "type" itself further down.
KEYS = st.sampled_from(["a", "candidate", "task", "typ", "types", "usage", "why", "}"]) | TEXTS
INNER = st.recursive(
    st.none() | st.integers(0, 9) | TEXTS | TYPES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(KEYS | st.just("type"), inner, max_size=3)
        | st.fixed_dictionaries({"type": TYPES | inner}, optional={"usage": inner})
    ),
    max_leaves=6,
)
RESERVED = {"seq", "type", "seal", "at", "clock"}
BODIES = st.dictionaries(KEYS.filter(lambda key: key not in RESERVED), INNER, max_size=4)
EVENTS = st.lists(st.tuples(TYPES, BODIES), max_size=12)


def standing(events: list[Event]) -> list[Event]:
    """Some events without the outcomes before the next told."""
    told = max((event["seq"] for event in events if event["type"] == "told"), default=-1)
    return [e for e in events if e["type"] not in ("outcome", "failed") or e["seq"] > told]


@settings(max_examples=effort(10, 40), deadline=None)
@given(events=EVENTS)
@example(events=[("opened", {"config": {"filter": {"type": "failed"}}}), ("told", {})])
@example(events=[("outcome", {}), ("noted", {"z": {"a": 1, "type": "told"}})])
@example(events=[("outcome", {"usage": [1, 0]}), ("noted", {"usage": ',"type":"told"'})])
def test_only_outcomes_before_the_next_told_are_left_out(
    tmp_path_factory: pytest.TempPathFactory, events: list[tuple[str, dict[str, Any]]]
) -> None:
    with RunStore.create(tmp_path_factory.mktemp("run")) as run:
        run.append(events)
        for until in (None, len(events) // 2):
            skimmed = sorted(run.skim(until), key=lambda event: event["seq"])
            assert skimmed == standing(list(run.events(until=until)))


@settings(max_examples=effort(75, 300), deadline=None)
@given(kind=TYPES | TEXTS | st.sampled_from(['told"', "outcomes"]), body=BODIES)
def test_the_type_of_a_line_is_that_of_its_event(kind: str, body: dict[str, Any]) -> None:
    line = sealed(3, kind, body, "").text.encode()
    for known in ("outcome", "failed", "told"):
        assert has_type(line, (b"other", f'{known}"'.encode())) == (kind == known)


@settings(max_examples=effort(25, 100), deadline=None)
@given(events=EVENTS, most=st.integers(0, 4), chunk=st.integers(1, 5))
def test_too_many_to_hold_back_are_given_and_none_is_lost(
    events: list[tuple[str, dict[str, Any]]], most: int, chunk: int
) -> None:
    lines = [sealed(n, kind, body, "").text.encode() for n, (kind, body) in enumerate(events)]
    skimmer = Skimmer(most)
    given = []
    for start in range(0, len(lines), chunk):
        given += skimmer.kept(lines[start : start + chunk])
        assert len(skimmer.held) <= most
    given += skimmer.held
    assert len(given) == len(set(given))
    assert set(given) <= set(lines)
    # Whatever a told does not sum up is there; what it does may be there too.
    assert {line["seal"] for line in standing(parsed(lines))} <= {
        line["seal"] for line in parsed(given)
    }
