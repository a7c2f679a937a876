"""Harnesses at work behind the frame, for tests."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from coevolve.benchmarks.textclass.harness_files import frame_source
from coevolve.executors.isolation import Harness, Limits, find_isolation
from coevolve.models.model_client import StubModel

LIMITS = Limits(seconds=30, startup_seconds=30)
TASK = {"instructions": "Name it.", "labels": ["cat", "dog"], "template": "Name it: {question}"}
OPEN = {**TASK, "labels": None}


class Life:
    """A harness in a sandbox, and what it asked its model."""

    def __init__(self, harness: Harness, answer: Callable[[dict[str, Any]], str], **stub: Any):
        self.harness = harness
        self.asked: list[dict[str, Any]] = []
        self._answer = answer
        self._stub = StubModel(**stub)

    def call(self, function: str, *args: object) -> Any:
        services = {**self._stub.services, "model": self._model}
        return self.harness.call(f"frame:{function}", *args, services=services)

    def learn(self, *examples: tuple[str, str], pool: str = "") -> None:
        for question, answer in examples:
            self.call("learn", {"question": question, "answer": answer}, pool)

    def predict(self, question: str, pool: str = "") -> Any:
        return self.call("predict", question, pool)

    @property
    def prompts(self) -> list[str]:
        return [request["prompt"] for request in self.asked]

    def _model(self, **request: Any) -> dict[str, Any]:
        self.asked.append(request)
        reply: dict[str, Any] = self._stub.ask("model", **request)
        return reply if request.get("choices") else {**reply, "text": self._answer(request)}


@contextmanager
def alive(
    files: str | Mapping[str, str | bytes],
    task: Mapping[str, Any] | None = TASK,
    *,
    answer: Callable[[dict[str, Any]], str] = lambda request: "stub",
    **stub: Any,
) -> Iterator[Life]:
    """A harness of these files in the isolation this machine has, begun unless task is None."""
    given = {"harness.py": files} if isinstance(files, str) else files
    with TemporaryDirectory(prefix="coevolve-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for path, content in given.items():
            data = content.encode() if isinstance(content, str) else content
            (folder / path).write_bytes(data)
        isolation = find_isolation("auto")
        with Harness(folder, isolation=isolation, limits=LIMITS, frame=frame_source()) as harness:
            life = Life(harness, answer, **stub)
            if task is not None:
                life.call("begin", dict(task))
            yield life
