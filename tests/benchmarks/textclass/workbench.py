"""Harnesses at work on a text-classification benchmark, and models that answer them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from coevolve.benchmarks.textclass import TextClassification
from coevolve.executors.isolation import Limits, find_isolation
from coevolve.executors.workload import WatchedHarness, frame_of
from coevolve.models.model_client import StubModel

USAGE = {"tokens_in": 9, "tokens_out": 1, "dollars": 0.5}
"""What an answer that was called for has cost."""
LIMITS = Limits(seconds=30, startup_seconds=30)

COPY = """
class Copy:
    \"\"\"Answers with what it was told of the same question, else asks the model.\"\"\"

    def __init__(self, model, task):
        self.model, self.task, self.seen = model, task, {}

    def learn(self, example):
        self.seen[example.question] = example.answer

    def predict(self, question):
        if question in self.seen:
            return self.seen[question]
        return self.model(self.task.prompt(question))

    def state(self):
        return self.seen

    def restore(self, state):
        self.seen = dict(state)
"""


class Scripted:
    """A host whose model gives an answer that a question in the prompt calls for.

    Args:
        answers: The answer, or the error, for prompts that have a text in them.
    """

    def __init__(self, answers: Mapping[str, str | Exception]) -> None:
        self._answers = answers
        self._stub = StubModel()
        self.requests: list[dict[str, Any]] = []

    def ask(self, service: str, /, **payload: Any) -> Any:
        """What a service answers."""
        given = self._stub.ask(service, **payload)
        if service != "model":
            return given
        self.requests.append(payload)
        for part, answer in self._answers.items():
            if part in payload["prompt"]:
                if isinstance(answer, Exception):
                    raise answer
                return {**given, "text": answer, "usage": USAGE}
        return given


@contextmanager
def at_work(
    benchmark: TextClassification, source: str, *, prepared: bool = True
) -> Iterator[WatchedHarness]:
    """A harness of this source in the isolation this machine has, ready for trials."""
    with TemporaryDirectory(prefix="coevolve-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "harness.py").write_text(source)
        with WatchedHarness(
            folder,
            isolation=find_isolation("auto"),
            limits=LIMITS,
            name="c",
            frame=frame_of(benchmark),
            flag=bytearray(2),
        ) as harness:
            if prepared:
                harness.state = benchmark.prepare(harness)
            yield harness
