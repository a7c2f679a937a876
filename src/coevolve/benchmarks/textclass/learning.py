"""How a harness learns from the train rows of a set, and where it is asked afterwards.

A harness works in the sandbox, behind the functions of the frame. It is fed one example at a
time. What it knows in the end is its state, and every later question is put to a harness that
was made from this state, in whichever process that is.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal

from coevolve.benchmarks.textclass.data import DataSet
from coevolve.benchmarks.textclass.rows import Row
from coevolve.executors.isolation import Harness
from coevolve.models.client import ModelClient

Mode = Literal["offline", "online"]
MODES: tuple[Mode, ...] = ("offline", "online")
SAMPLES = 1_000
"""Numbers of samples that belong to one trial."""


def learned(
    harness: Harness, data: DataSet, client: ModelClient, *, rows: Sequence[Row], mode: Mode
) -> Any:
    """The state of a harness that has seen the rows of a set in this order.

    Offline, it is given each question with its answer. Online, it is asked first, and learns
    what it said and whether that was right along with the answer.
    """
    pool, services = data.name, client.services
    client.begin(capped=False)
    harness.call("frame:begin", data.words.to_json(), pool=pool, services=services)
    for row in rows:
        client.begin(capped=False)
        example: dict[str, object] = {"question": row.question, "answer": row.answer}
        if mode == "online":
            said = predicted(harness, data, row.question, client)
            correct = data.evaluate(said, row.answer).correct
            example |= {"prediction": said, "correct": correct}
        harness.call("frame:learn", example, pool=pool, services=services)
    return harness.call("frame:state", pool=pool, services=services)


def recall(harness: Harness, data: DataSet, state: object, client: ModelClient) -> None:
    """Have a harness that knows what `state` says, unless this process has it already."""
    if not harness.call("frame:ready", data.name, returns=bool):
        harness.call(
            "frame:begin",
            data.words.to_json(),
            state=state,
            pool=data.name,
            services=client.services,
        )


def predicted(
    harness: Harness, data: DataSet, question: str, client: ModelClient, *, trial: int = 0
) -> str:
    """The answer of a harness to a question; another trial gets other samples of the model."""
    answer: str = harness.call(
        "frame:predict",
        question,
        pool=data.name,
        returns=str,
        services=_sampled(client, trial) if trial else client.services,
    )
    return answer


def _sampled(client: ModelClient, trial: int) -> dict[str, Callable[..., Any]]:
    """The services with samples of the model that no other trial gets."""
    shape = inspect.signature(client.model)

    @functools.wraps(client.model)  # so that arguments are checked against its own
    def model(*args: object, **named: object) -> dict[str, Any]:
        request = shape.bind(*args, **named).arguments
        own = request.get("sample") or 0
        request["sample"] = own + trial * SAMPLES if isinstance(own, int) else own
        return client.model(**request)

    return {**client.services, "model": model}
