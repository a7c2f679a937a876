"""Every call in a file, and a file in the place of the model."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from coevolve.models.call_recording import Recorder, RecordError, ReplayProvider
from coevolve.models.gateway import Gateway
from coevolve.models.model_errors import ModelUnavailable, NotRecorded
from coevolve.models.model_spend import Prices
from coevolve.models.provider import ModelRequest, Sampling
from coevolve.models.rate_limits import Retrying
from coevolve.models.response_cache import ResponseCache
from tests.models.fakes import FakeProvider, asked, reply, served

PAYLOADS: list[dict[str, Any]] = [
    {"prompt": "Is water wet?"},
    {"prompt": "Is water wet?", "sample": 1},
    {"prompt": "Is water wet?", "temperature": 1.0, "stop": ["\n"]},
    {"messages": [{"role": "user", "content": "Is water wet? é \u2603"}]},
    {"prompt": "Is water wet?"},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "calls.jsonl"


def recorded(path: Path, *answers: Any, payloads: Any = PAYLOADS, **named: Any) -> list[Any]:
    provider = FakeProvider(*answers, **named)
    return asked(Gateway(provider, recorder=Recorder(path, provider)), *payloads)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_replayed_run_gets_the_same_answers(path: Path) -> None:
    first = recorded(path)
    assert asked(Gateway(ReplayProvider(path)), *PAYLOADS) == first


def test_so_does_one_with_a_cache_prices_scores_and_a_system(path: Path, tmp_path: Path) -> None:
    def gateway(provider: Any, cache: str, recorder: Recorder | None = None) -> Gateway:
        return Gateway(
            provider,
            sampling=Sampling(system="Be brief.", temperature=None, reasoning_effort="low"),
            prices=Prices(tokens_in=1, tokens_out=2),
            cache=ResponseCache(tmp_path / cache),
            recorder=recorder,
        )

    scored = {"prompt": "Wet?", "choices": ["yes", "no"], "scores": True}
    payloads = [scored, *PAYLOADS]
    provider = FakeProvider(reply("no", scores={"yes": -2.0, "no": -0.1}))
    first = asked(gateway(provider, "a.db", Recorder(path, provider)), *payloads)
    assert [answer["cached"] for answer in first] == [False] * 5 + [True]
    assert asked(gateway(ReplayProvider(path), "b.db"), *payloads) == first


def test_every_answered_call_is_there_also_cached_ones(path: Path, tmp_path: Path) -> None:
    provider = FakeProvider("one", ModelUnavailable("down"))

    async def use(gateway: Gateway) -> None:
        for _ in range(2):
            await gateway.ask(prompt="a")
        with pytest.raises(ModelUnavailable):
            await gateway.ask(prompt="b")

    served(
        Gateway(
            provider,
            retrying=Retrying(attempts=1),
            cache=ResponseCache(tmp_path / "c.db"),
            recorder=Recorder(path, provider),
        ),
        use,
    )
    head, *calls = lines(path)
    assert head["identity"] == {"name": "fake", "host": "nowhere"}
    assert [(call["request"]["prompt"], call["cached"]) for call in calls] == [
        ("a", False),
        ("a", True),
    ]
    assert calls[0]["reply"]["text"] == "one"


def test_a_line_is_in_the_file_when_the_answer_is_there(path: Path) -> None:
    provider = FakeProvider()
    seen = []

    async def use(gateway: Gateway) -> None:
        for prompt in ("a", "b"):
            await gateway.ask(prompt=prompt)
            seen.append(len(lines(path)))

    served(Gateway(provider, recorder=Recorder(path, provider)), use)
    assert seen == [2, 3]


def test_a_later_session_appends(path: Path) -> None:
    first = recorded(path, payloads=PAYLOADS[:2])
    then = recorded(path, "then", payloads=PAYLOADS[2:3])
    assert asked(Gateway(ReplayProvider(path)), *PAYLOADS[:3]) == first + then


def test_answers_to_one_request_come_in_their_order_and_the_last_stays(path: Path) -> None:
    recorded(path, "one", "two", payloads=[{"prompt": "a"}] * 2)
    again = asked(Gateway(ReplayProvider(path)), *[{"prompt": "a"}] * 4)
    assert [answer["text"] for answer in again] == ["one", "two", "two", "two"]


def test_a_line_that_a_crash_cut_off_is_left_out_and_taken_away(path: Path) -> None:
    recorded(path, "one", payloads=PAYLOADS[:1])
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines()[-1][:50])
    assert asked(Gateway(ReplayProvider(path)), PAYLOADS[0])[0]["text"] == "one"
    recorded(path, "two", payloads=PAYLOADS[1:2])
    assert path.read_bytes().startswith(whole)
    assert len(lines(path)) == 4
    both = asked(Gateway(ReplayProvider(path)), *PAYLOADS[:2])
    assert [answer["text"] for answer in both] == ["one", "two"]


def test_a_recording_of_one_broken_line_starts_anew(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b'{"model": "x' * 20_000)
    recorded(path, payloads=PAYLOADS[:1])
    assert len(lines(path)) == 2


def test_what_was_not_recorded_is_named_with_advice(path: Path) -> None:
    recorded(path, payloads=PAYLOADS[:1])
    replay = ReplayProvider(path)

    def missing(**payload: Any) -> str:
        with pytest.raises(NotRecorded) as caught:
            asked(Gateway(replay), payload)
        return str(caught.value)

    said = missing(prompt="Is fire\nwet? " * 100)
    assert "no answer to 'Is fire wet? Is fire" in said
    assert "… (1,300 characters)" in said
    assert "remove `replay` from [model]" in said
    assert "other parameters" not in said
    assert "the same prompt with other parameters" in missing(prompt="Is water wet?", sample=5)


def test_counts_are_recorded_each_once(path: Path) -> None:
    provider = FakeProvider()

    async def use(gateway: Gateway) -> list[int]:
        await gateway.ask(prompt="a")
        await gateway.count(["one", "three"])
        return await gateway.count(["three", "one", "seven"])

    counted = served(Gateway(provider, recorder=Recorder(path, provider)), use)
    assert [len(line.get("counts", {})) for line in lines(path)] == [0, 0, 2, 1]
    replay = ReplayProvider(path)
    assert asyncio.run(replay.count(["three", "one", "seven"])) == counted
    with pytest.raises(NotRecorded, match="number of tokens of 'eleven'"):
        asyncio.run(replay.count(["eleven"]))


def test_a_replay_says_of_itself_what_the_model_said(path: Path) -> None:
    recorded(path, name="large", gives_scores=False)
    replay = ReplayProvider(path)
    assert replay.identity == {"name": "large", "host": "nowhere"}
    assert (replay.window, replay.gives_scores) == (4096, False)


def test_calls_of_two_models_are_not_mixed(path: Path) -> None:
    recorded(path, name="large")
    recorded(path, name="small")
    with pytest.raises(RecordError, match=r"several models \(large, small\)"):
        ReplayProvider(path)


def test_a_recording_without_calls_is_refused(path: Path) -> None:
    provider = FakeProvider()
    Recorder(path, provider).close()
    with pytest.raises(RecordError, match="contains no call"):
        ReplayProvider(path)


@pytest.mark.parametrize("damage", [b"{broken", b"[]", b'"text"', b"{}", b'{"model": "other"}'])
def test_damage_in_the_middle_is_named_by_its_line(path: Path, damage: bytes) -> None:
    recorded(path)
    content = path.read_bytes().splitlines()
    content[2] = damage
    path.write_bytes(b"\n".join(content) + b"\n")
    with pytest.raises(RecordError, match=r"calls\.jsonl is damaged in line 3"):
        ReplayProvider(path)


def test_a_recording_that_is_not_there_is_named(path: Path) -> None:
    with pytest.raises(RecordError, match=r"calls\.jsonl cannot be read: No such file"):
        ReplayProvider(path)


def test_two_runs_do_not_record_into_one_file(path: Path) -> None:
    provider = FakeProvider()
    with (
        Recorder(path, provider),
        pytest.raises(RecordError, match="another run is recording to"),
    ):
        Recorder(path, provider)


def test_a_failed_write_leaves_whole_lines(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def full(file: int, data: bytes) -> int:
        if len(data) > 20:
            return write(file, bytes(data[:20]))
        raise OSError(28, "No space left on device")

    request = ModelRequest(prompt="a", max_tokens=1)
    with Recorder(path, FakeProvider()) as recorder:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(RecordError, match="No space left"):
                recorder.call(request, reply("one"), cached=False)
        recorder.call(request, reply("two"), cached=False)
    assert [line["reply"]["text"] for line in lines(path)[1:]] == ["two"]
