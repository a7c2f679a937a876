"""The one way from harnesses to a model; it lives in the engine's process.

It holds the keys, the cache, the pace and the ledger of the model. Harnesses reach it as services
of the engine, and get no further than a request as `coevolve.models.request_payload` reads it.
"""

import asyncio
import math
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from coevolve.models.call_recording import Recorder, ReplayProvider
from coevolve.models.model_errors import ModelError, ModelReplyError, ModelUnavailable, NoChoice
from coevolve.models.model_spend import Prices, Spent, check_caps, need_prices
from coevolve.models.provider import Caps, ModelReply, ModelRequest, Provider, Sampling
from coevolve.models.rate_limits import Pace, Retrying
from coevolve.models.request_payload import read_request, read_texts
from coevolve.models.response_cache import ResponseCache


class Flight[Answer]:
    """A call under way, and who waits for it."""

    def __init__(self, task: asyncio.Task[Answer]) -> None:
        self.task = task
        self.waiting = 0
        self.claimed = False


class Flights[Answer]:
    """Calls under way by key.

    A call goes on until it is answered or nobody waits for it any more.
    """

    def __init__(self) -> None:
        self._flights: dict[str, Flight[Answer]] = {}
        self._tasks: set[asyncio.Task[Answer]] = set()

    async def join(
        self, key: str, ask: Callable[[], Coroutine[Any, Any, Answer]]
    ) -> tuple[Answer, bool]:
        """What `ask` answers, and whether this is the first to get that answer.

        Raises:
            ModelUnavailable: The flights were closed meanwhile.
        """
        flight = self._flights.get(key) or self._begun(key, ask)
        flight.waiting += 1
        try:
            answer = await asyncio.shield(flight.task)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if flight.task.cancelled() and task is not None and not task.cancelling():
                raise ModelUnavailable("the gateway was closed before the answer came") from None
            raise
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                self._forget(key, flight)
                flight.task.cancel()
        first, flight.claimed = not flight.claimed, True
        return answer, first

    async def close(self) -> None:
        """End every call under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begun(self, key: str, ask: Callable[[], Coroutine[Any, Any, Answer]]) -> Flight[Answer]:
        flight = self._flights[key] = Flight(asyncio.create_task(ask()))
        self._tasks.add(flight.task)

        def landed(task: asyncio.Task[Answer]) -> None:
            self._tasks.discard(task)
            self._forget(key, flight)
            if not task.cancelled():
                task.exception()  # or asyncio complains when nobody waits for it any more

        flight.task.add_done_callback(landed)
        return flight

    def _forget(self, key: str, flight: Flight[Answer]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


def checked(reply: ModelReply, request: ModelRequest) -> ModelReply:
    """A reply that answers its request.

    Raises:
        NoChoice: Its text is none of the choices.
        ModelReplyError: Scores were asked for, and it has not one for each choice.
    """
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


def answer(reply: ModelReply, consumed: Spent | None) -> dict[str, Any]:
    """What a harness gets; nothing was consumed where the answer was known.

    >>> reply = ModelReply(text="yes", finish="stop", tokens_in=9, tokens_out=1)
    >>> answer(reply, None)["saved"]
    {'tokens_in': 9, 'tokens_out': 1, 'dollars': 0.0}
    """
    given = {
        "text": reply.text,
        "finish": reply.finish,
        "scores": None if reply.scores is None else dict(reply.scores),
        "cached": consumed is None,
        "usage": usage(consumed or Spent()),
    }
    return {**given, "saved": usage(Spent.on(reply))} if consumed is None else given


def usage(spent: Spent) -> dict[str, float]:
    """What was consumed, as the engine counts it for a trial."""
    return {
        "tokens_in": spent.tokens_in,
        "tokens_out": spent.tokens_out,
        "dollars": spent.dollars,
    }


CHARACTERS = 4
"""Of a token, roughly: how long a prompt is before anybody has counted."""


class Gateway:
    """Asks a model on behalf of harnesses: at its pace, again where that helps, and once.

    Args:
        provider: Who answers; closed with the gateway, as are the cache and the recorder.
        sampling: How it answers where a request does not say.
        pace: How many calls at once, and per minute.
        retrying: How often it is asked again.
        caps: How much may be spent.
        prices: What tokens cost; None takes the word of the provider.
        cache: Where answers are kept; with None every call is asked, also two that are alike.
        recorder: Where all calls are written down.
        spent: What earlier sessions of the run have spent; it counts for the caps.
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
        spent: Spent | None = None,
    ) -> None:
        self.provider = provider
        self._sampling = sampling or Sampling()
        self._pace = pace or Pace()
        self._retrying = retrying or Retrying()
        self._caps = caps or Caps()
        self._prices = prices
        self._cache = cache
        self._recorder = recorder
        self._spent = spent or Spent()
        self._under_way = 0
        self._flights: Flights[tuple[ModelReply, Spent]] = Flights()
        need_prices(self._caps, prices is not None or isinstance(provider, ReplayProvider))

    @property
    def spent(self) -> Spent:
        """What was spent so far, by earlier sessions of the run too."""
        return self._spent

    def services(self) -> Mapping[str, Callable[..., Any]]:
        """What the engine offers to benchmarks."""
        return {"model": self.ask, "count": self.count, "model_facts": self.facts}

    async def ask(self, **payload: object) -> dict[str, Any]:
        """The answer to a request, as JSON both ways.

        Raises:
            RequestRefused: The payload is no request.
            ModelCapError: The run has spent what it may spend.
            ModelError: The model gave no answer.
        """
        scores = self.provider.gives_scores
        request = read_request(payload, self._sampling, gives_scores=scores)
        reply, consumed = await self._answered(request)
        if consumed is None:
            self._spent += Spent(cached=1)
        if self._recorder is not None:
            self._recorder.call(request, reply, cached=consumed is None)
        return answer(reply, consumed)

    async def count(self, texts: object) -> list[int]:
        """How many tokens each text has."""
        read = read_texts(texts)
        counts = await self.provider.count(read)
        if self._recorder is not None:
            self._recorder.counts(read, counts)
        return counts

    def facts(self) -> dict[str, Any]:
        """What a harness may know of the model, and what a trial may ask of it."""
        return {
            "name": self.provider.identity.get("name"),
            "window": self.provider.window,
            "scores": self.provider.gives_scores,
            "trial_calls": self._caps.trial_calls,
            "trial_tokens": self._caps.trial_tokens,
        }

    async def close(self) -> None:
        """End what is under way, and let go of everything."""
        try:
            await self._flights.close()
            await self.provider.close()
        finally:
            for part in (self._cache, self._recorder):
                if part is not None:
                    part.close()

    async def _answered(self, request: ModelRequest) -> tuple[ModelReply, Spent | None]:
        """A reply, and what it took; None if it was known, or another call got it first."""
        key = request.key(self.provider.identity)
        if self._cache is None:
            return await self._asked(key, request)
        if (known := self._cache.get(key)) is not None:
            return known, None
        (reply, consumed), first = await self._flights.join(key, lambda: self._asked(key, request))
        return reply, consumed if first else None

    async def _asked(self, key: str, request: ModelRequest) -> tuple[ModelReply, Spent]:
        consumed = Spent()

        async def attempt() -> ModelReply:
            nonlocal consumed
            reply = await self._attempted(request)
            consumed += Spent.on(reply)
            return checked(reply, request)

        try:
            reply = await self._retrying(key, attempt)
        except ModelError as error:
            error.usage = usage(consumed)
            raise
        if self._cache is not None:
            self._cache.put(key, reply)
        return reply, consumed

    async def _attempted(self, request: ModelRequest) -> ModelReply:
        async with self._pace.turn(_estimate(request)) as turn:
            check_caps(self._caps, self._spent, self._under_way)
            self._under_way += 1
            try:
                reply = await self._retrying.in_time(self.provider.complete(request))
            finally:
                self._under_way -= 1
            turn.used(reply.tokens_in + reply.tokens_out)
        reply = reply if self._prices is None else self._prices.priced(reply)
        self._spent += Spent.on(reply)
        return reply


def _estimate(request: ModelRequest) -> int:
    """Tokens that a call may take."""
    read = sum(map(len, request.texts())) // CHARACTERS
    if not request.choices:
        return read + request.max_tokens
    return read + max(map(len, request.choices))
