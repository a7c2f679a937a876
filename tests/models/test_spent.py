"""Caps on what a run spends on a model."""

from pathlib import Path

import pytest

from coevolve.core.outcomes import Usage
from coevolve.errors import ConfigError
from coevolve.models.call_recording import Recorder, ReplayProvider
from coevolve.models.gateway import Gateway
from coevolve.models.model_errors import ModelCapError
from coevolve.models.model_spend import Prices
from coevolve.models.provider import Caps
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
        (Caps(tokens=330), 3, "the cap is 330 tokens"),
        (Caps(tokens=331), 4, "has spent 440 tokens and 4.00 dollars on the model"),
        (Caps(dollars=2.5), 3, "the cap is 2.5 dollars"),
    ],
)
def test_a_cap_lets_no_further_call_pass_and_says_which(caps: Caps, calls: int, said: str) -> None:
    provider = FakeProvider()
    text = served(Gateway(provider, caps=caps, prices=DOLLAR_A_CALL), until_capped)
    assert len(provider.asked) == calls
    assert said in text


def test_what_earlier_sessions_spent_counts() -> None:
    provider = FakeProvider()
    before = Usage(tokens_in=500, tokens_out=50)
    gateway = Gateway(provider, caps=Caps(tokens=770), spent=before)
    served(gateway, until_capped)
    assert len(provider.asked) == 2
    assert gateway.spent == Usage(tokens_in=700, tokens_out=70)


def test_known_answers_are_given_past_the_cap(tmp_path: Path) -> None:
    provider = FakeProvider()

    async def use(gateway: Gateway) -> None:
        await gateway.ask(prompt="a")
        with pytest.raises(ModelCapError):
            await gateway.ask(prompt="b")
        assert (await gateway.ask(prompt="a"))["cached"]

    cache = ResponseCache(tmp_path / "cache.db")
    served(Gateway(provider, caps=Caps(tokens=110), cache=cache), use)


def test_a_cap_of_dollars_needs_prices(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"needs the price of the model.*price_in and price_out"):
        Gateway(FakeProvider(), caps=Caps(dollars=5))
    provider = FakeProvider()
    recorder = Recorder(tmp_path / "calls.jsonl", provider)
    served(Gateway(provider, recorder=recorder), lambda gateway: gateway.ask(prompt="a"))
    Gateway(ReplayProvider(tmp_path / "calls.jsonl"), caps=Caps(dollars=5))  # it knows the cost
