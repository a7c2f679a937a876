"""Requests of agents: tools, tool results, images, reasoning, and prompts that are too long."""

import asyncio
import base64
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from coevolve.models.call_recording import Recorder, ReplayProvider
from coevolve.models.gateway import Gateway
from coevolve.models.model_client import ModelClient, StubModel
from coevolve.models.model_errors import ContextTooLong, ModelNotFound, RequestRefused
from coevolve.models.model_spend import Prices
from coevolve.models.provider import Message, ModelRequest, Sampling, ToolCall
from coevolve.models.request_payload import read_request
from coevolve.models.response_cache import ResponseCache
from tests.models.endpoint import Act, Endpoint, completion, refuses, says
from tests.models.fakes import FakeProvider, reply, served
from tests.models.fakes import asked as gateway_asked
from tests.models.hosting import asked, provider

PNG = "data:image/png;base64," + base64.b64encode(b"not really a picture").decode()
TOOL = {
    "type": "function",
    "function": {
        "name": "run",
        "description": "Runs a command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
    },
}
CALL = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"a": 1}'}}
TURNS: list[dict[str, Any]] = [
    {"role": "system", "content": "Use the tools."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is in it?", "cache_control": {"type": "ephemeral"}},
            {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
        ],
    },
    {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "Look."},
    {"role": "tool", "content": "a file", "tool_call_id": "c1", "name": "run"},
    {"role": "user", "content": "Go on."},
]
ASKED: dict[str, Any] = {
    "messages": TURNS,
    "tools": [TOOL],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "response_format": {"type": "json_object"},
    "reasoning_effort": "high",
    "top_p": 0.9,
}
TOO_LONG = refuses(400, "maximum context length is 8192 tokens", code="context_length_exceeded")


def agents(**more: Any) -> dict[str, Any]:
    return {**ASKED, **more}


def turns(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"messages": list(messages)}


class ToolProvider(FakeProvider):
    takes_tools = True


def test_a_request_of_an_agent_reaches_the_service_whole() -> None:
    act = Act(body=completion(None, finish="tool_calls", tool_calls=[CALL], reasoning_content="W"))
    request = read_request(ASKED, Sampling(max_tokens=50))
    with Endpoint([act]) as endpoint:
        [got] = asked(provider(endpoint), request)
    [seen] = endpoint.seen
    sent = {name: seen.body[name] for name in ASKED if name != "messages"}
    assert sent == {name: value for name, value in ASKED.items() if name != "messages"}
    assert [{"content": None, **turn} for turn in seen.body["messages"]] == TURNS
    assert (got.text, got.finish, got.reasoning) == ("", "tool_calls", "W")
    assert got.tool_calls == (ToolCall("c1", "run", '{"a": 1}'),)


def test_tool_calls_count_only_where_there_are_tools() -> None:
    act = says(None, finish="tool_calls", tool_calls=[CALL])
    with Endpoint([act]) as endpoint:
        [got] = asked(provider(endpoint), ModelRequest(prompt="Wet?", max_tokens=9))
    assert (got.text, got.finish, got.tool_calls) == ("", "stop", ())


@pytest.mark.parametrize("setting", ["tools", "top_p", "response_format"])
def test_what_only_a_request_sets_is_its_own_fault(setting: str) -> None:
    act = refuses(400, f"{setting} is not supported by this model")
    request = read_request(ASKED, Sampling())
    with Endpoint([act]) as endpoint, pytest.raises(RequestRefused):
        asked(provider(endpoint), request)
    with Endpoint([act]) as endpoint, pytest.raises(ModelNotFound):
        asked(provider(endpoint), ModelRequest(prompt="Wet?", max_tokens=9))


