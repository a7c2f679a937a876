"""What a slot of the model's server is asked, one request after another."""

import math
from collections.abc import Collection, Sequence
from typing import Any

from coevolve.models.embedded.process import ModelProcess
from coevolve.models.errors import ModelReplyError

LIFT = 200.0
"""Added to the logits of allowed tokens, so that no other one is written."""
LEAD = 30.0
"""Added to the logit of the token that has to be written, where others are compared with it."""

_FIELDS = ("content", "tokens", "stop_type", "tokens_predicted", "timings")
_PLAIN = {"top_k": 0, "top_p": 1, "min_p": 0}
"""Nothing but temperature changes the probabilities that the model gives."""


class Steps:
    """A slot that continues texts; `kept` counts the tokens it knew at the first request."""

    def __init__(self, process: ModelProcess, slot: int) -> None:
        self._process, self._slot = process, slot
        self.kept: int | None = None

    async def write(self, path: Sequence[int], **asked: Any) -> Any:
        """What the model's server answers to a prompt."""
        body = {
            "prompt": path,
            "id_slot": self._slot,
            "cache_prompt": True,
            "response_fields": _FIELDS,
            **_PLAIN,
        }
        answer = await self._process.post("/completion", body | asked)
        if self.kept is None:
            self.kept = int(answer["timings"]["cache_n"])
        return answer

    async def pick(
        self, path: Sequence[int], allowed: Sequence[int], *, temperature: float, seed: int
    ) -> int:
        """The token the model would write after a text, of those that are allowed."""
        answer = await self.write(
            path,
            n_predict=1,
            temperature=temperature,
            seed=seed % 2**32,
            logit_bias=[[token, LIFT] for token in allowed],
            return_tokens=True,
        )
        (token,) = answer["tokens"]
        if token not in allowed:
            raise ModelReplyError(f"the embedded model wrote {answer['content']!r} unasked.")
        return int(token)

    async def likely(
        self, path: Sequence[int], forced: int, count: int
    ) -> dict[int, float] | None:
        """Log-probabilities of a token and of the likeliest; None if it is no whole character."""
        told = await self._told(path, n_probs=count, temperature=0, logit_bias=[[forced, LIFT]])
        if told is None:
            return None
        found = {entry["id"]: entry["logprob"] for entry in told["top_logprobs"]}
        return {**found, forced: told["logprob"]}

    async def against(
        self, path: Sequence[int], forced: int, tokens: Collection[int]
    ) -> dict[int, float]:
        """How much the log-probability of each token is above that of a forced one.

        With all of them lifted they share the whole probability among them, q. What is wanted
        is log q(token) - log q(forced), plus the lead that the forced one was given.
        """
        lifted = [[forced, LIFT + LEAD], *([token, LIFT] for token in tokens)]
        told = await self._told(
            path,
            n_probs=len(lifted),
            temperature=1,
            seed=0,
            logit_bias=lifted,
            post_sampling_probs=True,
        )
        found = {entry["id"]: entry["prob"] for entry in (told or {}).get("top_probs", ())}
        if not all(found.get(token) for token in (forced, *tokens)):
            raise ModelReplyError("the embedded model did not tell how likely a choice is.")
        return {token: LEAD + math.log(found[token] / found[forced]) for token in tokens}

    async def _told(self, path: Sequence[int], **asked: Any) -> Any:
        fields = (*_FIELDS, "completion_probabilities")
        answer = await self.write(path, n_predict=1, response_fields=fields, **asked)
        told = answer.get("completion_probabilities")
        return told[0] if told else None
