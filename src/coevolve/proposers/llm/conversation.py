"""Calls to the model within one proposal: counted, written down, and over in time."""

import asyncio
import math
from typing import Any, NamedTuple

from coevolve.core.outcomes import Usage
from coevolve.models.errors import ModelError
from coevolve.models.gateway import Gateway
from coevolve.models.payload import MOST_SAMPLES
from coevolve.proposers.base import View

type Turn = dict[str, str]


class OutOfTime(Exception):  # noqa: N818
    """The proposal has taken as long as it may."""


class Reply(NamedTuple):
    """What the model wrote, and whether it was cut off."""

    text: str
    cut: bool


class Conversation:
    """Asks for one proposal; what it cost and all that was said stays with it.

    Every round asks for another sample, and every prompt of a round, so that those which see the
    same get answers of their own, and a round that is proposed again gets the same ones.

    Args:
        gateway: Who is asked.
        view: The view of the round, for its seed and how long it may take.
    """

    def __init__(self, gateway: Gateway, view: View) -> None:
        self.usage = Usage()
        self._gateway = gateway
        self._sample = view.seed
        self._seconds = view.seconds
        self._began = asyncio.get_running_loop().time()
        self._said: list[str] = []
        self._written = 0

    @property
    def paid(self) -> bool:
        """Whether anything was used that an error would lose."""
        return any((self.usage.tokens_in, self.usage.tokens_out, self.usage.dollars))

    @property
    def transcript(self) -> str:
        """All that was said, in order."""
        return "\n\n".join(self._said)

    async def ask(self, turns: list[Turn]) -> Reply:
        """The next reply.

        Raises:
            OutOfTime: It did not come in time.
            ModelError: It did not come at all; what it cost is counted.
        """
        self._note(turns)
        loop = asyncio.get_running_loop()
        began = loop.time()
        left = self._seconds - (began - self._began)
        limit = asyncio.timeout(left if math.isfinite(left) else None)
        try:
            async with limit:
                sample = (self._sample + self._written - 1) % MOST_SAMPLES
                answer = await self._gateway.ask(messages=turns, sample=sample)
        except TimeoutError:
            if not limit.expired():
                raise
            self._say("no reply", "The time for this proposal was over.")
            raise OutOfTime from None
        except ModelError as error:
            self._count(error.usage or {})
            self._say("no reply", f"{type(error).__name__}: {error}")
            raise
        finally:
            self.usage += Usage(seconds=max(0.0, loop.time() - began))
        return self._heard(answer)

    def _heard(self, answer: dict[str, Any]) -> Reply:
        usage, cut = answer["usage"], answer["finish"] == "length"
        self._count(usage)
        cost = f"{usage['tokens_in']:,} tokens read, {usage['tokens_out']:,} written"
        how = ["cached" if answer["cached"] else cost, *(["cut off"] if cut else [])]
        self._say(f"reply ({', '.join(how)})", answer["text"])
        return Reply(answer["text"], cut)

    def _note(self, turns: list[Turn]) -> None:
        """Write down what is new; a conversation that goes on is not written twice."""
        if len(turns) <= 2:
            self._written += 1
        new = turns if len(turns) <= 2 else turns[-1:]
        for turn in new:
            self._say(f"{turn['role']}", turn["content"])

    def _say(self, who: str, text: str) -> None:
        self._said.append(f"===== {self._written}. {who} =====\n\n{text}")

    def _count(self, usage: Any) -> None:
        self.usage += Usage(
            tokens_in=int(usage.get("tokens_in", 0)),
            tokens_out=int(usage.get("tokens_out", 0)),
            dollars=float(usage.get("dollars", 0.0)),
        )