REFUSED: list[tuple[dict[str, Any], str]] = [
    (agents(tools=[]), "1 to 128 tools"),
    (agents(tools=[TOOL, TOOL]), "one name"),
    (agents(tools=[{"type": "web_search"}]), "a tool must be"),
    (agents(tools=[{**TOOL, "function": {"name": "a b"}}]), "1 to 64 letters"),
    (agents(tools=[{**TOOL, "function": {"name": "x" * 9, "parameters": 1}}]), "a tool must be"),
    (
        agents(tools=[{**TOOL, "function": {"name": "a", "description": "x" * 300_000}}]),
        "at most 256,000",
    ),
    (agents(tools=[{**TOOL, "function": {"name": "a", "description": "\ud800"}}]), "surrogate"),
    (agents(tool_choice="always"), "tool_choice must be"),
    (agents(tool_choice={"type": "function", "function": {"name": "other"}}), "not one of"),
    ({"prompt": "a", "tool_choice": "auto"}, "needs tools"),
    ({"prompt": "a", "parallel_tool_calls": True}, "needs tools"),
    (agents(parallel_tool_calls=1), "true or false"),
    (agents(response_format={"type": "xml"}), "response_format must be"),
    (agents(response_format={"type": "json_schema"}), "response_format must be"),
    (agents(choices=["a", "b"]), "cannot be combined"),
    (agents(top_p=0), "in \\(0, 1\\]"),
    (agents(overflow="ignore"), "overflow must be"),
    (agents(reasoning_effort="HIGH!"), "a word such as low"),
    (turns({"role": "tool", "content": "a", "tool_call_id": "c9"}), "answers no call"),
    (turns({"role": "tool", "content": "a"}), "must not be empty"),
    (agents(**turns(*TURNS[:3])), "the last message"),
    (agents(**turns(TURNS[1], TURNS[0])), "must be the first"),
    (turns({"role": "user", "content": "a", "tool_calls": [CALL]}), "only a message of the"),
    (
        turns(TURNS[1], {"role": "assistant", "content": "", "tool_calls": [{"id": "a"}]}),
        "a tool call must be",
    ),
    (turns({"role": "user", "content": []}), "parts"),
    (turns({"role": "user", "content": [{"type": "audio"}]}), "a part of a content"),
    (turns({"role": "user", "content": [{"type": "text", "text": 1}]}), "must be text"),
    *(
        (
            turns({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}),
            "data URL|not base64",
        )
        for url in ("https://example.org/a.png", "file:///etc/passwd", PNG + "*", None)
    ),
    ({"prompt": "x" * 12_000_001}, "at most 12,000,000"),
]


@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_an_invalid_request_of_an_agent_is_refused(place: int) -> None:
    payload, why = REFUSED[place]
    with pytest.raises(RequestRefused, match=why):
        read_request(payload, Sampling())


def test_plain_conversations_keep_their_strict_order_and_agents_are_free() -> None:
    twice = turns({"role": "user", "content": "a"}, {"role": "user", "content": "b"})
    with pytest.raises(RequestRefused, match="alternate"):
        read_request(twice, Sampling())
    found = read_request({**twice, "overflow": "reply"}, Sampling())
    assert found.messages == (Message("user", "a"), Message("user", "b"))
    assert found.key({}) == ModelRequest(
        messages=found.messages, max_tokens=1024, temperature=0.0
    ).key({})


@pytest.mark.parametrize("name", sorted(ASKED.keys() - {"tool_choice", "parallel_tool_calls"}))
def test_a_model_that_takes_no_tools_refuses_them(name: str) -> None:
    plain = {} if name == "messages" else {"prompt": "Wet?"}
    payload = {**plain, name: ASKED[name]}
    with pytest.raises(RequestRefused, match=r"fake does not take (tools|top_p|resp|reasoning)"):
        gateway_asked(Gateway(FakeProvider()), payload)
    assert gateway_asked(Gateway(ToolProvider()), payload)[0]["text"] == "answer 1"


