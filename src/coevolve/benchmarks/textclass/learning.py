"""How a harness learns from the train rows of a set, and where it is asked afterwards.

A harness works in the sandbox, behind the functions of the frame. It is fed one example at a
time. What it knows in the end is its state, and every later question is put to a harness that
was made from this state, in whichever process that is.
"""

from collections.abc import Sequence
from typing import Any, Literal

from coevolve.benchmarks.textclass.data import DataSet
from coevolve.benchmarks.textclass.rows import Row
from coevolve.executors.isolation import Harness
from coevolve.models.client import ModelClient

Mode = Literal["offline", "online"]
MODES: tuple[Mode, ...] = ("offline", "online")


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


def predicted(harness: Harness, data: DataSet, question: str, client: ModelClient) -> str:
    """The answer of a harness to a question."""
    answer: str = harness.call(
        "frame:predict",
        question,
        pool=data.name,
        returns=str,
        services=client.services,
    )
    return answer
