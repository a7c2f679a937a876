"""Speed of the embedded model: loading, reading, writing, choosing and scoring.

Run as `make bench-embedded` or `python benchmarks/embedded.py`; it takes less than a minute. Every
number is the best of three, since anything else that runs only makes it slower.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import record

from coevolve.benchmarks.textclass.data_sets import load_set
from coevolve.models.embedded import EmbeddedProvider
from coevolve.models.provider import ModelRequest

TIMES = 3
WRITTEN = 48
LONG = "".join(f"Message {n}: the printer on floor {n} does not print.\n" for n in range(26))


async def timed(ask: Callable[[], Awaitable[Any]]) -> tuple[float, Any]:
    """Seconds, and what was answered."""
    began = time.perf_counter()
    answer = await ask()
    return time.perf_counter() - began, answer


async def once(number: int) -> dict[str, float]:
    """All measurements with a model that was just started."""
    labels = load_set("service-desk", None).words.labels or ()
    model = EmbeddedProvider()

    def ask(prompt: str, **options: Any) -> Callable[[], Awaitable[Any]]:
        request = ModelRequest(prompt=prompt, **{"max_tokens": 1, "temperature": 0.0, **options})
        return lambda: model.complete(request)

    try:
        load, _ = await timed(lambda: model.count(["x"]))
        fresh = f"Number {number}.\n{LONG}"
        read, reply = await timed(ask(f"{fresh}Topic:"))
        known, _ = await timed(ask(f"{fresh}And the scanner, too.\nTopic:"))
        write, written = await timed(ask(f"Once upon a time, {number}", max_tokens=WRITTEN))
        choose, _ = await timed(ask(f"{fresh}It jams.\nTopic:", choices=tuple(labels)))
        score, _ = await timed(ask(f"{fresh}It jams.\nTopic:", choices=tuple(labels), scores=True))
    finally:
        await model.close()
    return {
        "seconds to start": load,
        "prompt tokens": reply.tokens_in,
        "seconds to read them": read,
        "seconds with their beginning known": known,
        "ms per token written": 1000 * write / written.tokens_out,
        "seconds to choose of 24 labels": choose,
        "seconds to score 24 labels": score,
    }


def main() -> None:
    """Measure, print and record."""
    found = [asyncio.run(once(number)) for number in range(TIMES)]
    best = {name: min(row[name] for row in found) for name in found[0]}
    best["prompt tokens/s"] = best["prompt tokens"] / best["seconds to read them"]
    rows = [{"what": name, "best of three": f"{value:.3g}"} for name, value in best.items()]
    record.show("the embedded model", rows)
    record.save("embedded", {"speed": rows})


if __name__ == "__main__":
    main()