def test_answers_with_tool_calls_are_cached_recorded_and_priced(tmp_path: Path) -> None:
    fake = ToolProvider(
        reply("", finish="tool_calls", tool_calls=(ToolCall("c1", "run", "{}"),), reasoning="W")
    )
    gateway = Gateway(
        fake,
        cache=ResponseCache(tmp_path / "cache.db"),
        recorder=Recorder(tmp_path / "calls.jsonl", fake),
        prices=Prices(tokens_in=1, tokens_out=1),
    )
    first, second = gateway_asked(gateway, ASKED, ASKED)
    assert len(fake.asked) == 1
    assert (first["cached"], second["cached"]) == (False, True)
    assert first["usage"]["dollars"] > 0
    again = gateway_asked(Gateway(ReplayProvider(tmp_path / "calls.jsonl")), ASKED)[0]
    for answer in (first, second, again):
        function = {"name": "run", "arguments": "{}"}
        assert answer["tool_calls"] == [{"id": "c1", "type": "function", "function": function}]
        assert (answer["finish"], answer["reasoning"]) == ("tool_calls", "W")


def test_a_prompt_that_is_too_long_is_a_reply_on_request(tmp_path: Path) -> None:
    with Endpoint([TOO_LONG, TOO_LONG, says("short")]) as endpoint:
        host = provider(endpoint)
        recorder = Recorder(tmp_path / "calls.jsonl", host)

        async def use(gateway: Gateway) -> list[dict[str, Any]]:
            with pytest.raises(ContextTooLong):
                await gateway.ask(prompt="very long")
            return [
                await gateway.ask(prompt="very long", overflow="reply"),
                await gateway.ask(prompt="summary", overflow="reply"),
            ]

        long, short = served(Gateway(host, recorder=recorder), use)
    assert (long["overflow"], "8192" in long["reason"]) == (True, True)
    assert long["usage"]["tokens_in"] == 0
    assert (short["text"], "overflow" in short) == ("short", False)

    async def replay(gateway: Gateway) -> list[dict[str, Any]]:
        return [
            await gateway.ask(prompt="very long", overflow="reply"),
            await gateway.ask(prompt="summary", overflow="reply"),
        ]

    again = served(Gateway(ReplayProvider(tmp_path / "calls.jsonl")), replay)
    assert again[0]["reason"] == long["reason"]
    assert again[1]["text"] == "short"


class GatewayHost:
    """A gateway in another thread, as a worker sees it."""

    def __init__(self, gateway: Gateway) -> None:
        self.loop = asyncio.new_event_loop()
        self._gateway = gateway

    def ask(self, service: str, /, **payload: Any) -> Any:
        function = self._gateway.services()[service]
        if service == "model_facts":
            return function()
        return asyncio.run_coroutine_threadsafe(function(**payload), self.loop).result()


def test_a_client_passes_everything_on_and_keeps_no_images_in_its_trace() -> None:
    calls = (ToolCall("c1", "run", "{}"),)
    fake = ToolProvider(
        reply("", finish="tool_calls", tool_calls=calls, reasoning="W"), ContextTooLong("9 tokens")
    )
    host = GatewayHost(Gateway(fake))
    thread = threading.Thread(target=host.loop.run_forever)
    thread.start()
    try:
        client = ModelClient(host)
        said = client.model(**ASKED)
        long = client.model(prompt="a", overflow="reply")
    finally:
        host.loop.call_soon_threadsafe(host.loop.stop)
        thread.join()
        host.loop.close()
    assert fake.asked[0] == read_request(ASKED, Sampling())
    assert said["tool_calls"][0]["function"]["name"] == "run"
    assert (said["finish"], said["reasoning"]) == ("tool_calls", "W")
    assert (long["overflow"], long["reason"]) == (True, "9 tokens")
    assert client.asked == 2
    trace = json.dumps(client.calls)
    assert PNG not in trace
    assert "data:image/png;base64, " in trace
    assert client.calls[1]["answer"] == {"overflow": True, "reason": "9 tokens"}


def test_a_client_refuses_what_the_engine_could_not_read() -> None:
    with pytest.raises(RequestRefused, match="at most 12,000,000"):
        ModelClient(StubModel()).model("x" * 13_000_000)


def test_a_client_may_be_used_by_several_threads() -> None:
    client = ModelClient(StubModel(trial_calls=100))
    threads = [
        threading.Thread(target=lambda: [client.model("Is water wet?") for _ in range(25)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.asked == len(client.calls) + client.left_out == 100
