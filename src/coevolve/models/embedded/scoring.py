"""Tokens, choices and their log-probabilities on the slots of the model's server.

The model is asked only where the choices differ: of the tokens with which a choice can continue,
it picks the most probable one, or draws one at a temperature.

The log-probability of a choice is the sum, over its tokens, of the log-probability of the token
after the prompt and the tokens before it. Choices with a common beginning share its computation.
"""

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from coevolve.models.embedded.model_process import ModelProcess
from coevolve.models.embedded.model_weights import WINDOW
from coevolve.models.model_errors import ContextTooLong, ModelReplyError, RequestRefused
from coevolve.models.provider import ModelRequest

_BETWEEN = -1
"""Separates the tokens of two texts; not a token itself."""


class Tokens:
    """Gets tokens from the model's process."""

    def __init__(self, process: ModelProcess) -> None:
        self._process = process
        self._ends: tuple[int, ...] = ()

    async def text(self, request: ModelRequest) -> str:
        """The text that the model continues."""
        if request.prompt is not None and not request.system:
            return request.prompt
        messages = [message.to_json() for message in request.conversation()]
        answer = await self._process.post("/apply-template", {"messages": messages})
        return str(answer["prompt"])

    async def prompt(self, text: str) -> list[int]:
        """The tokens of a prompt; marks such as `<|im_end|>` have their special meaning."""
        (tokens,) = await self.many([text], marks=True)
        return tokens

    async def choices(self, text: str, choices: Sequence[str]) -> dict[str, list[int]]:
        """The tokens of every choice after a prompt."""
        after = [follows(text, choice) for choice in choices]
        return dict(zip(choices, await self.many(after), strict=True))

    async def ends(self) -> tuple[int, ...]:
        """The tokens that end an answer: a new line first, then marks."""
        if not self._ends:
            found = await self.many(["\n", "<|im_end|>", "<|endoftext|>"], marks=True)
            self._ends = tuple(token for (token,) in found)
        return self._ends

    async def many(self, texts: Sequence[str], *, marks: bool = False) -> list[list[int]]:
        """The tokens of every text."""
        if not texts:
            return []
        content: list[str | int] = []
        for text in texts:
            content += [text, _BETWEEN]
        body = {"content": content, "add_special": False, "parse_special": marks}
        answer = await self._process.post("/tokenize", body)
        found: list[list[int]] = [[]]
        for token in answer["tokens"]:
            if token == _BETWEEN:
                found.append([])
            else:
                found[-1].append(token)
        return found[:-1]


def check_choices(tokens: int) -> None:
    """Refuse choices that take too long; a time-out would not be the candidate's fault."""
    if tokens > WINDOW:
        raise RequestRefused(
            f"the choices have {tokens:,} tokens together; the embedded model accepts at most "
            f"{WINDOW:,}. Give fewer or shorter choices."
        )


def check_room(tokens: int, more: int) -> None:
    """Refuse a prompt that does not fit into the window with `more` tokens."""
    if tokens + more > WINDOW:
        raise ContextTooLong(
            f"the prompt has {tokens:,} tokens; the embedded model allows {WINDOW:,} for prompt "
            "and answer together. Shorten the prompt."
        )


class Picks(Protocol):
    """Lets the model pick one of several tokens."""

    async def pick(
        self, path: Sequence[int], allowed: Sequence[int], *, temperature: float, seed: int
    ) -> int:
        """The allowed token that the model writes after a text."""
        ...


@dataclass(slots=True)
class Node:
    """A node in the tree of choices; `choice` is the one that ends here, if any."""

    choice: str | None = None
    after: dict[int, "Node"] = field(default_factory=dict)


def tree(tokens: Mapping[str, Sequence[int]]) -> Node:
    """The tree of choices by their tokens; of two with the same tokens, the first counts."""
    root = Node()
    for choice, sequence in tokens.items():
        node = root
        for token in sequence:
            node = node.after.setdefault(token, Node())
        if node.choice is None:
            node.choice = choice
    return root


def follows(prompt: str, choice: str) -> str:
    r"""A choice as it follows a prompt, with a space before it if needed.

    >>> follows("Answer:", "yes"), follows("Answer:\n", "yes"), follows("Answer:", " yes")
    (' yes', 'yes', ' yes')
    """
    return choice if prompt[-1:].isspace() or choice[:1].isspace() else f" {choice}"


async def choose(
    root: Node,
    prompt: Sequence[int],
    model: Picks,
    *,
    ends: Sequence[int],
    temperature: float,
    seed: int,
) -> tuple[str, int]:
    """The model's choice, and its number of tokens.

    If a choice is the beginning of another one, the model ends it with one of `ends`.
    """
    node, path = root, list(prompt)
    while node.after:
        closing = [end for end in ends if end not in node.after and node.choice is not None]
        allowed = [*node.after, *closing]
        token = allowed[0]
        if len(allowed) > 1:
            # Each draw has its own seed; equal seeds would repeat the draw.
            own = seed * 1_000 + len(path) - len(prompt)
            token = await model.pick(path, allowed, temperature=temperature, seed=own)
        if token not in node.after:
            break
        node = node.after[token]
        path.append(token)
    assert node.choice is not None
    return node.choice, len(path) - len(prompt)


