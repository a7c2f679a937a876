"""Harnesses run in this process on every task of a set, with answers from a store."""

import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coevolve.benchmarks.textclass.blocks.failure_findings import MANY
from coevolve.benchmarks.textclass.data_sets import DataSet, shuffled
from coevolve.benchmarks.textclass.inside.interface import Example, Task
from coevolve.errors import InputError
from coevolve.search.candidate import Files
from coevolve.tables.label_answers import LabelModel

OTHER = 255
"""The number of an answer that is not a label."""
SEED = 42
"""Of the order of examples and tasks, as in the benchmark."""

type Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """A harness on all tasks of a set: one entry for each, validation first, then the test.

    Args:
        answers: The number of the label that it answered; `OTHER` for anything else.
        correct: Whether the answer is right.
        tokens_in: Tokens that the model read, those of labels that it scored included.
        tokens_out: Tokens that the model wrote.
        offered: Whether the right label was among the choices of a request.
        shown: Whether a prompt shows the right label, beyond a list of all labels.
        learning: Tokens of requests while it learned.
    """

    answers: NDArray[np.uint8]
    correct: Flags
    tokens_in: NDArray[np.uint16]
    tokens_out: NDArray[np.uint16]
    offered: Flags
    shown: Flags
    learning: int


class HarnessRuns:
    """Runs harnesses on a set.

    A harness file runs as it is. Only its method `alike`, which compares a question with the
    examples and takes most of the time, is remembered across harnesses that compare texts alike:
    it depends on nothing but the examples and the question.

    Args:
        data: The set.
        labels: All labels, in the order of their numbers.
        model: The model that harnesses get.
    """

    def __init__(self, data: DataSet, labels: Sequence[str], model: LabelModel) -> None:
        self._data, self._model = data, model
        self._numbers = {label: number for number, label in enumerate(labels)}
        self._train = [data.train[n] for n in shuffled(len(data.train), SEED)]
        self._alike: dict[tuple[str, int, str], list[float]] = {}

    def evaluated(self, files: Files, like: str | None = None) -> Evaluated | None:
        """The harness on all tasks; None if answers of the model are missing.

        Args:
            files: The harness.
            like: What `alike` does, as a name that equal methods share; None to run it always.
        """
        kind = _class(files)
        if like is not None and hasattr(kind, "alike"):
            kind.alike = self._remembered(like, kind.alike)
        model = self._model
        model.missing.clear()
        model.unwritten.clear()
        model.begin()
        words = self._data.words.to_json()
        harness = kind(model, Task(**words))
        for row in self._train:
            harness.learn(Example(row.question, row.answer))
        learning = model.tokens_in + model.tokens_out
        cells = [self._cell(harness, row.question, row.answer) for row in self._tasks]
        if model.incomplete:
            return None
        answers, correct, read, written, offered, shown = zip(*cells, strict=True)
        return Evaluated(
            answers=np.array(answers, np.uint8),
            correct=np.array(correct, bool),
            tokens_in=np.array(read, np.uint16),
            tokens_out=np.array(written, np.uint16),
            offered=np.array(offered, bool),
            shown=np.array(shown, bool),
            learning=learning,
        )

    @property
    def _tasks(self) -> Sequence[Any]:
        return (*self._data.val, *self._data.test)

    def _cell(self, harness: Any, question: str, right: str) -> tuple[Any, ...]:
        model = self._model
        model.begin()
        answer = harness.predict(question)
        offered = {_plain(choice) for choice in model.offered}
        return (
            self._numbers.get(answer, OTHER),
            self._data.evaluate(answer, right).correct,
            model.tokens_in,
            model.tokens_out,
            _plain(right) in offered,
            any(_shown(right, prompt, model.offered) for prompt in model.prompts),
        )

    def _remembered(self, like: str, alike: Callable[..., list[float]]) -> Any:
        known = self._alike

        def remembered(harness: Any, question: str) -> list[float]:
            key = (like, len(harness.examples), question)
            if key not in known:
                known[key] = alike(harness, question)
            return known[key]

        return remembered


def _shown(right: str, prompt: str, offered: set[str]) -> bool:
    """As `failure_findings` tells it from a trace."""
    text = _plain(prompt)
    listed = min(text.count(_plain(label)) for label in offered) if len(offered) > MANY else 0
    return text.count(_plain(right)) > listed


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(".!? ")


def _class(files: Files) -> Any:
    """The class that a harness file defines."""
    module = types.ModuleType("harness_of_table")
    exec(compile(files["harness.py"], "harness.py", "exec"), module.__dict__)
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and value.__module__ == module.__name__
        and hasattr(value, "learn")
        and hasattr(value, "predict")
    ]
    if len(found) != 1:
        raise InputError(f"harness.py defines {len(found)} harness classes; it must define one.")
    return found[0]
