"""What calls cost."""

import subprocess
import sys

import pytest

from coevolve.errors import ConfigError
from coevolve.models.model_spend import Prices, price_of
from tests.models.fakes import reply


def test_tokens_have_their_prices_per_million() -> None:
    prices = Prices(tokens_in=0.5, tokens_out=4.0)
    priced = prices.priced(reply(tokens_in=2_000_000, tokens_out=250_000, tokens_kept=500_000))
    assert priced.dollars == pytest.approx(2.0)
    cheaper = Prices(tokens_in=0.5, tokens_out=4.0, tokens_kept=0.1)
    priced = cheaper.priced(reply(tokens_in=2_000_000, tokens_out=250_000, tokens_kept=500_000))
    assert priced.dollars == pytest.approx(0.75 + 0.05 + 1.0)


@pytest.mark.parametrize("price", [-1.0, float("nan"), float("inf")])
def test_no_price_is_negative(price: float) -> None:
    with pytest.raises(ConfigError, match="dollars per million tokens"):
        Prices(tokens_in=price, tokens_out=1.0)


def test_the_library_s_own_table_is_asked() -> None:
    pytest.importorskip("litellm")
    found = price_of("gpt-4o-mini")
    assert found == Prices(tokens_in=0.15, tokens_out=0.6, tokens_kept=0.075)
    assert price_of("openai/gpt-4o-mini") == found
    assert price_of("an-unknown-model") is None


def test_without_the_library_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['litellm'] = None\n"
        "from coevolve.models.model_spend import price_of\n"
        "try: price_of('gpt-4o-mini')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("ConfigError")
    assert "pip install 'task-coevolve[llm]'" in done.stdout


def test_the_gateway_needs_no_library() -> None:
    code = (
        "import sys, coevolve.models.gateway, coevolve.models.model_client\n"
        "import coevolve.models.call_recording\n"
        "print({'litellm', 'xllamacpp', 'sklearn', 'httpx'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
