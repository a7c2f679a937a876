"""What a harness may ask of a model, and what it is told when it may not."""

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coevolve.errors import ConfigError
from coevolve.models.model_errors import RequestRefused
from coevolve.models.provider import Caps, Message, ModelRequest, Sampling
from coevolve.models.request_payload import read_request, read_texts

SAMPLING = Sampling(temperature=0.3, max_tokens=50, system="Be brief.", reasoning_effort="low")
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
NAMES = ["prompt", "messages", "choices", "scores", "max_tokens", "temperature", "stop", "sample"]


def turns(*roles: str) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": "a"} for role in roles]}


@pytest.mark.parametrize("roles", ["user", "system user", "system user assistant user"])
def test_a_conversation_begins_and_ends_with_the_user(roles: str) -> None:
    asked = read_request(turns(*roles.split()), Sampling())
    assert [turn.role for turn in asked.conversation()] == roles.split()


def test_the_system_speaks_once() -> None:
    asked = read_request(turns("system", "user"), SAMPLING)
    assert asked.conversation() == [Message("system", "Be brief.\n\na"), Message("user", "a")]


def test_what_a_request_leaves_out_is_as_configured() -> None:
    assert read_request({"prompt": "Wet?"}, SAMPLING) == ModelRequest(
        prompt="Wet?",
        system="Be brief.",
        max_tokens=50,
        temperature=0.3,
        reasoning_effort="low",
    )


def test_null_is_what_is_left_out() -> None:
    left_out = dict.fromkeys(["messages", "choices", "scores", "max_tokens", "stop", "sample"])
    assert read_request({"prompt": "Wet?", **left_out}, SAMPLING) == read_request(
        {"prompt": "Wet?"}, SAMPLING
    )


def test_a_request_says_how_it_is_answered() -> None:
    asked = {
        "messages": [{"role": "user", "content": "Wet?"}],
        "choices": ["yes", "no"],
        "scores": True,
        "max_tokens": 7,
        "temperature": 2,
        "stop": ["\n"],
        "sample": 3,
    }
    assert read_request(asked, Sampling()) == ModelRequest(
        messages=(Message("user", "Wet?"),),
        choices=("yes", "no"),
        scores=True,
        max_tokens=7,
        temperature=2.0,
        stop=("\n",),
        sample=3,
    )


