"""Requests and their addresses: the same question has one, another question another."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from coevolve.models.provider import Message, ModelReply, ModelRequest, Role, ToolCall, canonical

texts = st.text(max_size=8)
some = st.lists(texts, max_size=3).map(tuple)
roles: list[Role] = ["system", "user", "assistant"]
calls = st.lists(st.builds(ToolCall, texts, texts, texts), max_size=2).map(tuple)
image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
plain = st.builds(lambda role, text: Message(role, text), st.sampled_from(roles), texts)
called = st.builds(
    lambda text, calls, why: Message("assistant", text, tool_calls=calls, reasoning=why),
    texts,
    calls,
    texts,
)
told = st.builds(lambda text, to: Message("tool", text, tool_call_id=to, name="run"), texts, texts)
shown = st.builds(
    lambda text: Message.from_json(
        {"role": "user", "content": [{"type": "text", "text": text}, image]}
    ),
    texts,
)
turns = plain | called | told | shown
written = st.dictionaries(texts, texts, max_size=2).map(canonical) | st.just("")
requests = st.builds(
    ModelRequest,
    prompt=st.none() | texts,
    messages=st.lists(turns, max_size=3).map(tuple),
    system=texts,
    choices=some,
    scores=st.booleans(),
    max_tokens=st.integers(1, 5),
    temperature=st.none() | st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    stop=some,
    sample=st.integers(0, 3),
    reasoning_effort=st.none() | st.sampled_from(["low", "high"]),
    top_p=st.none() | st.sampled_from([0.5, 1.0]),
    tools=written,
    tool_choice=written,
    parallel_tool_calls=st.none() | st.booleans(),
    response_format=written,
)
identities = st.dictionaries(
    texts, st.none() | st.booleans() | st.integers() | texts | st.lists(texts), max_size=3
)
ASKED = ModelRequest(prompt="Wet?", max_tokens=5, temperature=0.5)


@settings(deadline=None)
@given(requests, identities)
def test_a_request_survives_json(request: ModelRequest, identity: dict[str, Any]) -> None:
    back = ModelRequest.from_json(json.loads(json.dumps(request.to_json())))
    assert back == request
    assert back.key(identity) == request.key(identity)


@settings(deadline=None)
@given(requests, requests, identities, identities)
def test_keys_differ_where_anything_does(
    one: ModelRequest, other: ModelRequest, here: dict[str, Any], there: dict[str, Any]
) -> None:
    same = one == other and json.dumps(here, sort_keys=True) == json.dumps(there, sort_keys=True)
    assert (one.key(here) == other.key(there)) == same


@settings(deadline=None)
@given(identities)
def test_the_order_in_an_identity_does_not_matter(identity: dict[str, Any]) -> None:
    backwards = dict(reversed(identity.items()))
    assert ASKED.key(backwards) == ASKED.key(identity)


def test_every_part_of_a_request_counts_for_its_key() -> None:
    others: dict[str, Any] = {
        "prompt": "Dry?",
        "messages": (Message("user", "Wet?"),),
        "system": "Be brief.",
        "choices": ("yes", "no"),
        "scores": True,
        "max_tokens": 6,
        "temperature": 0.0,
        "stop": ("\n",),
        "sample": 1,
        "reasoning_effort": "low",
        "top_p": 0.5,
        "tools": "[1]",
        "tool_choice": '"auto"',
        "parallel_tool_calls": False,
        "response_format": '{"type":"text"}',
    }
    assert others.keys() == ModelRequest.__dataclass_fields__.keys()
    keys = {replace(ASKED, **{name: value}).key({}) for name, value in others.items()}
    keys |= {ASKED.key({}), ASKED.key({"name": "m"}), replace(ASKED, temperature=None).key({})}
    assert len(keys) == len(others) + 3


def test_zero_has_one_address_however_it_is_written() -> None:
    keys = {replace(ASKED, temperature=zero).key({}) for zero in (0, 0.0, -0.0)}
    assert len(keys) == 1


def test_addresses_stay_what_they_are() -> None:
    # A change here makes every cache and recording worthless: raise SCHEMA if it must be.
    key = ASKED.key({"name": "fake"})
    assert key == "5895ae745cf204a313d237c824875dc1f96865ab451325fb2719a9be7a2609e3"


def test_a_prompt_is_what_the_user_says_after_the_system() -> None:
    request = replace(ASKED, system="Be brief.")
    assert request.conversation() == [Message("system", "Be brief."), Message("user", "Wet?")]
    assert request.texts() == ["Be brief.", "Wet?"]


def test_a_reply_survives_json() -> None:
    reply = ModelReply(
        text="half \ud800", finish="length", tokens_in=5, tokens_out=2, scores={"a": -0.5}
    )
    agents = replace(
        reply, finish="tool_calls", tool_calls=(ToolCall("c1", "run", "{}"),), reasoning="Well."
    )
    for one in (reply, agents):
        assert ModelReply.from_json(json.loads(json.dumps(one.to_json()))) == one
