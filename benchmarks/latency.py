"""How long an evaluation takes when the model is slow and many calls go on at once.

130 validation tasks of text classification, one call of the model each, which answers after 200 ms
and takes 32 calls at once; 32 workers, each with the harness in its own sandbox. Answers alone
take 1.0 s. Run as `make bench` or `python benchmarks/latency.py`; `--quick` runs everything once
and records nothing.
"""

import argparse
import asyncio
import json
import math
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import record

from coevolve.executors.local import LocalExecutor
from coevolve.executors.workload import Spec
from coevolve.models.gateway import Gateway
from coevolve.models.provider import JSON, ModelReply, ModelRequest
from coevolve.models.rate_limits import Pace
from coevolve.models.response_cache import ResponseCache
from coevolve.search.candidate import Candidate
from coevolve.search.trials import Trial
from coevolve.store import RunStore

TASKS, WORKERS, SLOTS, SECONDS = 130, 32, 32, 0.2
LABELS = ("billing", "delivery", "login", "returns")
HARNESS = """\
class Asks:
    \"\"\"Asks the model for every question, after the examples it has seen.\"\"\"

    def __init__(self, model, task):
        self.model, self.task, self.seen = model, task, []

    def learn(self, example):
        self.seen.append(f"{example.question}: {example.answer}")

    def predict(self, question):
        return self.model("\\n".join(["{NAME}", *self.seen, self.task.prompt(question)]))

    def state(self):
        return self.seen

    def restore(self, state):
        self.seen = state
"""


class SlowModel:
    """A provider that knows one answer, and takes its time to give it."""

    identity: Mapping[str, JSON] = {"name": "slow", "seconds": SECONDS}
    window = None
    gives_scores = False

    async def complete(self, request: ModelRequest, /) -> ModelReply:
        """The first label, after a while."""
        await asyncio.sleep(SECONDS)
        read = sum(len(text) for text in request.texts()) // 4
        return ModelReply(text=LABELS[0], finish="stop", tokens_in=read, tokens_out=1)

    async def count(self, texts: Sequence[str], /) -> list[int]:
        """A quarter of the characters."""
        return [len(text) // 4 for text in texts]

    async def close(self) -> None:
        """Nothing was started."""


class Bench:
    """A data set, harnesses and a gateway in a folder, and executors that use them."""

    def __init__(self, folder: Path, store: RunStore) -> None:
        self._store = store
        for split, rows in {"train": 20, "val": TASKS}.items():
            lines = [_row(split, number) for number in range(rows)]
            (folder / f"{split}.jsonl").write_text("".join(lines))
        starts = []
        for name in ("one", "two"):
            (folder / name).mkdir()
            (folder / name / "harness.py").write_text(HARNESS.replace("{NAME}", name))
            starts.append(str(folder / name))
        self._spec = Spec(
            factory="coevolve.benchmarks.textclass.text_classification:TextClassification",
            arguments={"sets": [str(folder)], "starts": starts},
        )
        self.gateway = Gateway(
            SlowModel(),
            pace=Pace(concurrency=SLOTS),
            cache=ResponseCache(folder / "replies.db"),
        )
        self.tasks = [f"{folder.name}-{number:03}" for number in range(TASKS)]

    def executor(self) -> LocalExecutor:
        """Workers that have not been started yet."""
        services = self.gateway.services()
        return LocalExecutor(self._spec, contents=self._store, workers=WORKERS, services=services)

    def candidate(self, name: str) -> Candidate:
        """A harness whose prompts no other has."""
        files = {"harness.py": HARNESS.replace("{NAME}", name).encode()}
        for data in files.values():
            self._store.put(data)
        return Candidate.of(files, name=name)

    async def prepared(self, executor: LocalExecutor, candidate: Candidate) -> str:
        """Where the state of a candidate is kept that has learned."""
        done = await executor.prepare(candidate)
        assert done.state is not None, done.fault
        return self._store.put(done.state.encode())

    async def evaluated(
        self, executor: LocalExecutor, candidate: Candidate, state: str
    ) -> dict[str, float]:
        """What it takes to run every task once."""
        calls, cached = self.gateway.calls, self.gateway.cached
        begun = time.perf_counter()
        trials = [
            Trial(candidate=candidate.name, task=t, trial=0, state=state) for t in self.tasks
        ]
        results = await asyncio.gather(*(executor.run(candidate, trial) for trial in trials))
        seconds = time.perf_counter() - begun
        assert [result.fault for result in results] == [None] * TASKS, results[0].fault
        return {
            "seconds": seconds,
            "calls": self.gateway.calls - calls,
            "cached": self.gateway.cached - cached,
            "tokens": sum(result.usage.tokens_in for result in results),
        }


async def measured(folder: Path, store: RunStore) -> dict[str, dict[str, float]]:
    """One evaluation of each kind."""
    bench = Bench(folder, store)
    first, second = bench.candidate("first"), bench.candidate("second")
    before = bench.executor()
    try:
        states = [await bench.prepared(before, candidate) for candidate in (first, second)]
    finally:
        await before.close()
    executor = bench.executor()
    try:
        return {
            "workers not yet started": await bench.evaluated(executor, first, states[0]),
            "the next harness": await bench.evaluated(executor, second, states[1]),
            "the same harness again": await bench.evaluated(executor, second, states[1]),
        }
    finally:
        await executor.close()
        await bench.gateway.close()


def table(repeats: int) -> list[dict[str, Any]]:
    """The median of several runs, each in a folder of its own."""
    runs = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as name:
            (folder := Path(name) / "desk").mkdir()
            with RunStore.create(Path(name) / "run") as store:
                runs.append(asyncio.run(measured(folder, store)))
    rows = []
    for kind in runs[0]:
        every = [run[kind]["seconds"] for run in runs]
        rows.append(
            {
                "evaluation": kind,
                "seconds": f"{statistics.median(every):.2f}",
                "slowest": f"{max(every):.2f}",
                "answers alone": f"{_ideal(runs[0][kind]['calls']):.2f}",
                "model calls": runs[0][kind]["calls"],
                "from the cache": runs[0][kind]["cached"],
                "tokens": runs[0][kind]["tokens"],
            }
        )
    return rows


def _ideal(calls: float) -> float:
    return math.ceil(calls / SLOTS) * SECONDS


def _row(split: str, number: int) -> str:
    answer = LABELS[number % len(LABELS)]
    row = {"question": f"{split} {number}: something about {answer}", "answer": answer}
    return json.dumps(row) + "\n"


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="once, and nothing recorded")
    options = parser.parse_args()
    rows = table(1 if options.quick else 5)
    title = f"{TASKS} tasks, a model of {1000 * SECONDS:.0f} ms and {SLOTS} slots"
    record.show(f"{title}, {WORKERS} workers", rows)
    if not options.quick:
        record.save("latency", {"evaluations": rows})


if __name__ == "__main__":
    main()
