"""The gateway: the only way from harnesses to a model, in the engine's process.

It has the key, the cache, the rate limits and the spend of the model. Harnesses reach it as a
service of the engine, and can only send a request that `request_payload` accepts.
"""

import asyncio
import math
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from coevolve.core.outcomes import Usage
from coevolve.models.call_recording import Recorder, ReplayProvider
from coevolve.models.model_errors import (
    ContextTooLong,
    ModelError,
    ModelKeyError,
    ModelNotFound,
    ModelReplyError,
    ModelUnavailable,
    NoChoice,
    RequestRefused,
    RequestUnanswered,
)
from coevolve.models.model_spend import Prices, believable, check_caps, need_prices
from coevolve.models.provider import (
    CHARACTERS,
    IMAGE_TOKENS,
    Caps,
    ModelReply,
    ModelRequest,
    Provider,
    Sampling,
)
from coevolve.models.rate_limits import AGAIN, Pace, Retrying
from coevolve.models.request_payload import read_request, read_texts
from coevolve.models.response_cache import ResponseCache

PROBE = "Answer with one word: yes."
PROBE_TOKENS = 16
PROBE_SECONDS = 60.0
PROBES = 3
PROBE_VALID = 5.0
"""Seconds for which the result of a probe counts."""


class SharedCall[Answer]:
    """A running call and the number of callers that wait for it."""

    def __init__(self, task: asyncio.Task[Answer]) -> None:
        self.task = task
        self.waiting = 0
        self.claimed = False


