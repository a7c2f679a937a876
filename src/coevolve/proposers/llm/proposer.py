"""Candidates from plain calls to a language model."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Literal, get_args

from coevolve.errors import ConfigError
from coevolve.models.gateway import Gateway
from coevolve.proposers.base import Broken, Proposed, View
from coevolve.proposers.llm.building import Builder, Sources
from coevolve.proposers.llm.conversation import Conversation
from coevolve.proposers.llm.packing import FOR_REPAIR, SECTIONS, Section
from coevolve.proposers.llm.prompts import asking, mending
from coevolve.proposers.llm.writing import Writing

Calls = Literal["one", "each"]

LEAST_TOKENS = 6_000
"""Of a prompt that says what it has to; half of it is the least that is tried."""


class LLMProposer:
    """Asks a model for candidates, shows it what failed, and reads files out of what it says.

    One call writes all candidates of a round, or one call each of them, told the hypotheses of
    those before. A reply that cannot be used, or not all of it, is sent back once with what is
    wrong. What a model does wrong is a note, and never an error.

    Args:
        gateway: The model that writes; not the one that harnesses ask.
        context_tokens: How long a prompt may get, by an estimate that is rather too high; never
            more than three quarters of the model's window.
        calls: "one" for all candidates of a round together, "each" for one after another.

    >>> LLMProposer(None, calls="two")
    Traceback (most recent call last):
    coevolve.errors.ConfigError: calls must be 'one' or 'each', got 'two'.
    """

    def __init__(
        self, gateway: Gateway, *, context_tokens: int = 48_000, calls: Calls = "one"
    ) -> None:
        if context_tokens < LEAST_TOKENS:
            raise ConfigError(
                f"context_tokens must be {LEAST_TOKENS:,} or more, got {context_tokens!r}."
            )
        if calls not in get_args(Calls):
            raise ConfigError(f"calls must be 'one' or 'each', got {calls!r}.")
        self._gateway = gateway
        self._tokens = context_tokens
        self._calls = calls

    async def propose(self, view: View, count: int) -> Proposed:
        """Up to `count` candidates; notes say what became of the others.

        Raises:
            ConfigError: The model reads less than half of `context_tokens`.
            StopRun: There is no such model, or its key is refused.
            ModelError: The model did not answer, and nothing was paid for yet.
        """
        writing = await self._begun(view, Sources(view=view), SECTIONS)
        for wanted in [count] if self._calls == "one" else [1] * count:
            request = partial(asking, view.round, wanted, tuple(writing.made))
            if not await writing.write(wanted, request):
                break
        return writing.proposed(count)

    async def repair(self, view: View, broken: Broken) -> Proposed:
        """The candidate without its fault, or nothing; what it is meant to test stays the same.

        Raises:
            ConfigError: The model reads less than half of `context_tokens`.
            StopRun: There is no such model, or its key is refused.
            ModelError: The model did not answer, and nothing was paid for yet.
        """
        base = Sources(view=view, base=broken.proposal.files)
        writing = await self._begun(view, base, FOR_REPAIR)
        await writing.write(1, partial(mending, broken))
        done = writing.proposed(1)
        mended = tuple(replace(broken.proposal, files=new.files) for new in done.proposals)
        return replace(done, proposals=mended)

    async def close(self) -> None:
        """Close the gateway."""
        await self._gateway.close()

    async def _begun(self, view: View, sources: Sources, told: tuple[Section, ...]) -> Writing:
        conversation = Conversation(self._gateway, view)
        # In a thread, since the window of a hosted model is in a table that takes seconds to load.
        window = (await asyncio.to_thread(self._gateway.facts))["window"]
        most = self._tokens if window is None else min(self._tokens, window * 3 // 4)
        if most < LEAST_TOKENS // 2:
            raise ConfigError(
                f"the proposer's model reads {window:,} tokens, prompt and answer together, and a "
                f"proposal takes {LEAST_TOKENS:,} or more; take a model that reads more."
            )
        return Writing(
            conversation=conversation,
            builder=Builder(sources=sources),
            sections=told,
            tokens=most,
        )
