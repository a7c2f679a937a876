"""The same error of a service gets the same blame from a benchmark and through the gateway."""

from typing import Any

import pytest

from coevolve.executors.failure_table import WORDS
from coevolve.executors.failures import classify
from coevolve.models.hosted_service import Service, understood
from coevolve.models.provider import ModelRequest
from coevolve.search.trials import Blame
from coevolve.service_words import CONTEXT, CREDIT, KEY, POLICY, WAIT, Meaning, meaning_of

LISTS = {
    Meaning.NO_CREDIT: CREDIT,
    Meaning.KEY_REFUSED: KEY,
    Meaning.TOO_LONG: CONTEXT,
    Meaning.NOT_ANSWERED: POLICY,
}
WORD_AND_MEANING = [(word, meaning) for meaning, words in LISTS.items() for word in words]


def error(text: str, status: int) -> Exception:
    """An error as an API client raises it, with the response of the service."""
    response = type("Response", (), {"headers": {"content-type": "application/json"}})()
    attributes: dict[str, Any] = {"status_code": status, "response": response}
    base = type("APIStatusError", (Exception,), {})
    name = "RateLimitError" if status == 429 else "APIError"
    found: Exception = type(name, (base,), attributes)(text)
    return found


def blames(text: str, status: int) -> tuple[Blame, Blame]:
    """The blame if a benchmark's own call fails so, and if a call through the gateway does."""
    service = Service(name="served", base_url="http://localhost:8000/v1")
    request = ModelRequest(prompt="Is water wet?", max_tokens=10, temperature=0.0)
    failed = error(text, status)
    return classify(failed).blame, classify(understood(failed, service, request)).blame


@pytest.mark.parametrize(("word", "meaning"), WORD_AND_MEANING)
@pytest.mark.parametrize("case", [str.lower, str.upper])
def test_each_word_has_its_meaning(word: str, meaning: Meaning, case: Any) -> None:
    assert meaning_of(case(f"Error: {word}!"), 400) is meaning


@pytest.mark.parametrize(("word", "meaning"), WORD_AND_MEANING)
def test_both_ways_to_a_model_give_the_blame_of_the_table(word: str, meaning: Meaning) -> None:
    assert blames(f"Error: {word}!", 400) == (WORDS[meaning].blame, WORDS[meaning].blame)


@pytest.mark.parametrize("status", [401, 402, 403, 404, 408, 413, 429, 500, 503])
@pytest.mark.parametrize("word", ["", *(words[0] for words in LISTS.values())])
def test_both_agree_on_every_status(status: int, word: str) -> None:
    benchmark, gateway = blames(f"Error: {word}!", status)
    assert benchmark is gateway


@pytest.mark.parametrize("word", CREDIT)
@pytest.mark.parametrize("wait", WAIT)
def test_a_quota_that_comes_back_is_a_rate_limit(word: str, wait: str) -> None:
    assert blames(f"{word}; {wait} 20 s", 429) == (Blame.INFRASTRUCTURE, Blame.INFRASTRUCTURE)


@pytest.mark.parametrize("word", [*CONTEXT, *POLICY])
@pytest.mark.parametrize("status", [0, 401, 429, 500])
def test_a_prompt_is_not_blamed_for_a_service_that_is_busy(word: str, status: int) -> None:
    assert meaning_of(word, status) is None
