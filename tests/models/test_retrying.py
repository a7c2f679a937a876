"""What is asked again, how often, and after how long."""

import asyncio
from typing import Any

import pytest

from coevolve.errors import ConfigError
from coevolve.models.model_errors import (
    ContextTooLong,
    ModelCapError,
    ModelError,
    ModelKeyError,
    ModelNotFound,
    ModelReplyError,
    ModelUnavailable,
    NoChoice,
    NotRecorded,
    RequestRefused,
)
from coevolve.models.rate_limits import Retrying
from tests.models.fakes import FakeTime

KEY = "0123456789abcdef" * 4


def tried(errors: list[Exception], key: str = KEY, **settings: Any) -> tuple[FakeTime, int]:
    """The clock afterwards, and how many attempts were made until one gave an answer."""
    time, left, made = FakeTime(), list(errors), 0

    async def ask() -> str:
        nonlocal made
        made += 1
        if left:
            raise left.pop(0)
        return "yes"

    retrying = Retrying(**settings, sleep=time.sleep)

    async def whole() -> str:
        return await retrying(key, ask)

    assert asyncio.run(whole()) == "yes"
    return time, made


def test_what_may_pass_is_tried_again_after_waits_that_grow() -> None:
    time, made = tried(
        [ModelUnavailable("busy"), ModelReplyError("cut off"), ModelUnavailable("")]
    )
    assert made == 4
    assert len(time.slept) == 3
    for attempt, slept in enumerate(time.slept):
        assert 0 <= slept <= 2**attempt


def test_the_jitter_comes_from_the_seed_and_the_request() -> None:
    def slept(key: str, seed: int) -> list[float]:
        return tried([ModelUnavailable("busy") for _ in range(3)], key, seed=seed)[0].slept

    assert slept(KEY, 1) == slept(KEY, 1)
    assert len({tuple(slept(KEY, 1)), tuple(slept(KEY, 2)), tuple(slept(KEY[1:], 1))}) == 3


def test_a_service_that_says_how_long_is_left_alone_so_long() -> None:
    time, _ = tried([ModelUnavailable("429", retry_after=33.0)])
    assert time.slept == [33.0]


def test_but_not_for_ever() -> None:
    time, _ = tried([ModelUnavailable("429", retry_after=86_400.0)], longest_wait=90)
    assert time.slept == [90]


def test_a_short_wish_does_not_shorten_the_wait() -> None:
    plain, _ = tried([ModelUnavailable("busy") for _ in range(3)])
    polite, _ = tried([ModelUnavailable("busy", retry_after=0.0) for _ in range(3)])
    assert polite.slept == plain.slept


def test_after_the_last_attempt_the_error_is_raised() -> None:
    errors: list[Exception] = [ModelUnavailable("busy") for _ in range(3)]
    with pytest.raises(ModelUnavailable, match=r"busy \(after 3 attempts\)"):
        tried(errors, attempts=3)


@pytest.mark.parametrize(
    "kind",
    [
        ContextTooLong,
        RequestRefused,
        ModelKeyError,
        ModelNotFound,
        ModelCapError,
        NotRecorded,
        NoChoice,
        ValueError,
    ],
)
def test_what_will_not_pass_is_not_tried_again(kind: type[Exception]) -> None:
    errors = [kind("no"), ModelError("never met")]
    with pytest.raises(kind, match=r"^no$"):
        tried(errors)
    assert len(errors) == 2


def test_an_answer_after_the_time_out_is_an_error() -> None:
    retrying = Retrying(seconds=0.01)

    async def hang() -> None:
        await retrying.in_time(asyncio.Event().wait())

    with pytest.raises(ModelUnavailable, match=r"did not answer within 0.01 s"):
        asyncio.run(hang())


def test_a_provider_s_own_time_out_is_not_taken_for_it() -> None:
    async def late() -> None:
        raise TimeoutError("of its own")

    async def whole() -> None:
        await Retrying().in_time(late())

    with pytest.raises(TimeoutError, match="of its own"):
        asyncio.run(whole())


@pytest.mark.parametrize("name", ["attempts", "seconds", "longest_wait"])
def test_settings_are_positive(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        Retrying(**{name: 0})  # type: ignore[arg-type]
