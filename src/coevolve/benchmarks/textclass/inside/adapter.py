"""A memory system of Meta-Harness behind the interface of harnesses."""

from __future__ import annotations

from coevolve.benchmarks.textclass.inside.interface import (
    Example,
    InterfaceError,
    Model,
    Task,
    shown,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Adapter:
    """Passes on what the frame asks, in the words that Meta-Harness uses."""

    def __init__(self, kind: type, model: Model, task: Task) -> None:
        self._system: Any = kind(llm=model)
        self._task = task
        self._metadata: dict[str, object] = {}

    def learn(self, example: Example) -> None:
        """Give it a batch of one; in offline learning the answer counts as predicted."""
        offline = example.prediction is None
        result: dict[str, object] = {
            "input": self._task.prompt(example.question),
            "prediction": example.answer if offline else example.prediction,
            "ground_truth": example.answer,
            "was_correct": True if offline else bool(example.correct),
            "raw_question": example.question,
        }
        if not offline:
            result["metadata"] = self._metadata.pop(example.question, {})
        self._metadata.clear()
        self._system.learn_from_batch([result])

    def predict(self, question: str) -> str:
        """Its answer to the whole task in words."""
        given = self._system.predict(self._task.prompt(question))
        if not (isinstance(given, tuple) and len(given) == 2):
            raise InterfaceError(f"predict must return (answer, metadata), got {shown(given)}")
        answer, self._metadata[question] = given
        return answer  # type: ignore[no-any-return]

    def state(self) -> str:
        """What it knows, as the text it makes of it."""
        state = self._system.get_state()
        if not isinstance(state, str):
            raise InterfaceError(f"get_state must return a string, got {shown(state)}")
        return state

    def restore(self, state: str) -> None:
        """Undo `state`."""
        self._system.set_state(state)
