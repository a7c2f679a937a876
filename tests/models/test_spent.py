"""What a run may spend on a model: it stops there, and goes on when more is allowed."""

import asyncio
from pathlib import Path

import pytest

from coevolve.errors import ConfigError
from coevolve.models.call_recording import Recorder, ReplayProvider
from coevolve.models.gateway import Gateway
from coevolve.models.model_errors import ModelCapError
from coevolve.models.model_spend import Prices, Spent
from coevolve.models.provider import Caps
from coevolve.models.rate_limits import Pace
from coevolve.models.response_cache import ResponseCache
from tests.models.fakes import FakeProvider, served

DOLLAR_A_CALL = Prices(tokens_in=10_000, tokens_out=0)


async def until_capped(gateway: Gateway) -> str:
    """Ask one question after another until the gateway refuses; what it says then."""
    try:
        for number in range(100):
            await gateway.ask(prompt=f"question {number}")
    except ModelCapError as error:
        return str(error)
    raise AssertionError("it never refused")


@pytest.mark.parametrize(
    ("caps", "calls", "said"),
    [
        (Caps(calls=7), 7, "may spend 7 calls on the model, and has spent 7 calls"),
        (Caps(tokens=330), 3, "may spend 330 tokens"),
        (Caps(tokens=331), 4, "has spent 4 calls, 440 tokens and 4.00 dollars"),
        (Caps(dollars=2.5), 3, "may spend 2.5 dollars"),
    ],
)
def test_a_cap_lets_no_further_call_pass_and_says_which(caps: Caps, calls: int, said: str) -> None:
    provider = FakeProvider()
    text = served(Gateway(provider, caps=caps, prices=DOLLAR_A_CALL), until_capped)
    assert len(provider.asked) == calls
    assert said in text


def test_what_earlier_sessions_spent_counts() -> None:
    provider = FakeProvider()
    before = Spent.from_json(Spent(calls=5, tokens_in=500, tokens_out=50).to_json())
    gateway = Gateway(provider, caps=Caps(calls=7), spent=before)
    served(gateway, until_capped)
    assert len(provider.asked) == 2
    assert gateway.spent == Spent(calls=7, tokens_in=700, tokens_out=70)


def test_calls_under_way_at_once_do_not_pass_the_cap() -> None:
    provider = FakeProvider(act=lambda _: asyncio.sleep(0.005))

    async def use(gateway: Gateway) -> list[object]:
        calls = (gateway.ask(prompt=f"question {n}") for n in range(20))
        return list(await asyncio.gather(*calls, return_exceptions=True))

    answers = served(Gateway(provider, caps=Caps(calls=5), pace=Pace(concurrency=8)), use)
    assert len(provider.asked) == 5
    assert sum(isinstance(answer, ModelCapError) for answer in answers) == 15


def test_known_answers_are_given_past_the_cap(tmp_path: Path) -> None:
    provider = FakeProvider()

    async def use(gateway: Gateway) -> None:
        await gateway.ask(prompt="a")
        with pytest.raises(ModelCapError):
            await gateway.ask(prompt="b")
        assert (await gateway.ask(prompt="a"))["cached"]

    cache = ResponseCache(tmp_path / "cache.db")
    served(Gateway(provider, caps=Caps(calls=1), cache=cache), use)


def test_a_cap_of_dollars_needs_prices(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"needs the price of the model.*price_in and price_out"):
        Gateway(FakeProvider(), caps=Caps(dollars=5))
    provider = FakeProvider()
    recorder = Recorder(tmp_path / "calls.jsonl", provider)
    served(Gateway(provider, recorder=recorder), lambda gateway: gateway.ask(prompt="a"))
    Gateway(ReplayProvider(tmp_path / "calls.jsonl"), caps=Caps(dollars=5))  # it knows the cost
