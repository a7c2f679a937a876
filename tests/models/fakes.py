"""A model that does as it is told, and a clock that does not wait."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from coevolve.models.gateway import Gateway
from coevolve.models.provider import JSON, ModelReply, ModelRequest, Provider

Answer = str | Exception | ModelReply


def reply(text: str = "yes", **parts: Any) -> ModelReply:
    return ModelReply(**{"finish": "stop", "tokens_in": 100, "tokens_out": 10, **parts}, text=text)


class FakeProvider(Provider):
    """Answers from a list, then with the number of the call; remembers all that was asked."""

    def __init__(
        self,
        *answers: Answer,
        name: str = "fake",
        gives_scores: bool = True,
        act: Callable[[ModelRequest], Coroutine[Any, Any, object]] | None = None,
    ) -> None:
        self._answers = list(answers)
        self._identity: dict[str, JSON] = {"name": name, "host": "nowhere"}
        self._scores = gives_scores
        self._act = act
        self.asked: list[ModelRequest] = []
        self.running = self.most_running = 0
        self.closed = False

    @property
    def identity(self) -> Mapping[str, JSON]:
        return self._identity

    @property
    def window(self) -> int | None:
        return 4096

    @property
    def gives_scores(self) -> bool:
        return self._scores

    async def complete(self, request: ModelRequest, /) -> ModelReply:
        self.asked.append(request)
        answer = self._answers.pop(0) if self._answers else f"answer {len(self.asked)}"
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await (asyncio.sleep(0) if self._act is None else self._act(request))
        finally:
            self.running -= 1
        if isinstance(answer, Exception):
            raise answer
        return reply(answer) if isinstance(answer, str) else answer

    async def count(self, texts: Sequence[str], /) -> list[int]:
        return [len(text) for text in texts]

    async def close(self) -> None:
        self.closed = True


class FakeTime:
    """A clock that is moved by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


def served[Result](
    gateway: Gateway, use: Callable[[Gateway], Coroutine[Any, Any, Result]]
) -> Result:
    """What `use` gives; the gateway is closed afterwards."""

    async def whole() -> Result:
        try:
            return await use(gateway)
        finally:
            await gateway.close()

    return asyncio.run(whole())


def asked(gateway: Gateway, *payloads: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Answers to payloads, one after another."""

    async def use(gateway: Gateway) -> list[dict[str, Any]]:
        return [await gateway.ask(**payload) for payload in payloads]

    return served(gateway, use)
