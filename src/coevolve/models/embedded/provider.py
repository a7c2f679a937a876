"""The embedded model as a provider."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coevolve.errors import ConfigError
from coevolve.models.embedded.choices import grammar, tree, walk
from coevolve.models.embedded.process import ModelProcess
from coevolve.models.embedded.scoring import score
from coevolve.models.embedded.slots import Slots
from coevolve.models.embedded.tokens import Tokens, check_room
from coevolve.models.embedded.weights import MADE, MODEL, WINDOW, find_weights
from coevolve.models.errors import ModelReplyError
from coevolve.models.request import JSON, ModelReply, ModelRequest

_CUT_OFF = "limit"
_FIELDS = ("content", "tokens", "stop_type", "tokens_predicted", "timings")


class EmbeddedProvider:
    """SmolLM2-135M-Instruct in a process of its own, started when it is first asked.

    A prompt is continued as it is; a conversation, or a prompt with a system text, goes through
    the model's chat template. At temperature 0, and where none is given, a request has the same
    answer whatever was asked before or at the same time.

    Args:
        folder: Where the weights are; None for the usual place.
        slots: Prompts that are worked on at once, each with a whole window.
        threads: Cores to compute with; None for all that this process may use.
    """

    window = WINDOW
    gives_scores = True

    def __init__(
        self, *, folder: Path | None = None, slots: int = 2, threads: int | None = None
    ) -> None:
        for name, value in {"slots": slots, "threads": threads}.items():
            if value is not None and value < 1:
                raise ConfigError(f"{name} must be 1 or more, got {value!r}.")
        cores = threads or len(os.sched_getaffinity(0))
        self._process = ModelProcess(lambda: find_weights(folder), slots=slots, threads=cores)
        self._tokens = Tokens(self._process)
        self._slots = Slots(slots)

    @property
    def identity(self) -> Mapping[str, JSON]:
        """The model and its weights."""
        return {"name": f"embedded/{MODEL}", "model": MODEL, "weights": MADE.sha256}

    async def complete(self, request: ModelRequest, /) -> ModelReply:
        """The answer to a request."""
        text = await self._tokens.text(request)
        prompt = await self._tokens.prompt(text)
        if not request.choices:
            return await self._free(request, prompt)
        spelt = await self._tokens.choices(text, request.choices)
        check_room(len(prompt), 1 + max(map(len, spelt.values())))
        if request.scores:
            return await self._scored(prompt, spelt)
        return await self._chosen(request, prompt, spelt)

    async def count(self, texts: Sequence[str], /) -> list[int]:
        """How many tokens each text has."""
        return [len(tokens) for tokens in await self._tokens.many(texts, marks=True)]

    async def close(self) -> None:
        """End the model's process."""
        await self._process.close()

    async def _free(self, request: ModelRequest, prompt: list[int]) -> ModelReply:
        check_room(len(prompt), 1)
        room = min(request.max_tokens, WINDOW - len(prompt))
        answer = await self._ask(
            prompt, n_predict=room, stop=list(request.stop), **_sampling(request)
        )
        return _reply(answer, prompt, text=answer["content"])

    async def _chosen(
        self, request: ModelRequest, prompt: list[int], spelt: Mapping[str, Sequence[int]]
    ) -> ModelReply:
        root = tree(spelt)
        answer = await self._ask(
            prompt,
            n_predict=1 + max(map(len, spelt.values())),
            grammar=grammar(root, await self._tokens.newline()),
            return_tokens=True,
            **_sampling(request),
        )
        choice = walk(root, answer["tokens"])
        if choice is None:
            raise ModelReplyError(f"{answer['content']!r:.80} is none of the choices.")
        return _reply(answer | {"stop_type": "word"}, prompt, text=choice)

    async def _scored(self, prompt: list[int], spelt: Mapping[str, Sequence[int]]) -> ModelReply:
        root = tree(spelt)
        kept: list[int] = []
        async with self._slots.slot(prompt) as slot:

            async def ask(path: Sequence[int], tokens: Sequence[int], *, likely: int) -> Any:
                answer = await self._post(
                    path,
                    slot.number,
                    n_predict=len(tokens),
                    grammar="root ::= " + " ".join(f"<[{token}]>" for token in tokens),
                    n_probs=likely,
                    temperature=0,
                )
                kept.append(answer["timings"]["cache_n"])
                return answer["completion_probabilities"]

            found = await score(root, prompt, ask)
        scores = {choice: found[str(walk(root, tokens))] for choice, tokens in spelt.items()}
        return ModelReply(
            text=max(scores, key=scores.__getitem__),
            finish="stop",
            tokens_in=len(prompt) + sum(map(len, spelt.values())),
            tokens_out=0,
            tokens_kept=kept[0],
            scores=scores,
        )

    async def _ask(self, prompt: Sequence[int], **asked: Any) -> Any:
        async with self._slots.slot(prompt) as slot:
            return await self._post(prompt, slot.number, **asked)

    async def _post(self, prompt: Sequence[int], slot: int, **asked: Any) -> Any:
        fields = [*_FIELDS, "completion_probabilities"] if "n_probs" in asked else _FIELDS
        known = {
            "prompt": prompt,
            "id_slot": slot,
            "cache_prompt": True,
            "response_fields": fields,
        }
        return await self._process.post("/completion", known | asked)


def _sampling(request: ModelRequest) -> dict[str, Any]:
    """Temperature alone: nothing else changes the probabilities that the model gives."""
    temperature = request.temperature or 0.0
    return {"temperature": temperature, "seed": request.sample, "top_k": 0, "top_p": 1, "min_p": 0}


def _reply(answer: Mapping[str, Any], prompt: Sequence[int], *, text: str) -> ModelReply:
    return ModelReply(
        text=text,
        finish="length" if answer["stop_type"] == _CUT_OFF else "stop",
        tokens_in=len(prompt),
        tokens_out=answer["tokens_predicted"],
        tokens_kept=answer["timings"]["cache_n"],
    )
