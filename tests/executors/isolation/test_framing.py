"""Messages from a candidate are JSON of allowed size and depth, or its fault."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevolve.errors import InputError
from coevolve.executors.isolation import HarnessFault
from coevolve.executors.isolation.framing import candidate_inbox, packed, unpacked
from coevolve.executors.isolation.runner import codec

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abü\0"), inner),
    max_leaves=20,
)


@given(st.lists(VALUES, min_size=1, max_size=4), st.integers(1, 50))
def test_messages_survive_any_cut(values: list[Any], size: int) -> None:
    stream = b"".join(packed({"value": value}) for value in values)
    inbox, seen = candidate_inbox(most=1_000_000), []
    for start in range(0, len(stream), size):
        inbox.feed(stream[start : start + size])
        while (message := inbox.take()) is not None:
            seen.append(message["value"])
    assert seen == values


@given(st.binary(max_size=300))
def test_any_bytes_give_a_message_or_a_fault(data: bytes) -> None:
    inbox = candidate_inbox(most=200)
    inbox.feed(data)
    try:
        while (message := inbox.take()) is not None:
            assert isinstance(message, dict)
    except HarnessFault as fault:
        assert fault.reason.isprintable()  # noqa: PT017


@given(VALUES)
def test_the_runner_writes_and_reads_the_same_json(value: Any) -> None:
    encode, decode = codec()
    assert json.loads(encode(value)) == value == decode(json.dumps(value))


def test_depth_is_limited_long_before_python_is() -> None:
    assert unpacked(b"[" * 100 + b"]" * 100)
    assert unpacked(b"[" + b"[]," * 1000 + b"{}]")
    for data in (b"[" * 300 + b"]" * 300, b'{"a":' * 300 + b"1" + b"}" * 300, b"[" * 100_000):
        with pytest.raises(HarnessFault):
            unpacked(data)


def test_mistakes_of_the_caller_are_not_faults_of_the_candidate() -> None:
    nest: list[Any] = []
    nest.append(nest)
    for value in (float("inf"), {1}, nest, "\ud800", b"bytes"):
        with pytest.raises(InputError, match="only JSON values"):
            packed(value)
