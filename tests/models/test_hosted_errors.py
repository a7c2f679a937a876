"""What a service does wrong, or says is wrong, becomes an error that says whose turn it is."""

import logging
import os
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from coevolve.models.hosted import HostedProvider
from coevolve.models.model_errors import (
    ContextTooLong,
    ModelError,
    ModelKeyError,
    ModelNotFound,
    ModelReplyError,
    ModelUnavailable,
    RequestRefused,
)
from coevolve.models.provider import Message
from tests.models.endpoint import Act, Endpoint, completion, cuts, drops, hangs, raw, refuses, says
from tests.models.hosting import KEY, VARIABLE, asked, failed, provider, request


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529, 408])
def test_status_that_passes_is_worth_another_attempt(status: int) -> None:
    error = failed(ModelUnavailable, refuses(status, "not now"))
    assert f"answered {status}" in str(error)
    assert error.retry_after is None


@pytest.mark.parametrize("status", [429, 503])
def test_service_says_when_to_come_back(status: int) -> None:
    assert failed(ModelUnavailable, refuses(status, retry_after=2.5)).retry_after == 2.5


def test_service_says_when_to_come_back_by_the_calendar() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    after = failed(ModelUnavailable, Act(status=429, body={}, headers={"Retry-After": date}))
    assert after.retry_after == pytest.approx(60, abs=31)


def test_nonsense_about_when_to_come_back_is_ignored() -> None:
    act = Act(status=429, body={}, headers={"Retry-After": "soon"})
    assert failed(ModelUnavailable, act).retry_after is None


@pytest.mark.parametrize("act", [cuts(), drops()])
def test_lost_connection_is_worth_another_attempt(act: Act) -> None:
    assert "connection broke" in str(failed(ModelUnavailable, act))


def test_answer_that_does_not_come_in_time_is_worth_another_attempt() -> None:
    error = failed(ModelUnavailable, hangs(), timeout=0.3)
    assert "did not answer within 0.3 s" in str(error)


def test_server_that_is_not_there_is_worth_another_attempt() -> None:
    with Endpoint() as endpoint:
        gone = provider(endpoint)
    with pytest.raises(ModelUnavailable, match="could not be reached"):
        asked(gone, request())


@pytest.mark.parametrize(
    "act",
    [
        raw(b'{"id": "chatcmpl-1", "choi'),
        raw(b"<html>hello</html>"),
        raw(b""),
        raw(b"null"),
        raw(b'["yes"]'),
        Act(body={"answer": "yes"}),
        Act(body={**completion("yes"), "choices": []}),
        Act(body={**completion("yes"), "choices": None}),
        Act(body={**completion("yes"), "choices": [{"index": 0, "finish_reason": "stop"}]}),
        Act(body={**completion("yes"), "choices": [{"message": {"content": 5}}]}),
        Act(body={"error": {"message": "the model fell over"}}),
        says(None),
    ],
)
def test_reply_that_is_none_is_worth_another_attempt(act: Act) -> None:
    assert "sent a" in str(failed(ModelReplyError, act))


@pytest.mark.parametrize(
    "act",
    [
        refuses(401, f"Incorrect API key provided: {KEY}", code="invalid_api_key"),
        refuses(403, "You may not use this model."),
        refuses(400, "API key not valid. Please pass a valid API key."),
    ],
)
def test_refused_key_names_the_variable_and_the_host(act: Act) -> None:
    with Endpoint([act]) as endpoint:
        with pytest.raises(ModelKeyError) as caught:
            asked(provider(endpoint), request())
        assert len(endpoint.seen) == 1
        host = endpoint.base_url.removeprefix("http://").removesuffix("/v1")
    assert str(caught.value).startswith(f"{host} refuses the key in {VARIABLE}")


