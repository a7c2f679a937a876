"""Usage is read from each agent's output, and garbage is never an error."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevolve.proposers.command.usage_meters import (
    ClaudeMeter,
    CodexMeter,
    GeminiMeter,
    Meter,
    OpenCodeMeter,
    TrajectoryMeter,
    UsageFile,
)

from . import samples

METERS: list[Callable[[], Meter]] = [
    ClaudeMeter,
    CodexMeter,
    GeminiMeter,
    OpenCodeMeter,
    TrajectoryMeter,
    UsageFile,
]
STREAMS = [
    (ClaudeMeter, samples.CLAUDE),
    (CodexMeter, samples.CODEX),
    (GeminiMeter, samples.GEMINI),
    (OpenCodeMeter, samples.OPENCODE),
]


def after(meter: Meter, stream: str) -> tuple[int | None, int | None, float | None]:
    for line in stream.splitlines():
        meter.line(line)
    return meter.tokens_in, meter.tokens_out, meter.dollars


@pytest.mark.parametrize(
    ("make", "stream", "used"),
    [
        # Tokens of the provider's cache and of hidden reasoning are counted.
        (ClaudeMeter, samples.CLAUDE, (300, 80, 0.001306)),
        (CodexMeter, samples.CODEX, (200, 80, None)),
        (GeminiMeter, samples.GEMINI, (200, 94, None)),
        (OpenCodeMeter, samples.OPENCODE, (200, 80, pytest.approx(0.0003))),
    ],
)
def test_the_whole_stream_says_what_was_used(
    make: Callable[[], Meter], stream: str, used: tuple[int, int, float | None]
) -> None:
    meter = make()
    assert after(meter, stream) == used
    assert meter.error == ""


@pytest.mark.parametrize(
    ("make", "stream", "used"),
    [
        # Each message counts once, however many events it comes in.
        (ClaudeMeter, samples.CLAUDE_WORK, (300, 2, None)),
        (OpenCodeMeter, samples.OPENCODE_WORK, (100, 40, 0.00015)),
        (CodexMeter, samples.CODEX_WORK, (None, None, None)),
        (GeminiMeter, samples.GEMINI_WORK, (None, None, None)),
    ],
)
def test_a_stream_that_was_cut_says_what_was_used_so_far(
    make: Callable[[], Meter], stream: str, used: tuple[int | None, int | None, float | None]
) -> None:
    assert after(make(), stream) == used


def test_errors_are_the_agent_s_own_words() -> None:
    claude, codex = ClaudeMeter(), CodexMeter()
    after(claude, samples.CLAUDE_REFUSED)
    after(codex, samples.CODEX_FAILED)
    assert claude.error == "Invalid API key · Please run /login"
    assert codex.error == "unexpected status 401 Unauthorized"


def test_an_older_claude_has_its_usage_in_the_result() -> None:
    result = json.loads(samples.CLAUDE_RESULT)
    del result["modelUsage"]
    assert after(ClaudeMeter(), json.dumps(result)) == (300, 80, 0.001306)


def test_models_beside_the_main_one_count() -> None:
    result = json.loads(samples.CLAUDE_RESULT)
    result["modelUsage"]["claude-haiku"] = {"inputTokens": 7, "outputTokens": 3}
    assert after(ClaudeMeter(), json.dumps(result))[:2] == (307, 83)


def test_a_trajectory_states_usage_and_a_price_of_zero_is_unknown() -> None:
    meter, priced = TrajectoryMeter(), TrajectoryMeter()
    meter.report(samples.trajectory())
    priced.report(samples.trajectory(cost=0.25))
    assert (meter.tokens_in, meter.tokens_out, meter.dollars) == (200, 80, None)
    assert priced.dollars == 0.25


def test_many_messages_take_limited_memory() -> None:
    meter = ClaudeMeter()
    for number in range(5_000):
        name = f"{number}-" + "x" * 10_000
        message = {"id": name, "usage": {"input_tokens": 2, "output_tokens": 1}}
        for _ in range(2):
            meter.event({"type": "assistant", "message": message})
    assert (meter.tokens_in, meter.tokens_out) == (10_000, 5_000)
    assert sum(map(len, meter._messages)) < 1_000_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)
NAMES = st.sampled_from(
    [
        *("type", "message", "usage", "id", "part", "tokens", "cache", "stats", "modelUsage"),
        *("error", "input_tokens", "output_tokens", "cost", "total_cost_usd", "info"),
        *("messages", "extra"),
    ]
)
KINDS = st.sampled_from(
    ["assistant", "result", "turn.completed", "turn.failed", "error", "step_finish"]
)
EVENTS = st.builds(
    lambda kind, rest: {**rest, "type": kind},
    KINDS,
    st.dictionaries(NAMES, st.dictionaries(NAMES, JSON, max_size=3) | JSON, max_size=5),
)


@given(st.lists(EVENTS, max_size=5))
def test_no_event_is_an_error(events: list[dict[str, object]]) -> None:
    for make in METERS:
        meter = make()
        for event in events:
            meter.line(json.dumps(event))
        meter.report(events)
        meter.report(events[0] if events else None)
        assert meter.tokens_in is None or meter.tokens_in >= 0
        assert isinstance(meter.error, str)


@pytest.mark.parametrize(("make", "stream"), STREAMS)
@given(data=st.data())
def test_a_garbled_stream_is_not_an_error(
    make: Callable[[], Meter], stream: str, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(stream)))
    rubbish = data.draw(st.text(max_size=20))
    after(make(), stream[:cut] + rubbish + stream[cut + 3 :])


def test_deep_and_huge_json_is_not_an_error() -> None:
    for make in METERS:
        meter = make()
        meter.line('{"a":' * 100_000)
        meter.line('{"type": "result", "total_cost_usd": ' + "9" * 10_000 + "}")
        assert meter.silent