class Slot:
    """A slot for one prompt at a time; `tokens` is its last prompt."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.tokens: Sequence[int] = ()


class Slots:
    """Assigns slots in the order of requests.

    Of the free slots, a prompt gets the one whose last prompt has the longest common beginning,
    which the model need not read again. Of equals, it gets the one that was idle longest.
    """

    def __init__(self, count: int) -> None:
        self._free = deque(Slot(number) for number in range(count))
        self._turns = asyncio.Semaphore(count)

    @asynccontextmanager
    async def slot(self, tokens: Sequence[int]) -> AsyncIterator[Slot]:
        """Wait for a slot for a prompt."""
        async with self._turns:
            chosen = max(self._free, key=lambda slot: common(slot.tokens, tokens))
            self._free.remove(chosen)
            try:
                chosen.tokens = tokens
                yield chosen
            finally:
                self._free.append(chosen)


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """The length of the common beginning of two sequences.

    >>> common([1, 2, 3], [1, 2, 4, 5])
    2
    """
    for place, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return place
    return min(len(one), len(other))


LIFT = 200.0
"""Added to the logits of allowed tokens, which excludes all others."""
LEAD = 30.0
"""Added to the logit of the token that must be written when others are compared with it."""

_FIELDS = ("content", "tokens", "stop_type", "tokens_predicted", "timings")
_PLAIN = {"top_k": 0, "top_p": 1, "min_p": 0}
"""Only temperature changes the probabilities of the model."""


class Steps:
    """A slot that continues texts; `kept` counts the tokens in its cache at the first request."""

    def __init__(self, process: ModelProcess, slot: int) -> None:
        self._process, self._slot = process, slot
        self.kept: int | None = None

    async def write(self, path: Sequence[int], **asked: Any) -> Any:
        """The answer of the model's server to a prompt."""
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
        """The allowed token that the model writes after a text."""
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
            raise ModelReplyError(
                f"the embedded model wrote {answer['content']!r}, which was not allowed."
            )
        return int(token)

    async def likely(
        self, path: Sequence[int], forced: int, count: int
    ) -> dict[int, float] | None:
        """Log-probabilities of a token and of the most probable; None for part of a character."""
        row = await self._probed(path, n_probs=count, temperature=0, logit_bias=[[forced, LIFT]])
        if row is None:
            return None
        found = {entry["id"]: entry["logprob"] for entry in row["top_logprobs"]}
        return {**found, forced: row["logprob"]}

    async def against(
        self, path: Sequence[int], forced: int, tokens: Collection[int]
    ) -> dict[int, float]:
        """The log-probability of each token minus that of a forced one.

        With a bias on all of them, their probabilities q sum to 1. The result is
        log q(token) - log q(forced), plus the extra bias of the forced one.
        """
        lifted = [[forced, LIFT + LEAD], *([token, LIFT] for token in tokens)]
        row = await self._probed(
            path,
            n_probs=len(lifted),
            temperature=1,
            seed=0,
            logit_bias=lifted,
            post_sampling_probs=True,
        )
        found = {entry["id"]: entry["prob"] for entry in (row or {}).get("top_probs", ())}
        if not all(found.get(token) for token in (forced, *tokens)):
            raise ModelReplyError("the embedded model did not return the probability of a choice.")
        return {token: LEAD + math.log(found[token] / found[forced]) for token in tokens}

    async def _probed(self, path: Sequence[int], **asked: Any) -> Any:
        fields = (*_FIELDS, "completion_probabilities")
        answer = await self.write(path, n_predict=1, response_fields=fields, **asked)
        rows = answer.get("completion_probabilities")
        return rows[0] if rows else None


MANY = 100
"""Probable tokens to request if several may follow."""


class Probabilities(Protocol):
    """Gives the probabilities of tokens after a text."""

    async def likely(
        self, path: Sequence[int], forced: int, count: int
    ) -> Mapping[int, float] | None:
        """Log-probabilities of a token and of the `count` most probable.

        None if the token is part of a character; the model's server does not report those.
        """
        ...

    async def against(
        self, path: Sequence[int], forced: int, tokens: Collection[int]
    ) -> Mapping[int, float]:
        """The log-probability of each token minus that of a forced one."""
        ...


class Scorer:
    """Scores trees of choices.

    Args:
        whole: A token that is a whole character.
    """

    def __init__(self, whole: int) -> None:
        self._whole = whole
        self._partial: set[int] = set()

    async def score(
        self, root: Node, prompt: Sequence[int], model: Probabilities
    ) -> dict[str, float]:
        """The log-probability of every choice."""
        scores: dict[str, float] = {}
        waiting = [(root, list(prompt), 0.0)]
        while waiting:  # depth first: the model continues from its last prompt
            node, path, so_far = waiting.pop()
            if node.choice is not None:
                scores[node.choice] = so_far
            if node.after:
                likely = await self._likely(list(node.after), path, model)
                for token, below in node.after.items():
                    waiting.append((below, [*path, token], so_far + likely[token]))
        return scores

    async def _likely(
        self, tokens: list[int], path: list[int], model: Probabilities
    ) -> Mapping[int, float]:
        forced = next((token for token in tokens if token not in self._partial), self._whole)
        known = await model.likely(path, forced, 1 if tokens == [forced] else MANY)
        if known is None:
            if forced == self._whole:
                raise ModelReplyError("the embedded model did not return any probability.")
            self._partial.add(forced)
            return await self._likely(tokens, path, model)
        missing = [token for token in tokens if token not in known]
        if not missing:
            return known
        above = await model.against(path, forced, missing)
        return {**known, **{token: known[forced] + above[token] for token in missing}}