def test_missing_key_is_named_as_missing() -> None:
    missing = pytest.raises(ModelKeyError, match=f"without a key.*Check {VARIABLE}")
    with Endpoint(key=KEY) as endpoint, missing:
        asked(provider(endpoint, key=""), request())


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai/gpt-4o", "OPENAI_API_KEY"),
        ("gemini/gemini-pro", "GEMINI_API_KEY"),
        ("fireworks_ai/llama", "FIREWORKS_API_KEY"),
    ],
)
def test_a_hosted_model_without_a_key_is_not_asked(
    name: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LiteLLM raises what looks like an error of the service, with status 500."""
    pytest.importorskip("litellm", reason="needs LiteLLM, of the extra llm")
    for known in [known for known in os.environ if known.endswith("API_KEY")]:
        monkeypatch.delenv(known)
    with pytest.raises(ModelKeyError, match=f"^there is no key for {name}: .*{variable}"):
        asked(HostedProvider(name), request())


@pytest.mark.parametrize(
    "act",
    [
        refuses(429, "You exceeded your current quota.", code="insufficient_quota"),
        refuses(402, "Payment required"),
        refuses(400, "Your credit balance is too low to access the API."),
    ],
)
def test_account_without_credit_stops_at_once(act: Act) -> None:
    assert f"the key in {VARIABLE} has no credit left" in str(failed(ModelKeyError, act))


def test_quota_that_comes_back_soon_is_worth_another_attempt() -> None:
    failed(ModelUnavailable, refuses(429, "You exceeded your current quota. Retry in 20s."))


@pytest.mark.parametrize(
    "message", ["The model `served` does not exist", "Not Found", "model 'served' not found"]
)
def test_unknown_model_names_the_model(message: str) -> None:
    error = failed(ModelNotFound, refuses(404, message))
    assert "does not know the model 'served'" in str(error)
    assert message in str(error)


def test_name_that_litellm_has_no_service_for() -> None:
    pytest.importorskip("litellm", reason="needs LiteLLM, of the extra llm")
    with pytest.raises(ModelNotFound, match=r"no service for 'served'.*base_url"):
        asked(HostedProvider("served", key=KEY), request())


def test_setting_that_a_hosted_model_does_not_take_is_an_error() -> None:
    pytest.importorskip("litellm", reason="needs LiteLLM, of the extra llm")
    with pytest.raises(ModelNotFound, match="reasoning_effort"):
        asked(HostedProvider("gpt-4o", key=KEY), request(reasoning_effort="low"))


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
        "the request exceeds the available context size (4096 tokens), try increasing it",
        "prompt is too long: 210000 tokens > 200000 maximum",
    ],
)
@pytest.mark.parametrize("max_tokens", [100, 9000])
def test_prompt_that_is_too_long_is_the_harness_s(message: str, max_tokens: int) -> None:
    failed(ContextTooLong, refuses(400, message), request(max_tokens=max_tokens))


def test_body_that_is_too_large_is_the_harness_s() -> None:
    failed(ContextTooLong, refuses(413, "Request Entity Too Large"))


@pytest.mark.parametrize(
    ("max_tokens", "kind"), [(9000, ModelNotFound), (4096, ModelNotFound), (4000, ContextTooLong)]
)
def test_limit_on_tokens_that_no_prompt_could_meet_is_the_configuration_s(
    max_tokens: int, kind: type[ModelError]
) -> None:
    message = "max_tokens is too large. This model's maximum context length is 4096 tokens."
    failed(kind, refuses(400, message), request(max_tokens=max_tokens))


@pytest.mark.parametrize(
    "act",
    [
        refuses(400, "Rejected by our safety system.", code="content_policy_violation"),
        refuses(400, "The prompt triggered the content management policy", code="content_filter"),
        refuses(403, "This model requires moderation and your input was flagged"),
        says("", finish="content_filter"),
    ],
)
def test_what_the_service_will_not_answer_is_the_harness_s(act: Act) -> None:
    failed(RequestRefused, act)


@pytest.mark.parametrize("status", [400, 405, 418, 422])
def test_other_refusals_are_the_configuration_s(status: int) -> None:
    error = failed(ModelNotFound, refuses(status, "temperature is not supported"))
    assert "temperature is not supported" in str(error)


def test_refused_messages_are_the_harness_s() -> None:
    error = {"message": "roles must alternate", "param": "messages[1].role", "code": None}
    failed(RequestRefused, Act(status=400, body={"error": error}))


def test_refused_form_is_the_harness_s_once_the_service_has_answered() -> None:
    turns = (Message("user", "Is water wet?"), Message("user", "And ice?"))
    composed = request(prompt=None, messages=turns)
    act = refuses(400, "Conversation roles must alternate")
    with Endpoint([act, says("yes"), act, act]) as endpoint:
        with pytest.raises(ModelNotFound):
            asked(provider(endpoint), composed)
        with pytest.raises(RequestRefused, match="must alternate"):
            asked(provider(endpoint), request(), composed)
        with pytest.raises(ModelNotFound):
            asked(provider(endpoint), request())


def test_refused_setting_is_the_harness_s_where_others_have_been_taken() -> None:
    script = [says("yes"), refuses(400, "temperature must be 1"), refuses(400, "top_p is unknown")]
    with Endpoint(script) as endpoint:
        with pytest.raises(RequestRefused, match="temperature must be 1"):
            asked(provider(endpoint), request(temperature=1.0), request(temperature=0.5))
        with pytest.raises(ModelNotFound):
            asked(provider(endpoint), request(temperature=0.5))


def _all_of(error: ModelError) -> str:
    """The error, what it was raised from, and what a debugger would show of our own frames."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    ours = [frame.f_locals for frame in frames if "coevolve.models" in frame.f_globals["__name__"]]
    assert ours
    return repr((error, error.__context__, error.__cause__, ours))


@pytest.mark.parametrize(
    "act",
    [
        refuses(401, f"Incorrect API key provided: {KEY}"),
        refuses(400, f"bad header 'Bearer {KEY}'"),
        refuses(500, f"crashed with {KEY}"),
        refuses(404, f"no model for {KEY}"),
        raw(f'{{"{KEY}": '.encode()),
        drops(),
    ],
)
def test_key_is_shown_nowhere(
    act: Act, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with Endpoint([act]) as endpoint, pytest.raises(ModelError) as caught:
        asked(provider(endpoint), request())
    assert KEY not in _all_of(caught.value)
    assert KEY not in caplog.text
    assert capfd.readouterr() == ("", "")
