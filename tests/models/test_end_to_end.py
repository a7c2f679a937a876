"""From a candidate in its sandbox to a model and back."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from coevolve.models.gateway import Gateway
from coevolve.models.model_errors import ContextTooLong, ModelKeyError, ModelUnavailable
from coevolve.models.model_spend import Prices
from coevolve.models.provider import Caps
from coevolve.models.rate_limits import Retrying
from coevolve.models.response_cache import ResponseCache
from coevolve.search.trials import Blame, Fault, Result
from tests.executors.projects import Project, trial
from tests.models.fakes import FakeProvider

BENCHMARK = """
from coevolve.executors.workload import Score
from coevolve.models.model_client import ModelClient


class Benchmark:
    def __init__(self, host):
        self.model = ModelClient(host)

    def check(self, harness):
        pass

    def prepare(self, harness):
        pass

    def run(self, harness, task, trial):
        self.model.begin()
        said = harness.call(task, services=self.model.services)
        return Score(value=1.0, trace={"said": said, "calls": self.model.calls})
"""

HARNESS = b"""
import coevolve_host


def ask(**request):
    return coevolve_host.ask("model", **request)


def plain():
    return ask(prompt="Wet?", choices=["yes", "no"])["text"]


def many():
    return [ask(prompt=f"question {n}")["text"] for n in range(5)]


def malformed():
    return ask(prompt=["Wet?"])


def another():
    return ask(prompt="Wet?", name="a-larger-model", api_key="mine")


def another_somehow():
    try:
        return ask(prompt="Wet?", base_url="http://elsewhere")
    except coevolve_host.AskError as error:
        return str(error)


def facts():
    return coevolve_host.ask("model_facts")


def count():
    return coevolve_host.ask("count", texts=["one", "three"])
"""


def ran(folder: Path, gateway: Gateway, *tasks: str) -> list[Result]:
    """Results of tasks, one after another."""
    project = Project(folder, BENCHMARK)
    candidate = project.contents.candidate(HARNESS)

    async def whole() -> list[Result]:
        executor = project.executor(services=gateway.services(), isolation="auto")
        try:
            return [await executor.run(candidate, trial(task)) for task in tasks]
        finally:
            await executor.close()
            await gateway.close()

    return asyncio.run(whole())


def said(result: Result) -> Any:
    assert result.fault is None
    return json.loads(result.trace or "")["trace"]["said"]


def fault(result: Result) -> Fault:
    assert result.fault is not None
    return result.fault


def test_an_answer_comes_back_is_paid_once_and_is_in_the_trace(tmp_path: Path) -> None:
    provider = FakeProvider("no")
    gateway = Gateway(
        provider,
        cache=ResponseCache(tmp_path / "cache.db"),
        prices=Prices(tokens_in=5000, tokens_out=0),
    )
    first, second = ran(tmp_path, gateway, "plain", "plain")
    assert said(first) == said(second) == "no"
    assert len(provider.asked) == 1
    assert (first.usage.tokens_in, first.usage.dollars) == (100, 0.5)
    assert (second.usage.tokens_in, second.usage.dollars) == (0, 0.0)
    [call] = json.loads(first.trace or "")["trace"]["calls"]
    assert (call["prompt"], call["answer"]["text"]) == ("Wet?", "no")


def test_a_candidate_can_count_and_ask_for_the_facts(tmp_path: Path) -> None:
    counted, facts = ran(tmp_path, Gateway(FakeProvider()), "count", "facts")
    assert said(counted) == [3, 5]
    caps = {"trial_calls", "trial_tokens"}
    assert said(facts).keys() == {"name", "window", "scores", "tools", *caps}


def test_a_candidate_reaches_no_other_model_address_or_key(tmp_path: Path) -> None:
    provider = FakeProvider()
    another, somehow = ran(tmp_path, Gateway(provider), "another", "another_somehow")
    assert fault(another).blame is Blame.CANDIDATE
    assert "unexpected keyword argument 'name'" in fault(another).reason
    assert "unexpected keyword argument 'base_url'" in said(somehow)
    assert provider.asked == []


def test_a_request_that_is_none_is_the_candidate_s_fault(tmp_path: Path) -> None:
    [result] = ran(tmp_path, Gateway(FakeProvider()), "malformed")
    assert (fault(result).blame, fault(result).kind) == (Blame.CANDIDATE, "RequestRefused")
    assert "prompt must be text, got ['Wet?']" in fault(result).reason


def test_a_trial_above_its_cap_is_the_candidate_s_fault_and_the_next_runs(
    tmp_path: Path,
) -> None:
    gateway = Gateway(FakeProvider(), caps=Caps(trial_calls=4))
    many, facts = ran(tmp_path, gateway, "many", "facts")
    assert (fault(many).blame, fault(many).kind) == (Blame.CANDIDATE, "TrialCapError")
    assert many.usage.tokens_in == 400
    assert said(facts)["trial_calls"] == 4


def test_a_trial_after_the_cap_of_the_run_is_a_fault_of_the_infrastructure(tmp_path: Path) -> None:
    [result] = ran(tmp_path, Gateway(FakeProvider(), caps=Caps(tokens=330)), "many")
    assert (fault(result).blame, fault(result).kind) == (Blame.INFRASTRUCTURE, "ModelCapError")
    assert "the cap is 330 tokens" in fault(result).reason


@pytest.mark.parametrize(
    ("error", "blame"),
    [
        (ModelKeyError("401"), Blame.OPERATOR),
        (ModelUnavailable("503"), Blame.INFRASTRUCTURE),
        (ContextTooLong("9,000 tokens, of 4,096"), Blame.CANDIDATE),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_the_model_fails_with_reaches_the_engine(
    tmp_path: Path, error: Exception, blame: Blame
) -> None:
    gateway = Gateway(FakeProvider(*[error] * 4), retrying=Retrying(attempts=1))
    [result] = ran(tmp_path, gateway, "plain")
    assert (fault(result).blame, fault(result).kind) == (blame, type(error).__name__)
    assert not fault(result).shared  # a candidate may have brought it about


def test_a_request_that_is_not_answered_while_others_are_is_doubtful(tmp_path: Path) -> None:
    gateway = Gateway(FakeProvider(ModelUnavailable("429")), retrying=Retrying(attempts=1))
    [result] = ran(tmp_path, gateway, "plain")
    assert (fault(result).blame, fault(result).kind) == (Blame.DOUBTFUL, "RequestUnanswered")
    assert "answered another request" in fault(result).reason
