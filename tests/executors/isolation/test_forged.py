"""Candidates that write to the pipe themselves can change only their own answer."""

import resource
from dataclasses import replace

import pytest

from coevolve.executors.isolation import HarnessFault, Isolation

from .conftest import STRICT, Make

FORGER = """
import json, os, stat, time

def writers():
    for fd in range(3, 100):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.write(fd, b"")
                yield fd
        except OSError:
            pass

def frame(data):
    return len(data).to_bytes(4, "big") + data

def write(data):
    for fd in writers():
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view):]

def fine(value):
    return value

def forge(text, repeat=1, stay=True):
    for _ in range(repeat):
        write(frame(text.encode("latin-1")))
    if stay:
        time.sleep(1000)

def raw(data, repeat=1):
    for _ in range(repeat):
        write(bytes(data))
    time.sleep(1000)

def dribble():
    write((1000).to_bytes(4, "big"))
    while True:
        write(b" ")
        time.sleep(0.01)

def deaf():
    os.read = lambda *rest: time.sleep(1000)
    return 1
"""

MESSAGES = {
    "deep-nest": ("[" * 500_000, "not-json"),
    "deep-answer": ('{"id": 2, "answer": ' + "[" * 200_000 + "]" * 200_000 + "}", "not-json"),
    "too-deep": (
        '{"id": 2, "answer": ' + "[" * 300 + "]" * 300 + "}",
        "not-json",
    ),
    "nan": ('{"id": 2, "answer": NaN}', "not-json"),
    "infinity-by-size": ('{"id": 2, "answer": 1e999}', "not-json"),
    "huge-number": ('{"id": 2, "answer": ' + "9" * 100_000 + "}", "not-json"),
    "half-a-character": ('{"id": 2, "answer": "\\ud800"}', "not-json"),
    "no-utf8": ('{"id": 2, "answer": "\xff"}', "not-json"),
    "no-json": ("hello", "not-json"),
    "nothing": ("", "not-json"),
    "a-list": ("[1]", "protocol"),
    "an-empty-record": ("{}", "protocol"),
    "no-answer": ('{"id": 2}', "protocol"),
    "another-call": ('{"id": 1, "answer": 1}', "protocol"),
    "another-id": ('{"id": [[1]], "answer": 1}', "protocol"),
    "error-of-no-kind": ('{"id": 2, "error": 3}', "protocol"),
    "ask-of-a-wrong-type": ('{"ask": {}, "args": 1}', "protocol"),
    "ask-without-a-name": ('{"ask": null, "args": [], "kwargs": {}}', "protocol"),
    "ask-without-a-number": ('{"ask": "echo", "args": [], "kwargs": {}}', "protocol"),
    "ask-with-an-odd-number": (
        '{"ask": "echo", "number": true, "args": [], "kwargs": {}}',
        "protocol",
    ),
    "cancel-of-nothing": ('{"cancel": 1}', "protocol"),
    "cancel-without-a-number": ('{"cancel": {}}', "protocol"),
    "ready-again": ('{"ready": 1}', "protocol"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_forged_message_is_a_fault(name: str, isolation: Isolation, make: Make) -> None:
    text, kind = MESSAGES[name]
    harness = make(FORGER, isolation, replace(STRICT, seconds=30))
    assert harness.call("fine", 1) == 1
    with pytest.raises(HarnessFault) as caught:
        harness.call("forge", text)
    assert caught.value.kind == kind, caught.value
    assert harness.call("fine", 2) == 2


def test_a_forged_error_of_odd_parts_is_still_a_fault(isolation: Isolation, make: Make) -> None:
    harness = make(FORGER, isolation)
    with pytest.raises(HarnessFault) as caught:
        harness.call("forge", '{"id": 1, "error": {"type": [], "text": {}, "where": 1}}')
    assert caught.value.kind == "error"
    harness.close()
    assert harness.call("fine", 2) == 2


@pytest.mark.parametrize(
    ("header", "kind"), [(b"\xff\xff\xff\xff", "answer-limit"), (b"\0\0\0\x09half", "time-limit")]
)
def test_a_frame_that_never_ends_is_a_fault(
    header: bytes, kind: str, isolation: Isolation, make: Make
) -> None:
    harness = make(FORGER, isolation, replace(STRICT, seconds=1))
    with pytest.raises(HarnessFault) as caught:
        harness.call("raw", list(header))
    assert caught.value.kind == kind
    assert harness.call("fine", 2) == 2


def test_time_runs_out_while_bytes_dribble(isolation: Isolation, make: Make) -> None:
    harness = make(FORGER, isolation, replace(STRICT, seconds=1))
    with pytest.raises(HarnessFault, match="longer than 1 s"):
        harness.call("dribble")
    assert harness.call("fine", 2) == 2


def test_a_flood_of_requests_ends(isolation: Isolation, make: Make) -> None:
    harness = make(FORGER, isolation, replace(STRICT, seconds=30))
    ask = '{"ask": "echo", "number": 1, "args": ["' + "x" * 10_000 + '"], "kwargs": {}}'
    with pytest.raises(HarnessFault) as caught:
        harness.call("forge", ask, repeat=100_000, services={"echo": lambda text: text * 100})
    assert caught.value.kind in ("protocol", "ask-limit")
    assert harness.call("fine", 2) == 2


def test_a_flood_of_answers_costs_no_memory(isolation: Isolation, make: Make) -> None:
    harness = make(FORGER, isolation, replace(STRICT, seconds=30))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    message = '{"id": 1, "answer": "' + "x" * 500_000 + '"}'
    assert len(harness.call("forge", message, repeat=2000)) == 500_000
    with pytest.raises(HarnessFault) as caught:
        harness.call("fine", 2)
    assert caught.value.kind == "protocol"
    assert harness.call("fine", 3) == 3
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_an_answer_left_over_does_not_stand_for_the_next_call(
    isolation: Isolation, make: Make
) -> None:
    harness = make(FORGER, isolation)
    assert harness.call("forge", '{"id": 1, "answer": 5}', repeat=2, stay=False) == 5
    with pytest.raises(HarnessFault, match="a different call"):
        harness.call("fine", 1)
    assert harness.call("fine", 2) == 2


def test_a_candidate_that_does_not_read_cannot_block_its_host(
    isolation: Isolation, make: Make
) -> None:
    harness = make(FORGER, isolation, replace(STRICT, seconds=1, memory_mb=2000))
    assert harness.call("deaf") == 1
    with pytest.raises(HarnessFault, match="longer than 1 s"):
        harness.call("fine", "x" * 20_000_000)
    assert harness.call("fine", 2) == 2
