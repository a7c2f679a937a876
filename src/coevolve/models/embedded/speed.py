"""Whether the embedded model is there, and how fast it is on this machine."""

import asyncio
import importlib.util
import time
from dataclasses import dataclass
from pathlib import Path

from coevolve.errors import CoevolveError
from coevolve.models.embedded.provider import EmbeddedProvider
from coevolve.models.embedded.weights import MODEL, find_weights
from coevolve.models.request import ModelRequest

_LINE = "Question {0}: how many are {0} and {0}? Answer: {1}.\n"
_LINES, _WRITTEN = 16, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """How fast the model is: seconds to load it, to read and to write."""

    load_seconds: float
    prompt_tokens_per_second: float
    ms_per_token: float

    def __str__(self) -> str:
        return (
            f"{self.prompt_tokens_per_second:.0f} prompt tokens/s, "
            f"{self.ms_per_token:.0f} ms per token written"
        )


def embedded_line() -> tuple[bool, str]:
    """Whether the embedded model works here, and a line that says so; takes about two seconds."""
    if importlib.util.find_spec("xllamacpp") is None:
        return False, "xllamacpp is not installed: pip install 'task-coevolve[embedded]'"
    try:
        return True, f"{MODEL}, {asyncio.run(measure())}"
    except CoevolveError as error:
        return False, str(error)


async def measure(folder: Path | None = None) -> Speed:
    """Load the model and time a short prompt and a short answer."""
    find_weights(folder)  # making them is no part of loading them
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
