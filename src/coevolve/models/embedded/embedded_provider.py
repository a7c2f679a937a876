"""The embedded model as a provider, and its speed on this machine."""

import asyncio
import importlib.util
import os
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from coevolve.core.outcomes import is_whole
from coevolve.errors import CoevolveError, ConfigError
from coevolve.models.embedded.model_process import ModelProcess
from coevolve.models.embedded.model_weights import MADE, MODEL, WINDOW, find_weights
from coevolve.models.embedded.scoring import (
    Scorer,
    Slots,
    Steps,
    Tokens,
    check_choices,
    check_room,
    choose,
    tree,
)
from coevolve.models.model_errors import ModelReplyError
from coevolve.models.provider import JSON, ModelReply, ModelRequest

_CUT_OFF = "limit"
_ARITHMETIC = "q8_0 keys"
"""Names the setting that changes the last digits of the results."""

type Spelt = Mapping[str, Sequence[int]]


class EmbeddedProvider:
    """SmolLM2-135M-Instruct in a separate process, started at the first request.

    The model continues a prompt directly. A conversation, or a prompt with a system text, goes
    through its chat template. The answer to a request does not depend on other requests. The
    default temperature is 0.

    Args:
        folder: The folder of the weights; None for the default.
        slots: Prompts at once, each with a whole window.
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
        self._scorer: Scorer | None = None

    @property
    def identity(self) -> Mapping[str, JSON]:
        """The model, its weights and its arithmetic."""
        return {
            "name": f"embedded/{MODEL}",
            "model": MODEL,
            "weights": MADE.sha256,
            "arithmetic": _ARITHMETIC,
        }

    async def complete(self, request: ModelRequest, /) -> ModelReply:
        """The answer to a request."""
        with _readable():
            return await self._answer(request)

    async def _answer(self, request: ModelRequest) -> ModelReply:
        text = await self._tokens.text(request)
        prompt = await self._tokens.prompt(text)
        if not request.choices:
            return await self._free(request, prompt)
        spelt = await self._tokens.choices(text, request.choices)
        check_choices(sum(map(len, spelt.values())))
        check_room(len(prompt), 1 + max(map(len, spelt.values())))
        if request.scores:
            return await self._scored(prompt, spelt)
        return await self._chosen(request, prompt, spelt)

    async def count(self, texts: Sequence[str], /) -> list[int]:
        """The number of tokens of each text."""
        with _readable():
            return [len(tokens) for tokens in await self._tokens.many(texts, marks=True)]

    async def close(self) -> None:
        """End the model's process."""
        await self._process.close()

    async def _free(self, request: ModelRequest, prompt: list[int]) -> ModelReply:
        check_room(len(prompt), 1)
        async with self._steps(prompt) as steps:
            answer = await steps.write(
                prompt,
                n_predict=min(request.max_tokens, WINDOW - len(prompt)),
                stop=list(request.stop),
                temperature=request.temperature or 0.0,
                seed=request.sample,
            )
        text, written = answer["content"], answer["tokens_predicted"]
        if not isinstance(text, str) or not is_whole(written, least=0):
            raise TypeError(f"{text!r:.80} with {written!r:.80} tokens")
        return ModelReply(
            text=text,
            finish="length" if answer["stop_type"] == _CUT_OFF else "stop",
            tokens_in=len(prompt),
            tokens_out=written,
            tokens_kept=steps.kept or 0,
        )

    async def _chosen(self, request: ModelRequest, prompt: list[int], spelt: Spelt) -> ModelReply:
        ends = await self._tokens.ends()
        async with self._steps(prompt) as steps:
            choice, written = await choose(
                tree(spelt),
                prompt,
                steps,
                ends=ends,
                temperature=request.temperature or 0.0,
                seed=request.sample,
            )
        return ModelReply(
            text=choice,
            finish="stop",
            tokens_in=len(prompt),
            tokens_out=written,
            tokens_kept=steps.kept or 0,
        )

    async def _scored(self, prompt: list[int], spelt: Spelt) -> ModelReply:
        if self._scorer is None:
            self._scorer = Scorer((await self._tokens.ends())[0])
        async with self._steps(prompt) as steps:
            found = await self._scorer.score(tree(spelt), prompt, steps)
        same = {tuple(spelt[choice]): value for choice, value in found.items()}
        scores = {choice: same[tuple(tokens)] for choice, tokens in spelt.items()}
        return ModelReply(
            text=max(scores, key=scores.__getitem__),
            finish="stop",
            tokens_in=len(prompt) + sum(map(len, spelt.values())),
            tokens_out=0,
            tokens_kept=steps.kept or 0,
            scores=scores,
        )

    @asynccontextmanager
    async def _steps(self, prompt: Sequence[int]) -> AsyncIterator[Steps]:
        async with self._slots.slot(prompt) as slot:
            yield Steps(self._process, slot.number)


@contextmanager
def _readable() -> Iterator[None]:
    """Turn an error in reading an answer of the model's server into ours."""
    try:
        yield
    except CoevolveError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelReplyError(
            f"the server of the embedded model sent an unexpected answer: {error!r:.200}."
        ) from error


_LINE = "Question {0}: how many are {0} and {0}? Answer: {1}.\n"
_LINES, _WRITTEN = 16, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """The speed of the model: to load it, to read and to write."""

    load_seconds: float
    prompt_tokens_per_second: float
    ms_per_token: float

    def __str__(self) -> str:
        return (
            f"{self.prompt_tokens_per_second:.0f} prompt tokens/s, "
            f"{self.ms_per_token:.0f} ms per token written"
        )


def embedded_line() -> tuple[bool, str]:
    """Whether the embedded model works here, and a message; takes about two seconds."""
    if importlib.util.find_spec("xllamacpp") is None:
        return False, "xllamacpp is not installed: pip install 'task-coevolve[embedded]'"
    try:
        return True, f"{MODEL}, {asyncio.run(measure())}"
    except CoevolveError as error:
        return False, str(error)


async def measure(folder: Path | None = None) -> Speed:
    """Load the model and time a short prompt and a short answer."""
    find_weights(folder)  # creates them if necessary, which is not part of loading
    provider = EmbeddedProvider(folder=folder, slots=1)
    try:
        began = time.perf_counter()
        await provider.count(["ready"])
        load = time.perf_counter() - began
        prompt = "".join(_LINE.format(number, 2 * number) for number in range(_LINES))
        tokens, reading = await _timed(provider, prompt, 1)
        written, both = await _timed(provider, prompt, _WRITTEN)
    finally:
        await provider.close()
    return Speed(
        load_seconds=load,
        prompt_tokens_per_second=tokens[0] / reading,
        ms_per_token=1000 * both / written[1],
    )


async def _timed(
    provider: EmbeddedProvider, prompt: str, length: int
) -> tuple[tuple[int, int], float]:
    began = time.perf_counter()
    reply = await provider.complete(ModelRequest(prompt=prompt, max_tokens=length))
    return (reply.tokens_in, reply.tokens_out), time.perf_counter() - began
