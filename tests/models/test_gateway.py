"""The one way to a model: at its pace, again where that helps, and once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from coevolve.core.outcomes import Usage
from coevolve.executors.failures import classify
from coevolve.executors.worker_process import stated_usage
from coevolve.models.gateway import PROBE, Gateway
from coevolve.models.model_errors import (
    ModelError,
    ModelKeyError,
    ModelNotFound,
    ModelReplyError,
    ModelUnavailable,
    NoChoice,
    RequestRefused,
    RequestUnanswered,
)
from coevolve.models.model_spend import Prices
from coevolve.models.provider import Caps, ModelRequest, Sampling
from coevolve.models.rate_limits import Pace, Retrying
from coevolve.models.response_cache import ResponseCache
from tests.models.fakes import FakeProvider, FakeTime, asked, reply, served

CHOICE = {"prompt": "Wet?", "choices": ["yes", "no"]}


def cached(tmp_path: Path) -> ResponseCache:
    return ResponseCache(tmp_path / "cache.db")


def patient(**settings: Any) -> Retrying:
    return Retrying(**settings, sleep=FakeTime().sleep)


def test_an_answer_says_all_there_is_to_know() -> None:
    prices = Prices(tokens_in=1000, tokens_out=10_000)
    gateway = Gateway(FakeProvider(reply("yes", finish="length")), prices=prices)
    assert asked(gateway, {"prompt": "Wet?"}) == [
        {
            "text": "yes",
            "finish": "length",
            "scores": None,
            "cached": False,
            "usage": {"tokens_in": 100, "tokens_out": 10, "dollars": 0.2},
        }
    ]
    assert gateway.spent == Usage(tokens_in=100, tokens_out=10, dollars=0.2)
    assert (gateway.calls, gateway.cached) == (1, 0)


def test_without_prices_the_word_of_the_provider_counts() -> None:
    [answer] = asked(Gateway(FakeProvider(reply(dollars=0.5))), {"prompt": "Wet?"})
    assert answer["usage"]["dollars"] == 0.5


def test_a_known_answer_costs_nothing_and_says_what_it_saved(tmp_path: Path) -> None:
    provider = FakeProvider(reply("yes", finish="length", dollars=0.5))
    gateway = Gateway(provider, cache=cached(tmp_path))
    first, second = asked(gateway, {"prompt": "Wet?"}, {"prompt": "Wet?"})
    assert len(provider.asked) == 1
    assert not first["cached"]
    assert "saved" not in first
    assert second == {
        **first,
        "cached": True,
        "usage": {"tokens_in": 0, "tokens_out": 0, "dollars": 0.0},
        "saved": {"tokens_in": 100, "tokens_out": 10, "dollars": 0.5},
    }
    assert gateway.spent == Usage(tokens_in=100, tokens_out=10, dollars=0.5)
    assert (gateway.calls, gateway.cached) == (1, 1)


def test_another_sample_or_setting_is_another_question(tmp_path: Path) -> None:
    provider = FakeProvider()
    others: list[dict[str, Any]] = [
        {"sample": 1},
        {"temperature": 0.1},
        {"max_tokens": 5},
        {"stop": ["."]},
    ]
    payloads = [{"prompt": "Wet?", **other} for other in [{}, *others]]
    gateway = Gateway(provider, cache=cached(tmp_path), sampling=Sampling(temperature=0.0))
    assert len({answer["text"] for answer in asked(gateway, *payloads)}) == 5
    terse = Gateway(
        provider, cache=cached(tmp_path), sampling=Sampling(system="Be brief.", temperature=0.0)
    )
    assert asked(terse, {"prompt": "Wet?"})[0]["text"] == "answer 6"


def test_a_cache_is_shared_between_runs_but_not_between_models(tmp_path: Path) -> None:
    def text(provider: FakeProvider) -> str:
        [answer] = asked(Gateway(provider, cache=cached(tmp_path)), {"prompt": "Wet?"})
        return str(answer["text"])

    assert text(FakeProvider("one")) == "one"
    assert text(FakeProvider("two")) == "one"
    assert text(FakeProvider("three", name="other")) == "three"


def test_without_a_cache_every_call_is_asked_also_two_at_once() -> None:
    provider = FakeProvider()

    async def use(gateway: Gateway) -> None:
        await asyncio.gather(*(gateway.ask(prompt="Wet?") for _ in range(3)))

    served(Gateway(provider), use)
    assert len(provider.asked) == 3


def test_two_that_ask_the_same_at_once_share_one_call(tmp_path: Path) -> None:
    provider = FakeProvider(act=lambda _: asyncio.sleep(0.02))
    gateway = Gateway(provider, cache=cached(tmp_path))

    async def use(gateway: Gateway) -> list[dict[str, Any]]:
        return await asyncio.gather(*(gateway.ask(prompt="Wet?") for _ in range(5)))

    answers = served(gateway, use)
    assert len(provider.asked) == 1
    assert {answer["text"] for answer in answers} == {"answer 1"}
    assert sorted(answer["cached"] for answer in answers) == [False] + [True] * 4
    assert sum(answer["usage"]["tokens_in"] for answer in answers) == 100
    assert gateway.spent == Usage(tokens_in=100, tokens_out=10)
    assert (gateway.calls, gateway.cached) == (1, 4)


def test_the_number_of_calls_at_once_is_limited(tmp_path: Path) -> None:
    provider = FakeProvider(act=lambda _: asyncio.sleep(0.005))

    async def use(gateway: Gateway) -> None:
        await asyncio.gather(*(gateway.ask(prompt=f"question {n}") for n in range(30)))

    served(Gateway(provider, pace=Pace(concurrency=4), cache=cached(tmp_path)), use)
    assert len(provider.asked) == 30
    assert provider.most_running == 4


def test_a_call_that_waits_for_its_next_attempt_leaves_its_place_to_others() -> None:
    provider = FakeProvider(ModelUnavailable("busy"), "one", "two")
    order = []

    async def sleep(seconds: float) -> None:
        while len(provider.asked) < 2:
            await asyncio.sleep(0.001)

    async def ask(gateway: Gateway, prompt: str) -> None:
        await gateway.ask(prompt=prompt)
        order.append(prompt)

    async def use(gateway: Gateway) -> None:
        async with asyncio.timeout(30):
            await asyncio.gather(ask(gateway, "first"), ask(gateway, "second"))

    served(Gateway(provider, pace=Pace(concurrency=1), retrying=Retrying(sleep=sleep)), use)
    assert order == ["second", "first"]


def test_what_may_pass_is_asked_again_and_only_the_answer_is_kept(tmp_path: Path) -> None:
    provider = FakeProvider(ModelUnavailable("busy"), ModelReplyError("cut off"), "yes")
    gateway = Gateway(provider, retrying=patient(), cache=cached(tmp_path))
    answers = asked(gateway, {"prompt": "Wet?"}, {"prompt": "Wet?"})
    assert [answer["text"] for answer in answers] == ["yes", "yes"]
    assert len(provider.asked) == 3
    assert gateway.calls == 1


def test_failures_are_not_kept(tmp_path: Path) -> None:
    busy = [ModelUnavailable("busy")] * 5  # two attempts and three probes
    provider = FakeProvider(*busy, "yes")

    async def use(gateway: Gateway) -> str:
        with pytest.raises(ModelUnavailable, match=r"after 2 attempts"):
            await gateway.ask(prompt="Wet?")
        return str((await gateway.ask(prompt="Wet?"))["text"])

    gateway = Gateway(provider, retrying=patient(attempts=2), cache=cached(tmp_path))
    assert served(gateway, use) == "yes"


def test_a_request_without_an_answer_is_compared_with_a_probe() -> None:
    provider = FakeProvider(ModelUnavailable("429"), "yes", ModelUnavailable("429"), "late")

    told = Usage()

    async def use(gateway: Gateway) -> None:
        nonlocal told
        for _ in range(2):  # the probe counts for both
            with pytest.raises(RequestUnanswered, match="answered another request") as caught:
                await gateway.ask(prompt="Wet?")
            told += stated_usage({"usage": caught.value.usage})

    gateway = Gateway(provider, retrying=patient(attempts=1))
    served(gateway, use)
    assert told == gateway.spent  # the trial that made the probe necessary pays for it
    assert [request.prompt for request in provider.asked] == ["Wet?", PROBE, "Wet?"]
    assert gateway.calls == 1
    assert gateway.spent.tokens_in > 0


def test_a_service_that_does_not_answer_the_probe_either_proves_nothing() -> None:
    provider = FakeProvider(*[ModelUnavailable("503")] * 4)
    with pytest.raises(ModelUnavailable) as caught:
        asked(Gateway(provider, retrying=patient(attempts=1)), {"prompt": "Wet?"})
    assert type(caught.value) is ModelUnavailable
    assert not classify(caught.value).shared  # the candidate may have used up the rate limit


@pytest.mark.parametrize("refusal", [ModelKeyError("403"), ModelNotFound("404")])
def test_a_refusal_after_an_answer_stops_the_run_only_if_others_are_refused(
    refusal: ModelError,
) -> None:
    def after_an_answer(*answers: ModelError | str) -> type[ModelError]:
        gateway = Gateway(FakeProvider("yes", refusal, *answers), retrying=patient(attempts=1))
        with pytest.raises(ModelError) as caught:
            asked(gateway, {"prompt": "Wet?"}, {"prompt": "a trap"})
        return type(caught.value)

    assert after_an_answer("yes") is RequestUnanswered
    assert after_an_answer(*[refusal] * 3) is type(refusal)


def test_what_will_not_pass_is_asked_once() -> None:
    provider = FakeProvider(ModelKeyError("401"))
    with pytest.raises(ModelKeyError):
        asked(Gateway(provider, retrying=patient()), {"prompt": "Wet?"})
    assert len(provider.asked) == 1


def test_a_model_that_hangs_is_asked_again() -> None:
    async def hang_once(request: ModelRequest) -> None:
        if len(provider.asked) == 1:
            await asyncio.Event().wait()

    provider = FakeProvider("never", "yes", act=hang_once)
    [answer] = asked(Gateway(provider, retrying=patient(seconds=0.05)), {"prompt": "Wet?"})
    assert answer["text"] == "yes"
    assert provider.running == 0


def test_an_answer_that_is_none_of_the_choices_is_refused_and_not_cached(tmp_path: Path) -> None:
    provider = FakeProvider("maybe", "no")

    async def use(gateway: Gateway) -> str:
        with pytest.raises(NoChoice, match=r"answered 'maybe', which is none of the 2") as caught:
            await gateway.ask(**CHOICE)
        assert caught.value.usage == {"tokens_in": 100, "tokens_out": 10, "dollars": 0.0}
        return str((await gateway.ask(**CHOICE))["text"])

    gateway = Gateway(provider, cache=cached(tmp_path))
    assert served(gateway, use) == "no"
    assert gateway.calls == 2


@pytest.mark.parametrize("scores", [None, {"yes": -0.1}, {"yes": float("-inf"), "no": -0.1}])
def test_scores_that_were_asked_for_must_come(scores: dict[str, float] | None) -> None:
    right = {"yes": -0.1, "no": -2.0}
    provider = FakeProvider(reply("yes", scores=scores), reply("yes", scores=right))
    gateway = Gateway(provider, retrying=patient())
    [answer] = asked(gateway, {**CHOICE, "scores": True})
    assert answer["scores"] == right
    assert answer["usage"]["tokens_in"] == 200  # both were paid for
    assert gateway.spent.tokens_in == 200


def test_a_request_that_is_none_never_reaches_the_model() -> None:
    provider = FakeProvider(gives_scores=False)
    for payload in ({"prompt": 5}, {"prompt": "a", "model": "other"}, {**CHOICE, "scores": True}):
        with pytest.raises(RequestRefused):
            asked(Gateway(provider), payload)
    assert provider.asked == []


def test_the_model_gets_what_is_configured() -> None:
    provider = FakeProvider()
    sampling = Sampling(temperature=0.7, max_tokens=9, system="Be brief.", reasoning_effort="low")
    asked(Gateway(provider, sampling=sampling), {"prompt": "Wet?"})
    assert provider.asked == [
        ModelRequest(
            prompt="Wet?",
            system="Be brief.",
            temperature=0.7,
            max_tokens=9,
            reasoning_effort="low",
        )
    ]


def test_services_count_tokens_and_know_the_facts() -> None:
    gateway = Gateway(FakeProvider(), caps=Caps(trial_calls=3, trial_tokens=500))
    services = gateway.services()
    assert services.keys() == {"model", "count", "model_facts", "model_answers"}
    assert services["model_facts"]() == {
        "name": "fake",
        "window": 4096,
        "scores": True,
        "tools": False,
        "trial_calls": 3,
        "trial_tokens": 500,
    }

    async def use(gateway: Gateway) -> None:
        assert await services["count"](texts=["one", "three"]) == [3, 5]
        with pytest.raises(RequestRefused, match="list of texts"):
            await services["count"](texts="one")

    served(gateway, use)


def test_a_cancelled_call_ends_at_the_model_and_another_is_asked_anew(tmp_path: Path) -> None:
    async def hang_once(request: ModelRequest) -> None:
        if len(provider.asked) == 1:
            await asyncio.Event().wait()

    provider = FakeProvider(act=hang_once)

    async def use(gateway: Gateway) -> str:
        call = asyncio.create_task(gateway.ask(prompt="Wet?"))
        while not provider.running:
            await asyncio.sleep(0.001)
        call.cancel()
        await asyncio.wait([call])
        assert call.cancelled()
        return str((await gateway.ask(prompt="Wet?"))["text"])

    assert served(Gateway(provider, cache=cached(tmp_path)), use) == "answer 2"
    assert provider.running == 0


def test_closing_closes_all_and_ends_running_calls(tmp_path: Path) -> None:
    provider = FakeProvider(act=lambda _: asyncio.Event().wait())
    cache = cached(tmp_path)

    async def use(gateway: Gateway) -> None:
        call = asyncio.create_task(gateway.ask(prompt="Wet?"))
        while not provider.running:
            await asyncio.sleep(0.001)
        await gateway.close()
        with pytest.raises(ModelUnavailable, match="closed"):
            await call

    served(Gateway(provider, cache=cache), use)
    assert provider.closed
    assert provider.running == 0