class SharedCalls[Answer]:
    """Running calls by key; equal calls at the same time are made once.

    A call runs until it is answered or no caller waits for it.
    """

    def __init__(self) -> None:
        self._calls: dict[str, SharedCall[Answer]] = {}
        self._tasks: set[asyncio.Task[Answer]] = set()

    async def join(
        self, key: str, ask: Callable[[], Coroutine[Any, Any, Answer]]
    ) -> tuple[Answer, bool]:
        """The answer of `ask`, and whether this caller is the first to get it.

        Raises:
            ModelUnavailable: The calls were closed in the meantime.
        """
        call = self._calls.get(key) or self._started(key, ask)
        call.waiting += 1
        try:
            answer = await asyncio.shield(call.task)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if call.task.cancelled() and task is not None and not task.cancelling():
                raise ModelUnavailable("the gateway was closed before the answer came") from None
            raise
        finally:
            call.waiting -= 1
            if not call.waiting and not call.task.done():
                self._forget(key, call)
                call.task.cancel()
        first, call.claimed = not call.claimed, True
        return answer, first

    async def close(self) -> None:
        """Cancel every running call."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _started(
        self, key: str, ask: Callable[[], Coroutine[Any, Any, Answer]]
    ) -> SharedCall[Answer]:
        call = self._calls[key] = SharedCall(asyncio.create_task(ask()))
        self._tasks.add(call.task)

        def done(task: asyncio.Task[Answer]) -> None:
            self._tasks.discard(task)
            self._forget(key, call)
            if not task.cancelled():
                task.exception()  # asyncio warns about an exception that is never read

        call.task.add_done_callback(done)
        return call

    def _forget(self, key: str, call: SharedCall[Answer]) -> None:
        if self._calls.get(key) is call:
            del self._calls[key]


def answer(reply: ModelReply, used: Usage | None) -> dict[str, Any]:
    """The answer for a harness; `used` is None if the answer was cached.

    >>> reply = ModelReply(text="yes", finish="stop", tokens_in=9, tokens_out=1)
    >>> answer(reply, None)["saved"]
    {'tokens_in': 9, 'tokens_out': 1, 'dollars': 0.0}
    """
    given = {
        "text": reply.text,
        "finish": reply.finish,
        "scores": None if reply.scores is None else dict(reply.scores),
        "cached": used is None,
        "usage": _plain(used or Usage()),
        **({"estimated": True} if reply.estimated else {}),
        **reply.written(),
    }
    return {**given, "saved": _plain(reply.usage)} if used is None else given


def _plain(usage: Usage) -> dict[str, float]:
    """A usage without seconds, which the engine measures for the whole trial."""
    return {name: value for name, value in usage.to_json().items() if name != "seconds"}


def overflow(error: ContextTooLong) -> ModelReply:
    """A reply for the recording of a prompt that was too long."""
    return ModelReply(text=str(error), finish="overflow", tokens_in=0, tokens_out=0)


class Gateway:
    """Sends requests to a model: rate limited, retried, cached and counted.

    Args:
        provider: The model; it is closed with the gateway, like the cache and the recorder.
        sampling: The defaults for what a request leaves out.
        pace: Limits on calls at once and per minute.
        retrying: The rule for failed calls.
        caps: Limits on the spend.
        prices: Prices of tokens; None uses the dollars that the provider reports.
        cache: Where answers are kept; None sends every call to the model, even equal ones.
        recorder: Where all calls are recorded.
        spent: What earlier sessions of the run have spent, which counts towards the caps.

    Attributes:
        spent: What the run has spent on the model, earlier sessions included.
        calls: Calls that the model answered in this session.
        cached: Calls that were answered from the cache in this session.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        sampling: Sampling | None = None,
        pace: Pace | None = None,
        retrying: Retrying | None = None,
        caps: Caps | None = None,
        prices: Prices | None = None,
        cache: ResponseCache | None = None,
        recorder: Recorder | None = None,
        spent: Usage | None = None,
    ) -> None:
        self.provider = provider
        self.spent = spent or Usage()
        self.calls = self.cached = 0
        self._sampling = sampling or Sampling()
        self._pace = pace or Pace()
        self._retrying = retrying or Retrying()
        self._caps = caps or Caps()
        self._prices = prices
        self._cache = cache
        self._recorder = recorder
        self._shared: SharedCalls[tuple[ModelReply, Usage]] = SharedCalls()
        self._probing = asyncio.Lock()
        self._probed: tuple[float, bool] | None = None
        need_prices(self._caps, prices is not None or isinstance(provider, ReplayProvider))

    def services(self) -> Mapping[str, Callable[..., Any]]:
        """The services that the engine offers to benchmarks."""
        return {
            "model": self.ask,
            "count": self.count,
            "model_facts": self.facts,
            "model_answers": self.answers,
        }

    async def ask(self, **payload: object) -> dict[str, Any]:
        """The answer to a request, both as JSON.

        With `overflow="reply"`, a prompt that is too long for the model is answered by
        `{"overflow": True, "reason": ...}`.

        Raises:
            RequestRefused: The payload is not a valid request.
            ModelCapError: A cap of the run is reached.
            ModelError: The model gave no answer.
        """
        scores = self.provider.gives_scores
        request = read_request(payload, self._sampling, gives_scores=scores)
        self._check_taken(request)
        try:
            reply, used = await self._answered(request)
        except ContextTooLong as error:
            if payload.get("overflow") != "reply":
                raise
            if self._recorder is not None:
                self._recorder.call(request, overflow(error), cached=False)
            usage = error.usage or _plain(Usage())
            return {"overflow": True, "reason": str(error), "usage": usage, "cached": False}
        if used is None:
            self.cached += 1
        if self._recorder is not None:
            self._recorder.call(request, reply, cached=used is None)
        return answer(reply, used)

    def _check_taken(self, request: ModelRequest) -> None:
        """Refuse what the model does not take, instead of leaving it out."""
        if getattr(self.provider, "takes_tools", False):
            return
        effort = request.reasoning_effort != self._sampling.reasoning_effort
        refused = [*request.agentic, *(["reasoning_effort"] if effort else [])]
        if refused:
            raise RequestRefused(
                f"the model {self.provider.identity.get('name')} does not take "
                f"{' or '.join(refused)}; hosted models may."
            )

    async def count(self, texts: object) -> list[int]:
        """The number of tokens of each text."""
        read = read_texts(texts)
        counts = await self.provider.count(read)
        if self._recorder is not None:
            self._recorder.counts(read, counts)
        return counts

    def facts(self) -> dict[str, Any]:
        """What a harness may know about the model and the caps of a trial."""
        return {
            "name": self.provider.identity.get("name"),
            "window": self.provider.window,
            "scores": self.provider.gives_scores,
            "tools": bool(getattr(self.provider, "takes_tools", False)),
            "trial_calls": self._caps.trial_calls,
            "trial_tokens": self._caps.trial_tokens,
        }

    async def answers(self) -> dict[str, Any]:
        """Whether the model answers a short request now: `answered`, and the `usage` of asking.

        A candidate's request that is not answered is the candidate's problem if the model answers
        others: it may be too large, or take too long. If the model does not answer the probe, that
        proves nothing: the candidate's requests may keep it from answering.
        """
        loop = asyncio.get_running_loop()
        async with self._probing:
            if self._probed is not None and loop.time() - self._probed[0] < PROBE_VALID:
                return {"answered": self._probed[1], "usage": _plain(Usage())}
            request = ModelRequest(
                prompt=PROBE,
                max_tokens=min(PROBE_TOKENS, self._sampling.max_tokens),
                temperature=self._sampling.temperature,
                reasoning_effort=self._sampling.reasoning_effort,
            )
            answered, used = False, Usage()
            for _ in range(PROBES):
                try:
                    async with asyncio.timeout(PROBE_SECONDS):
                        reply = await self._retrying.in_time(self.provider.complete(request))
                        used += self._count(believable(reply, request)).usage
                    answered = True
                    break
                except (ModelError, TimeoutError):
                    continue
            self._probed = loop.time(), answered
        return {"answered": answered, "usage": _plain(used)}

    async def close(self) -> None:
        """Cancel running calls and close all parts."""
        try:
            await self._shared.close()
            await self.provider.close()
        finally:
            for part in (self._cache, self._recorder):
                if part is not None:
                    part.close()

    async def _answered(self, request: ModelRequest) -> tuple[ModelReply, Usage | None]:
        """A reply and its usage; None if it was cached or another call paid for it."""
        key = request.key(self.provider.identity)
        if self._cache is None:
            return await self._asked(key, request)
        if (known := self._cache.get(key)) is not None:
            return known, None
        (reply, used), first = await self._shared.join(key, lambda: self._asked(key, request))
        return reply, used if first else None

    async def _asked(self, key: str, request: ModelRequest) -> tuple[ModelReply, Usage]:
        used = Usage()

        async def attempt() -> ModelReply:
            nonlocal used
            reply = await self._attempted(request)
            used += reply.usage
            return _checked(reply, request)

        try:
            reply = await self._retrying(key, attempt)
        except ModelError as error:
            error.usage = _plain(used)
            if not self._may_be_its_own(error):
                raise
            probe = await self.answers()
            error.usage = _plain(used + Usage(**probe["usage"]))
            if probe["answered"]:
                text = f"{error} The model answered another request in the meantime."
                other = RequestUnanswered(text)
                other.usage = error.usage
                raise other from error
            raise
        if self._cache is not None:
            self._cache.put(key, reply)
        return reply, used

    def _may_be_its_own(self, error: ModelError) -> bool:
        """Whether the request alone may have caused an error.

        If the model has answered before, with the same key and settings, an error that would stop
        the run may be due to the request. Otherwise a candidate could stop every run.
        """
        refused = isinstance(error, ModelKeyError | ModelNotFound)
        return isinstance(error, AGAIN) or (refused and self.spent != Usage())

    async def _attempted(self, request: ModelRequest) -> ModelReply:
        async with self._pace.slot(_estimate(request)) as entry:
            check_caps(self._caps, self.spent)
            reply = await self._retrying.in_time(self.provider.complete(request))
            reply = believable(reply, request)
            entry.amount = reply.tokens_in + reply.tokens_out
        return self._count(reply)

    def _count(self, reply: ModelReply) -> ModelReply:
        """A reply with its price, after counting it."""
        reply = reply if self._prices is None else self._prices.priced(reply)
        self.calls += 1
        self.spent += reply.usage
        return reply


def _checked(reply: ModelReply, request: ModelRequest) -> ModelReply:
    """A reply that answers its request.

    Raises:
        NoChoice: Its text is none of the choices.
        ContextTooLong: It says that the prompt is too long.
        ModelReplyError: It does not have a score for each choice, as requested.
    """
    if reply.finish == "overflow":  # of a recording
        raise ContextTooLong(reply.text)
    if request.choices and reply.text not in request.choices:
        raise NoChoice(
            f"the model answered {reply.text!r:.80}, which is none of the "
            f"{len(request.choices)} choices ({request.choices[0]!r:.40}, ...)."
        )
    if request.scores:
        scores = reply.scores or {}
        if scores.keys() != set(request.choices) or not all(map(math.isfinite, scores.values())):
            raise ModelReplyError("the model did not give a score for each of the choices.")
    return reply


def _estimate(request: ModelRequest) -> int:
    """The tokens that a call may use."""
    read = sum(map(len, request.texts())) // CHARACTERS + request.images * IMAGE_TOKENS
    if not request.choices:
        return read + request.max_tokens
    return read + max(map(len, request.choices))