def test_no_request_gets_a_longer_answer_than_is_configured() -> None:
    assert read_request({"prompt": "Wet?", "max_tokens": 10**9}, SAMPLING).max_tokens == 50


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({}, "a prompt or messages, got neither"),
        ({"prompt": "a", "messages": []}, "got both"),
        ({"prompt": 5}, "prompt must be text, got 5"),
        ({"prompt": ["a"]}, "prompt must be text"),
        ({"prompt": " \n"}, "prompt must not be empty"),
        ({"prompt": "\ud800"}, "an unpaired surrogate"),
        ({"messages": []}, "messages must be a list of messages"),
        ({"messages": "hello"}, "messages must be a list"),
        ({"messages": [{"role": "user"}]}, "must have a role and a content"),
        ({"messages": [{"role": "root", "content": "a"}]}, "a role must be one of"),
        ({"messages": [{"role": ["user"], "content": "a"}]}, "a role must be one of"),
        ({"messages": [{"role": "user", "content": None}]}, "content of a message must be text"),
        (
            {"messages": [{"role": "user", "content": "a", "name": "b"}]},
            "only a message of the tool",
        ),
        ({"messages": [{"role": "user", "content": "a", "to": "b"}]}, "role and a content"),
        (turns("user", "user"), "alternate.*the user first and last.*; got user, user"),
        (turns("user", "assistant"), "the user first and last"),
        (turns("assistant", "user"), "the user first and last"),
        (turns("system"), "got system"),
        (turns("system", "system", "user"), "optional system message"),
        ({"prompt": "a", "choices": []}, "choices must not be empty"),
        ({"prompt": "a", "choices": "yes"}, "choices must be a list of texts, got 'yes'"),
        ({"prompt": "a", "choices": ["yes", "yes"]}, "choices must differ, got 'yes' twice"),
        ({"prompt": "a", "choices": ["yes", ""]}, "each of choices must not be empty"),
        ({"prompt": "a", "choices": ["yes", 1]}, "each of choices must be text, got 1"),
        ({"prompt": "a", "choices": [str(n) for n in range(1001)]}, "1,000 texts or fewer"),
        ({"prompt": "a", "scores": True}, "give the choices too"),
        ({"prompt": "a", "scores": 1, "choices": ["b"]}, "scores must be true or false"),
        ({"prompt": "a", "max_tokens": 0}, "max_tokens must be a whole number, 1 or more, got 0"),
        ({"prompt": "a", "max_tokens": 2.0}, "max_tokens must be a whole number"),
        ({"prompt": "a", "max_tokens": True}, "max_tokens must be a whole number"),
        ({"prompt": "a", "temperature": 2.1}, r"temperature must be a number in \[0, 2\]"),
        ({"prompt": "a", "temperature": float("nan")}, "temperature must be a number"),
        ({"prompt": "a", "temperature": "hot"}, "temperature must be a number"),
        ({"prompt": "a", "stop": "\n"}, "stop must be a list of texts"),
        ({"prompt": "a", "stop": [""]}, "each of stop must not be empty"),
        ({"prompt": "a", "stop": list("abcde")}, "stop must be 4 texts or fewer, got 5"),
        ({"prompt": "a", "sample": -1}, "sample must be a whole number, from 0 to"),
        ({"prompt": "a", "sample": 10**12}, "sample must be a whole number, from 0 to"),
        ({"prompt": "a", "max_token": 5}, "cannot have 'max_token'. Did you mean 'max_tokens'"),
        ({"prompt": "a", "model": "another"}, "cannot have 'model'. The keys are prompt,"),
        ({"prompt": "a", "api_key": "mine"}, "cannot have 'api_key'"),
        ({"prompt": "a", "base_url": "http://elsewhere"}, "cannot have 'base_url'"),
        ({"prompt": "a", "system": "obey"}, "cannot have 'system'"),
        ({"prompt": "a", "reasoning_effort": "as much as you can"}, "a word such as low"),
        ({"prompt": "a", "extra_headers": {}}, "cannot have 'extra_headers'"),
    ],
)
def test_a_payload_that_is_not_a_request_is_refused(payload: dict[str, Any], said: str) -> None:
    with pytest.raises(RequestRefused, match=said):
        read_request(payload, SAMPLING)


def test_scores_are_refused_where_the_model_gives_none() -> None:
    asked = {"prompt": "Wet?", "choices": ["yes"], "scores": True}
    with pytest.raises(RequestRefused, match="this model gives no scores"):
        read_request(asked, SAMPLING, gives_scores=False)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), json_values, max_size=5))
def test_any_payload_is_a_request_or_refused(payload: dict[str, Any]) -> None:
    with contextlib.suppress(RequestRefused):
        request = read_request(payload, SAMPLING)
        assert request.max_tokens <= 50
        assert request.system == "Be brief."
        assert request.key({})


@pytest.mark.parametrize("texts", [None, "text", ["a", 1], {"a": 1}])
def test_only_texts_are_counted(texts: object) -> None:
    with pytest.raises(RequestRefused):
        read_texts(texts)
    assert read_texts(["", "a"]) == ["", "a"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"temperature": -1}, r"in \[0, 2\], got -1"),
        ({"temperature": float("nan")}, "got nan"),
        ({"max_tokens": 0}, "max_tokens must be 1 or more"),
        ({"reasoning_effort": ""}, "leave it out"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Sampling(**values)


@pytest.mark.parametrize("name", list(Caps.__dataclass_fields__))
def test_caps_are_positive_and_within_reason(name: str) -> None:
    wrong = {0: "positive", -1: "positive", float("nan"): "positive", float("inf"): "at most 1e"}
    for value, text in {**wrong, 10**400: "at most 1e"}.items():
        with pytest.raises(ConfigError, match=f"the cap {name} must be {text}"):
            Caps(**{name: value})  # type: ignore[arg-type]
