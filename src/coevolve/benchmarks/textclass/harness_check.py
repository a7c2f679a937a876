"""How a harness learns and predicts, and a short check that a candidate can do both.

A harness runs in the sandbox, behind the functions of the frame. It learns one example at a time.
What it knows in the end is its state. Every question goes to a harness that was made from this
state, in any process.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from coevolve.benchmarks.textclass.data_sets import DataSet, Row
from coevolve.executors.failures import CandidateFault
from coevolve.executors.isolation import Harness, HarnessFault
from coevolve.models.model_client import ModelClient, StubModel
from coevolve.models.model_errors import RequestRefused, TrialCapError
from coevolve.search.trials import Blame

Mode = Literal["offline", "online"]
MODES: tuple[Mode, ...] = ("offline", "online")


def learned(
    harness: Harness, data: DataSet, client: ModelClient, *, rows: Sequence[Row], mode: Mode
) -> Any:
    """The state of a harness that has seen the rows of a set in this order.

    Offline, it gets each question with its answer. Online, it predicts first, and then gets the
    answer with its prediction and whether that was right. Every step has the caps of a trial.
    """

    def step(function: str, *args: object) -> Any:
        client.begin()
        return harness.call(function, *args, pool=data.name, services=client.services)

    step("frame:begin", data.words.to_json())
    for row in rows:
        example: dict[str, object] = {"question": row.question, "answer": row.answer}
        if mode == "online":
            client.begin()
            guess = predicted(harness, data, row.question, client)
            correct = data.evaluate(guess, row.answer).correct
            example |= {"prediction": guess, "correct": correct}
        step("frame:learn", example)
    return step("frame:state")


def recall(harness: Harness, data: DataSet, state: object, client: ModelClient) -> None:
    """Make a harness from a state."""
    words = data.words.to_json()
    harness.call("frame:begin", words, state=state, pool=data.name, services=client.services)


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


TASK = {
    "instructions": "Say which language a word is of.",
    "labels": ["French", "German", "English"],
    "template": "Say which language the word is of: {question}",
}
EXAMPLES = (
    {"question": "une maison", "answer": "French"},
    {"question": "das Haus", "answer": "German"},
    {"question": "a house", "answer": "English"},
    {"question": "le jardin", "answer": "French"},
)
QUESTION = "der Garten"


def check(
    harness: Harness,
    task: Mapping[str, Any] = TASK,
    *,
    examples: Sequence[Mapping[str, str]] = EXAMPLES,
    question: str = QUESTION,
    model: StubModel | None = None,
) -> None:
    """Make a candidate, let it predict, learn, predict again, and restore its state.

    Args:
        harness: The candidate, in a sandbox with the frame.
        task: The argument of `frame:begin`.
        examples: The examples to learn.
        question: The question to answer.
        model: The stub that answers for the model; by default similar to the embedded model.

    Raises:
        CandidateFault: A step failed; the reason names the step.
    """
    steps = _Steps(harness, model or StubModel())
    steps.call("import", "describe")
    steps.call("make an instance", "begin", dict(task))
    steps.predict("predict before learning", question)
    for example in examples:
        steps.call("learn", "learn", dict(example))
    before = steps.predict("predict after learning", question)
    repeated = steps.predict("predict after learning", question)
    state = steps.call("state", "state")
    steps.call("restore", "begin", dict(task), state, "restored")
    restored = steps.call("state of a restored instance", "state", "restored")
    if restored != state:
        raise CandidateFault(
            "restore: an instance made from a state has a different state: "
            f"{_difference(state, restored)}",
            kind="state",
        )
    after = steps.predict("predict after restoring", question, "restored")
    if before == repeated and not _alike(before, after):
        raise CandidateFault(
            "predict after restoring: an instance made from a state "
            f"{_departure(before, after)}; state() must contain everything predict depends on",
            kind="state",
        )


class _Predicted(NamedTuple):
    """An answer, and the requests to the model for it."""

    answer: str
    asked: list[str]


class _Steps:
    """Calls of the frame, each a named step."""

    def __init__(self, harness: Harness, model: StubModel) -> None:
        self._harness = harness
        self._client = ModelClient(model)  # the same interface as in a trial

    def call(self, step: str, function: str, *args: object) -> Any:
        self._client.begin()
        with _named(step):
            return self._harness.call(f"frame:{function}", *args, services=self._client.services)

    def predict(self, step: str, question: str, pool: str = "") -> _Predicted:
        answer = self.call(step, "predict", question, pool)
        asked = [
            json.dumps(call, sort_keys=True, ensure_ascii=False) for call in self._client.calls
        ]
        return _Predicted(answer, sorted(asked))  # threads may ask in any order


@contextmanager
def _named(step: str) -> Iterator[None]:
    try:
        yield
    except HarnessFault as fault:
        if fault.blame is not Blame.CANDIDATE:
            raise
        reason = fault.reason.partition(" (coevolve_frame,")[0]  # no file of the candidate
        raise CandidateFault(f"{step}: {reason}", kind=fault.kind) from fault
    except RequestRefused as refused:
        reason = f"{step}: the model refused the request: {refused}"
        raise CandidateFault(reason, kind="RequestRefused") from refused
    except TrialCapError as capped:
        raise CandidateFault(f"{step}: {capped}", kind="TrialCapError") from capped


def _difference(before: object, after: object) -> str:
    """The first difference of two states, in a few words."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *after]:
            if before.get(key) != after.get(key):
                return f"at {key!r}, {after.get(key)!r:.80} instead of {before.get(key)!r:.80}"
    return f"{after!r:.80} instead of {before!r:.80}"


def _alike(before: _Predicted, after: _Predicted) -> bool:
    """Whether two predictions agree; one may repeat requests that the other has cached."""
    one, other = set(before.asked), set(after.asked)
    return before.answer == after.answer and (one <= other or other <= one)


def _departure(before: _Predicted, after: _Predicted) -> str:
    """How the second prediction differs from the first, in a few words."""
    if before.answer != after.answer:
        return f"answers {after.answer!r:.80}, and the original answered {before.answer!r:.80}"
    return "sends other requests to the model than the original"
