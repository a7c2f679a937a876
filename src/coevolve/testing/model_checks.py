"""Conformance of model providers: whether one does what the gateway relies on."""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from coevolve.findings import Finding, failed, passed, raise_failed
from coevolve.models.model_errors import ModelError, NoChoice, RequestRefused
from coevolve.models.provider import ModelReply, ModelRequest, Provider
from coevolve.registry import described

_CHOICES = ("yes", "no")
_ATTEMPTS = 3
"""How often a model may miss all choices; the gateway asks again too."""


def assert_model(provider: Provider) -> None:
    """Raise an AssertionError that lists what `check_model` found wrong; for tests."""
    raise_failed(check_model(provider))


def check_model(provider: Provider) -> list[Finding]:
    """Send a model a few short requests, close the provider, and list the findings.

    A hosted model costs about ten requests of a few tokens.
    """
    return asyncio.run(_findings(provider))


async def _findings(provider: Provider) -> list[Finding]:
    lacking = [
        name
        for name in ("identity", "window", "gives_scores", "complete", "count", "close")
        if not hasattr(provider, name)
    ]
    if lacking:
        return [failed("shape", f"{type(provider).__name__} has no {', '.join(lacking)}")]
    return [await _checked(about, check, provider) for about, check in _CHECKS.items()]


async def _checked(
    about: str, check: Callable[[Provider], Awaitable[str]], provider: Provider
) -> Finding:
    try:
        return passed(about, await check(provider))
    except AssertionError as error:
        return failed(about, str(error))
    except ModelError as error:
        return failed(about, f"{type(error).__name__}: {error}")
    except Exception as error:
        return failed(
            about,
            described(error),
            "Raise the errors of coevolve.models.model_errors instead.",
        )


def _expect(true: bool, message: str) -> None:
    if not true:
        raise AssertionError(message)


def _request(prompt: str = "Is water wet?", **more: Any) -> ModelRequest:
    return ModelRequest(**{"prompt": prompt, "max_tokens": 16, "temperature": 0.0, **more})


async def _identity(provider: Provider) -> str:
    identity = provider.identity
    try:
        plain = json.loads(json.dumps(dict(identity), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise AssertionError(f"identity must be plain JSON: {error}") from error
    _expect(plain == dict(identity), f"identity changes in JSON: {identity!r}")
    _expect(dict(provider.identity) == plain, "identity must be the same every time")
    name = identity.get("name")
    _expect(isinstance(name, str) and bool(name), f"identity must have a name, got {identity!r}")
    window, scores = provider.window, provider.gives_scores
    whole = window is None or (isinstance(window, int) and window >= 1)
    _expect(whole, f"window must be None or a whole number of at least 1, got {window!r}")
    _expect(isinstance(scores, bool), f"gives_scores must be true or false, got {scores!r}")
    return f"{name}, window {window}, {'with' if scores else 'no'} scores"


async def _completes(provider: Provider) -> str:
    reply = await provider.complete(_request())
    _check_reply(reply)
    talk = ModelRequest.from_json(
        {"messages": [{"role": "user", "content": "Say yes."}], "max_tokens": 16}
    )
    _check_reply(await provider.complete(talk))
    return f"a prompt and a conversation are answered, {reply.tokens_in} tokens in"


def _check_reply(reply: object) -> None:
    if not isinstance(reply, ModelReply):
        raise AssertionError(f"complete must return a ModelReply, got {reply!r}")
    _expect(isinstance(reply.text, str), f"text must be a text, got {reply.text!r}")
    _expect(reply.finish in ("stop", "length"), f"finish must not be {reply.finish!r}")
    counts = (reply.tokens_in, reply.tokens_out, reply.tokens_kept)
    _expect(all(isinstance(n, int) and n >= 0 for n in counts), f"token counts are {counts}")
    _expect(reply.tokens_in > 0, "tokens_in must count the prompt, got 0")
    _expect(0 <= reply.dollars < math.inf, f"dollars must not be {reply.dollars!r}")


async def _choices(provider: Provider) -> str:
    said: list[str] = []
    for _ in range(_ATTEMPTS):
        try:
            reply = await provider.complete(_request(choices=_CHOICES))
        except NoChoice as error:
            said.append(str(error))
            continue
        if reply.text in _CHOICES:
            return f"the answer is one of the choices: {reply.text!r}"
        said.append(repr(reply.text))
    raise AssertionError(f"with choices {_CHOICES}, the text must be one of them, got {said}")


async def _scores(provider: Provider) -> str:
    request = _request(choices=_CHOICES, scores=True)
    if not provider.gives_scores:
        try:
            await provider.complete(request)
        except RequestRefused:
            return "a request for scores is refused"
        raise AssertionError("gives_scores is false: raise RequestRefused if scores are requested")
    scores: Mapping[str, float] = (await provider.complete(request)).scores or {}
    right = scores.keys() == set(_CHOICES) and all(map(math.isfinite, scores.values()))
    _expect(right, f"scores must have a number for each of {_CHOICES}, got {dict(scores)}")
    return "every choice has a score"


async def _counts(provider: Provider) -> str:
    counts = await provider.count(["water", "Water is wet, and so is rain."])
    right = len(counts) == 2 and all(isinstance(n, int) and n > 0 for n in counts)
    _expect(right, f"count must return a whole number for each text, got {counts!r}")
    _expect(counts[0] < counts[1], f"a longer text must have more tokens, got {counts}")
    _expect(await provider.count([]) == [], "count must return nothing for no texts")
    return f"tokens of two texts: {counts[0]} and {counts[1]}"


async def _at_once(provider: Provider) -> str:
    prompts = ("Is fire hot?", "Is ice cold?", "Is rain wet?")
    for reply in await asyncio.gather(*(provider.complete(_request(p)) for p in prompts)):
        _check_reply(reply)
    return f"{len(prompts)} requests at once are answered"


async def _cancelling(provider: Provider) -> str:
    call = asyncio.ensure_future(provider.complete(_request("Is the night dark?")))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    _check_reply(await provider.complete(_request()))
    return "a request is answered after a cancelled one"


async def _closing(provider: Provider) -> str:
    await provider.close()
    await provider.close()
    return "it can be closed twice"


_CHECKS: dict[str, Callable[[Provider], Awaitable[str]]] = {
    "identity": _identity,
    "complete": _completes,
    "choices": _choices,
    "scores": _scores,
    "count": _counts,
    "at once": _at_once,
    "cancelling": _cancelling,
    "close": _closing,
}
