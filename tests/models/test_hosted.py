"""Hosted models answer as the service does, and are sent what the configuration says."""

import asyncio
import time

import pytest

from coevolve.errors import ConfigError
from coevolve.models.hosted import HostedProvider
from coevolve.models.model_errors import ModelNotFound, RequestRefused
from coevolve.models.provider import Message, ModelReply
from tests.models.endpoint import Act, Endpoint, completion, refuses, says
from tests.models.hosting import KEY, asked, provider, reply_to, request


def test_reply_has_text_and_tokens_of_the_service() -> None:
    reply = reply_to(says("yes indeed", tokens=7))
    assert reply == ModelReply(text="yes indeed", finish="stop", tokens_in=7, tokens_out=2)


def test_settings_reach_the_service() -> None:
    with Endpoint() as endpoint:
        asking = request(
            system="Reasoning: medium",
            max_tokens=64,
            temperature=0.5,
            stop=("\n\n",),
            sample=3,
            reasoning_effort="low",
        )
        asked(provider(endpoint), asking)
    [seen] = endpoint.seen
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.body == {
        "model": "served",
        "messages": [
            {"role": "system", "content": "Reasoning: medium"},
            {"role": "user", "content": "Is water wet?"},
        ],
        "max_tokens": 64,
        "temperature": 0.5,
        "stop": ["\n\n"],
        "seed": 3,
        "reasoning_effort": "low",
    }


def test_settings_that_are_left_to_the_model_are_not_sent() -> None:
    with Endpoint() as endpoint:
        asked(provider(endpoint), request(temperature=None))
    assert endpoint.seen[0].body.keys() == {"model", "messages", "max_tokens", "seed"}


def test_server_decides_about_settings_of_a_model_with_a_famous_name() -> None:
    with Endpoint() as endpoint:  # the model that OpenAI calls so takes no reasoning effort
        asked(provider(endpoint, name="gpt-4o"), request(reasoning_effort="low"))
    assert endpoint.seen[0].body["reasoning_effort"] == "low"


def test_conversation_is_sent_turn_by_turn() -> None:
    turns = (Message("user", "Hi."), Message("assistant", "Hello."), Message("user", "Wet?"))
    with Endpoint() as endpoint:
        asked(provider(endpoint), request(None, messages=turns))
    assert endpoint.seen[0].body["messages"] == [turn.to_json() for turn in turns]


def test_key_of_the_environment_never_goes_to_a_server_of_ones_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-user")
    with Endpoint() as endpoint:
        asked(provider(endpoint, key=""), request())
    assert "sk-of-another-user" not in str(endpoint.seen)


def _knows(*names: str) -> Endpoint:
    def answer(body: dict[str, str]) -> str | Act:
        known = body["model"] in names
        return body["model"] if known else refuses(404, "no such model", code="model_not_found")

    return Endpoint(answer=answer)


@pytest.mark.parametrize(
    ("given", "served", "requests"),
    [
        ("gpt-oss-120b", "gpt-oss-120b", 2),
        ("openai/gpt-oss-120b", "openai/gpt-oss-120b", 2),
        ("openai/gpt-oss-120b", "gpt-oss-120b", 4),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B", 2),
    ],
)
def test_names_with_and_without_openai_before_them(given: str, served: str, requests: int) -> None:
    with _knows(served) as endpoint:
        replies = asked(provider(endpoint, name=given), request(), request())
    assert [reply.text for reply in replies] == [served, served]
    assert len(endpoint.seen) == requests


def test_name_that_proved_right_is_kept_when_a_later_request_is_refused() -> None:
    script = [says("ok"), refuses(404, "gone")]
    with Endpoint(script) as endpoint, pytest.raises(ModelNotFound):
        asked(provider(endpoint, name="openai/served"), request(), request())
    assert [seen.body["model"] for seen in endpoint.seen] == ["openai/served"] * 2


def test_answer_that_was_cut_off_says_so() -> None:
    reply = reply_to(says("yes, because", finish="length"))
    assert (reply.text, reply.finish) == ("yes, because", "length")


@pytest.mark.parametrize("content", ["", None])
def test_model_that_was_cut_off_while_it_thought_has_said_nothing(content: str | None) -> None:
    reply = reply_to(says(content, finish="length", reasoning_content="Water is"))
    assert (reply.text, reply.finish) == ("", "length")


@pytest.mark.parametrize(
    "act",
    [
        says("yes", reasoning_content="It is wet."),
        says("<think>It is wet.</think>yes"),
        says(
            "<|channel|>analysis<|message|>Wet.<|end|><|start|>assistant<|channel|>final<|message|>yes"
        ),
    ],
)
def test_reasoning_is_not_part_of_the_answer(act: Act) -> None:
    assert reply_to(act).text.strip() == "yes"


def test_model_that_thought_and_said_nothing_is_not_asked_again() -> None:
    assert reply_to(says(None, reasoning_content="Hm.")).text == ""


