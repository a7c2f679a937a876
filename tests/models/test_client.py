"""The model as a benchmark in a worker offers it: what a trial may ask, and what is kept of it."""

import asyncio
import inspect
from typing import Any

import pytest

from coevolve.core.outcomes import Usage
from coevolve.errors import InputError
from coevolve.models.gateway import Gateway
from coevolve.models.model_client import MOST_CALLS, MOST_CHARACTERS, ModelClient, StubModel
from coevolve.models.model_errors import RequestRefused, TrialCapError
from coevolve.models.provider import Caps
from tests.models.fakes import FakeProvider


class Host:
    """The engine, answering in this process."""

    def __init__(self, **caps: int) -> None:
        self.asked: list[str] = []
        self._gateway = Gateway(FakeProvider(), caps=Caps(**caps))
        self._known: dict[str, dict[str, Any]] = {}

    def ask(self, service: str, /, **payload: Any) -> Any:
        self.asked.append(service)
        if (known := self._known.get(str(payload))) is not None and service == "model":
            nothing = dict.fromkeys(known["usage"], 0)
            return {**known, "cached": True, "usage": nothing, "saved": known["usage"]}
        answer = self._gateway.services()[service](**payload)
        if inspect.iscoroutine(answer):
            answer = asyncio.run(answer)
        if service == "model":
            self._known[str(payload)] = answer
        return answer


def test_a_candidate_gets_what_the_engine_answers() -> None:
    client = ModelClient(Host())
    assert client.services.keys() == {"model", "count", "model_facts"}
    answer = client.services["model"](prompt="Wet?", max_tokens=5)
    assert answer["text"] == "answer 1"
    assert client.services["count"](["one", "three"]) == [3, 5]
    assert client.services["model_facts"]()["window"] == 4096


def test_a_candidate_cannot_tell_a_known_answer_from_a_new_one() -> None:
    client = ModelClient(Host())
    first, second = client.model("Wet?"), client.model("Wet?")
    assert client.calls[1]["answer"]["cached"]
    assert first == second
    assert first["usage"] == {"tokens_in": 100, "tokens_out": 10, "dollars": 0.0}


def test_another_trial_asks_for_other_samples() -> None:
    client = ModelClient(StubModel())
    asked = []
    for trial in range(3):
        client.begin(trial=trial)
        client.model("Wet?")
        client.model("Wet?", sample=7)
        asked.append([call.get("sample", 0) for call in client.calls])
    assert asked == [[0, 7], [1000, 1007], [2000, 2007]]
    with pytest.raises(RequestRefused, match="sample must be a whole number"):
        client.model("Wet?", sample="many")


def test_usage_adds_up_and_known_answers_add_nothing() -> None:
    client = ModelClient(Host())
    for prompt in ("a", "b", "a"):
        client.model(prompt)
    assert client.usage == Usage(tokens_in=200, tokens_out=20)
    assert client.asked == 3
    client.begin()
    assert (client.usage, client.asked, client.calls) == (Usage(), 0, [])


def test_calls_are_kept_for_the_trace() -> None:
    client = ModelClient(Host())
    client.model("Wet?", max_tokens=5)
    client.model("Wet?", max_tokens=5)
    first, second = client.calls
    assert first == {
        "prompt": "Wet?",
        "max_tokens": 5,
        "answer": {
            "text": "answer 1",
            "finish": "stop",
            "tokens_in": 100,
            "tokens_out": 10,
            "cached": False,
        },
    }
    assert second["answer"] == {**first["answer"], "cached": True}


def test_a_call_that_failed_is_kept_with_what_was_wrong() -> None:
    client = ModelClient(Host())
    with pytest.raises(RequestRefused):
        client.model(prompt="Wet?", max_tokens=-1)
    assert client.calls[0]["prompt"] == "Wet?"
    assert "max_tokens must be a whole number" in client.calls[0]["error"]


def test_many_calls_are_counted_rather_than_kept() -> None:
    client = ModelClient(StubModel())
    for _ in range(MOST_CALLS + 5):
        client.model("a")
    assert (len(client.calls), client.left_out) == (MOST_CALLS, 5)


def test_long_prompts_keep_their_ends_and_all_together_are_bounded() -> None:
    client = ModelClient(StubModel())
    for _ in range(20):
        client.model("start " + "word " * 20_000 + "end")
    kept = client.calls[0]["prompt"]
    assert kept.startswith("start ")
    assert kept.endswith(" end")
    assert " characters … " in kept
    assert len(str(client.calls)) < 1.1 * MOST_CHARACTERS
    assert len(client.calls) + client.left_out == 20


def test_a_trial_may_make_so_many_calls() -> None:
    host = Host(trial_calls=2)
    client = ModelClient(host)
    for _ in range(3):
        client.begin()
        client.model("a")
        client.model("a")  # a known answer counts: a score must not depend on the cache
        with pytest.raises(TrialCapError, match="the cap is 2 calls"):
            client.model("b")
    assert host.asked.count("model") == 6
    assert host.asked.count("model_facts") == 1


def test_a_trial_may_take_so_many_tokens() -> None:
    client = ModelClient(Host(trial_tokens=150))
    client.model("a")
    client.model("a")
    with pytest.raises(TrialCapError, match="2 calls and 220 tokens"):
        client.model("a")


def test_a_stub_has_the_caps_it_is_given() -> None:
    client = ModelClient(StubModel(trial_calls=1))
    client.model("a")
    with pytest.raises(TrialCapError):
        client.model("a")


@pytest.mark.parametrize("name", ["api_key", "base_url", "name", "system", "headers"])
def test_there_is_no_argument_for_keys_or_another_model(name: str) -> None:
    client = ModelClient(Host())
    with pytest.raises(TypeError):
        inspect.signature(client.services["model"]).bind(prompt="a", **{name: "x"})


def test_the_stub_answers_by_rote() -> None:
    client = ModelClient(StubModel())
    assert client.model("Wet?")["text"] == "stub"
    assert client.model("Wet?", choices=["yes", "no"])["text"] == "yes"
    scores = client.model("Wet?", choices=["yes", "no"], scores=True)["scores"]
    assert scores["yes"] == scores["no"] == pytest.approx(-0.693, abs=0.001)
    assert client.count(["one two", ""]) == [2, 0]
    assert client.facts()["name"] == "stub"
    assert client.usage == Usage()


def test_the_stub_reads_requests_as_strictly_as_the_engine() -> None:
    services = StubModel(gives_scores=False).services
    for wrong in ({"prompt": 5}, {"prompt": "a", "choices": ["b"], "scores": True}):
        with pytest.raises(RequestRefused):
            services["model"](**wrong)
    with pytest.raises(InputError, match="Did you mean 'count'"):
        StubModel().ask("counts")
