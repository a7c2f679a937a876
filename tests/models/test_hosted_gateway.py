"""The gateway and a hosted model together, over HTTP."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from coevolve.core.outcomes import Usage
from coevolve.models.gateway import Gateway
from coevolve.models.model_errors import ContextTooLong, ModelKeyError, ModelUnavailable, NoChoice
from coevolve.models.rate_limits import Pace, Retrying
from coevolve.models.response_cache import ResponseCache
from tests.models.endpoint import Act, Endpoint, cuts, drops, hangs, raw, refuses, says
from tests.models.fakes import FakeTime, asked
from tests.models.hosting import KEY, provider

ASKED = {"prompt": "Is water wet?"}


def gateway(endpoint: Endpoint, *, time: FakeTime | None = None, **given: Any) -> Gateway:
    parts = {"timeout": 20.0, **given}
    cache = parts.pop("cache", None)
    retrying = Retrying(attempts=3, sleep=(time or FakeTime()).sleep)
    return Gateway(provider(endpoint, **parts), retrying=retrying, cache=cache)


def test_service_that_wants_fewer_requests_is_asked_again_and_counted_once() -> None:
    time = FakeTime()
    with Endpoint([refuses(429, retry_after=30), says("yes", tokens=12)]) as endpoint:
        model = gateway(endpoint, time=time)
        [answer] = asked(model, ASKED)
    assert answer["text"] == "yes"
    assert answer["usage"] == {"tokens_in": 12, "tokens_out": 1, "dollars": 0.0}
    assert model.spent == Usage(tokens_in=12, tokens_out=1)
    assert len(endpoint.seen) == 2
    assert [seconds >= 30 for seconds in time.slept] == [True]


@pytest.mark.parametrize(
    "act",
    [refuses(500), refuses(503), cuts(), drops(), raw(b'{"choices": ['), Act(body={}), says(None)],
)
def test_what_passes_is_asked_again(act: Act) -> None:
    with Endpoint([act, act, says("yes")]) as endpoint:
        model = gateway(endpoint)
        assert asked(model, ASKED)[0]["text"] == "yes"
    assert len(endpoint.seen) == 3
    assert model.calls == 1


def test_answer_that_does_not_come_in_time_is_asked_for_again() -> None:
    with Endpoint([hangs(), says("yes")]) as endpoint:
        assert asked(gateway(endpoint, timeout=0.5), ASKED)[0]["text"] == "yes"
    assert len(endpoint.seen) == 2


def test_service_that_stays_away_is_given_up() -> None:
    with Endpoint(answer=lambda _: refuses(503)) as endpoint:
        model = gateway(endpoint)
        with pytest.raises(ModelUnavailable, match="answered 503"):
            asked(model, ASKED)
    assert len(endpoint.seen) == 3 + 3  # three attempts and three probes
    assert model.spent == Usage()


def test_wrong_key_is_found_out_by_one_request() -> None:
    with Endpoint(key="sk-another") as endpoint, pytest.raises(ModelKeyError) as caught:
        asked(gateway(endpoint), ASKED)
    assert len(endpoint.seen) == 1
    assert KEY not in str(caught.value)


def test_prompt_that_is_too_long_is_not_asked_again() -> None:
    long = refuses(400, "maximum context length is 10 tokens", code="context_length_exceeded")
    with Endpoint([long]) as endpoint, pytest.raises(ContextTooLong):
        asked(gateway(endpoint), {**ASKED, "max_tokens": 5})
    assert len(endpoint.seen) == 1


def test_answer_is_one_of_the_choices_or_an_error() -> None:
    choice = {**ASKED, "choices": ["yes", "no"]}
    with Endpoint([says("Yes.")], answer=lambda _: "perhaps") as endpoint:
        assert asked(gateway(endpoint), choice)[0]["text"] == "yes"
        with pytest.raises(NoChoice, match="perhaps"):
            asked(gateway(endpoint), choice)


def test_repeated_request_is_free(tmp_path: Path) -> None:
    with Endpoint([says("yes", tokens=12)]) as endpoint:
        model = gateway(endpoint, cache=ResponseCache(tmp_path / "cache.db"))
        first, second = asked(model, ASKED, ASKED)
    assert (first["cached"], second["cached"]) == (False, True)
    assert second["saved"]["tokens_in"] == 12
    assert len(endpoint.seen) == 1


def test_slots_bound_what_is_running_at_the_service() -> None:
    with Endpoint(latency=0.1) as endpoint:
        model = Gateway(provider(endpoint), pace=Pace(concurrency=4))

        async def ask() -> None:
            try:
                await asyncio.gather(*[model.ask(prompt=f"Number {i}?") for i in range(12)])
            finally:
                await model.close()

        asyncio.run(ask())
    assert len(endpoint.seen) == 12
    assert endpoint.busiest <= 4