def test_model_that_called_a_tool_instead_has_said_nothing() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    assert reply_to(says(None, finish="tool_calls", tool_calls=[call])).text == ""


def test_half_a_character_is_marked() -> None:
    assert reply_to(says("half \ud83d")).text == "half \ufffd"


def test_empty_answer_is_an_answer() -> None:
    assert reply_to(says("")).text == ""


def test_tokens_kept_by_the_service_are_told_apart() -> None:
    body = completion("yes", tokens=100)
    body["usage"]["prompt_tokens_details"] = {"cached_tokens": 80}
    reply = reply_to(Act(body=body))
    assert (reply.tokens_in, reply.tokens_kept) == (100, 80)


def test_tokens_are_counted_where_the_service_does_not_tell() -> None:
    body = completion("yes indeed")
    del body["usage"]
    reply = reply_to(Act(body=body))
    assert reply.tokens_in > 2
    assert reply.tokens_out >= 2


def test_answer_ends_before_a_stop_that_the_service_ignored() -> None:
    assert reply_to(says("yes\n\nQuestion: no?"), request(stop=("\n\n",))).text == "yes"


def test_scores_are_refused_before_anything_is_sent() -> None:
    with Endpoint() as endpoint, pytest.raises(RequestRefused, match="gives no scores"):
        asked(provider(endpoint), request(choices=("yes", "no"), scores=True))
    assert endpoint.seen == []


def test_many_requests_are_running_at_once() -> None:
    with Endpoint(latency=2) as endpoint:  # long enough for all to arrive on a busy machine
        host = provider(endpoint)

        async def all_of_them() -> list[ModelReply]:
            try:
                return await asyncio.gather(*[host.complete(request()) for _ in range(40)])
            finally:
                await host.close()

        replies = asyncio.run(all_of_them())
    assert len(replies) == 40
    assert endpoint.busiest >= 32


def test_request_that_is_cancelled_ends_at_once() -> None:
    with Endpoint(latency=60) as endpoint:
        host = provider(endpoint, timeout=60)

        async def give_up() -> None:
            asking = asyncio.create_task(host.complete(request()))
            while not endpoint.seen:
                await asyncio.sleep(0.01)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await host.close()

        began = time.monotonic()
        asyncio.run(give_up())
    assert time.monotonic() - began < 50


def test_tokens_of_texts_are_counted() -> None:
    with Endpoint() as endpoint:
        host = provider(endpoint, name="meta-llama/llama-3-8b")  # no tokenizer is fetched

        async def counted() -> list[int]:
            try:
                return await host.count(["", "water", "water is wet, is it not?"])
            finally:
                await host.close()

        none, few, more = asyncio.run(counted())
    assert none == 0 < few < more
    assert endpoint.seen == []


def test_chinese_is_counted_in_the_tokens_of_gpt_oss() -> None:
    text = ["被告人秘密窃取他人财物，价值人民币三千元，后被公安机关抓获。"]
    with Endpoint() as endpoint:

        async def counted(name: str) -> list[int]:
            host = provider(endpoint, name=name)
            try:
                return await host.count(text)
            finally:
                await host.close()

        assert asyncio.run(counted("openai/gpt-oss-120b")) == asyncio.run(counted("gpt-4o"))
        assert asyncio.run(counted("gpt-oss-120b")) < asyncio.run(counted("served"))


def test_window_is_that_of_the_table_or_the_one_given() -> None:
    pytest.importorskip("litellm", reason="needs LiteLLM, of the extra llm")
    assert HostedProvider("gpt-4o").window == 128_000
    assert HostedProvider("openai/gpt-4o").window == 128_000
    assert HostedProvider("unknown/model").window is None
    assert HostedProvider("gpt-4o", window=9_000).window == 9_000
    assert HostedProvider("gpt-4o", base_url="http://localhost:1/v1").window is None


def test_identity_tells_servers_apart_and_shows_no_key() -> None:
    one = HostedProvider("served", base_url="http://localhost:8000/v1", key=KEY)
    two = HostedProvider("served", base_url="http://localhost:8001/v1", key=KEY)
    assert one.identity == {"name": "served", "host": "localhost:8000"}
    assert one.identity != two.identity
    assert KEY not in repr(one)


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://host/v1", "http://", f"http://me:{KEY}@host/v1"]
)
def test_address_that_is_none_is_refused_without_showing_what_may_be_a_key(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url") as caught:
        HostedProvider("served", base_url=url)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("key", [f"{KEY}\n", f" {KEY}", f"{KEY}\0", f"{KEY}é"])
def test_key_that_can_be_none_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigError, match="DESK_API_KEY contains white space") as caught:
        HostedProvider("served", key=key, key_variable="DESK_API_KEY")
    assert KEY not in str(caught.value)


def test_model_without_a_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="must have a name"):
        HostedProvider(" ")
