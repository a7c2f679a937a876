"""Accuracy of the built-in harnesses with the embedded model, on the published sets.

Run as `make bench-textclass` or `python benchmarks/textclass.py [--data FOLDER]`; it takes most
of an hour on two cores. Every harness learns the training rows of a set and answers its whole
validation and test split, through the engine's own workers, isolation and gateway. `--quick`
takes a few questions of each and records nothing; `--only` names the harnesses to measure, and
keeps the recorded rows of the others.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import record

from coevolve.benchmarks.textclass import TextClassification
from coevolve.core.outcomes import Usage
from coevolve.executors.isolation import Limits
from coevolve.executors.local import LocalExecutor
from coevolve.executors.workload import Spec
from coevolve.models.embedded import EmbeddedProvider
from coevolve.models.gateway import Gateway
from coevolve.models.provider import Sampling
from coevolve.models.rate_limits import Pace
from coevolve.search.candidate import Candidate
from coevolve.search.trials import Result, Split, Trial
from coevolve.store import RunStore

SHARED = Path(__file__).parents[2] / "shared" / "data" / "textclass"
PUBLISHED = ("s2d", "uspto", "law")
SETS = (*PUBLISHED, "service-desk")
HARNESSES = ("vote", "zero-shot", "few-shot", "nearest", "discovered", "context-files")
SLOTS = 2


class Bench:
    """One set and one harness at work.

    Args:
        store: Where the files of harnesses and what they learned are kept.
        gateway: The model.
        data: The folder with the published sets.
        few: How many questions of a split to ask; None for all.

    Attributes:
        outcomes: The scores of validation tasks, by harness.
    """

    def __init__(self, store: RunStore, gateway: Gateway, data: Path | None, few: int | None):
        self._store, self._gateway, self._data, self._few = store, gateway, data, few
        self.outcomes: dict[str, dict[str, float]] = {}

    async def row(self, name: str, harness: str) -> dict[str, Any]:
        """What a harness gets on a set, and what that takes."""
        arguments: dict[str, Any] = {"sets": [name], "starts": [harness, _other(harness)]}
        arguments["data"] = None if self._data is None else str(self._data)
        benchmark = TextClassification(**arguments)
        executor = LocalExecutor(
            Spec(factory="coevolve.benchmarks.textclass:TextClassification", arguments=arguments),
            contents=self._store,
            workers=SLOTS,
            limits=Limits(seconds=300),
            services=self._gateway.services(),
        )
        files = benchmark.starts[harness]
        for content in files.values():
            self._store.put(content)
        candidate = Candidate.of(files, name=harness)
        try:
            started = time.perf_counter()
            prepared = await executor.prepare(candidate)
            if prepared.state is None:
                sys.exit(f"{harness} cannot be prepared for {name}: {prepared.fault}")
            state = self._store.put(prepared.state.encode())
            learning = time.perf_counter() - started
            found: dict[str, tuple[list[Result], float]] = {}
            tests = [task for tasks in benchmark.test_tasks.values() for task in tasks]
            splits: dict[Split, Sequence[str]] = {
                "validation": benchmark.pool.tasks,
                "test": tests,
            }
            for split, tasks in splits.items():
                started = time.perf_counter()
                trials = [
                    Trial(candidate=harness, task=task, split=split, state=state)
                    for task in tasks[: self._few]
                ]
                results = await asyncio.gather(*(executor.run(candidate, t) for t in trials))
                found[split] = results, time.perf_counter() - started
                if split == "validation":
                    scores = [result.score or 0.0 for result in results]
                    self.outcomes[harness] = dict(zip(tasks, scores, strict=False))
        finally:
            await executor.close()
        return _row(name, harness, found, learning, prepared.usage)


def _other(harness: str) -> str:
    """A benchmark wants two starting harnesses, though only one is measured here."""
    return "zero-shot" if harness != "zero-shot" else "vote"


def _row(
    name: str,
    harness: str,
    found: dict[str, tuple[list[Result], float]],
    learning: float,
    learned: Usage,
) -> dict[str, Any]:
    results = [result for split, _ in found.values() for result in split]
    seconds = sum(seconds for _, seconds in found.values())
    tokens = sum(r.usage.tokens_in + r.usage.tokens_out for r in results)
    faults = sum(result.fault is not None for result in results)
    return {
        "set": name,
        "harness": harness,
        "validation": _accuracy(found["validation"][0]),
        "test": _accuracy(found["test"][0]),
        "tokens/evaluation": round(tokens / len(results)),
        "seconds/evaluation": round(seconds / len(results), 3),
        "learning tokens": learned.tokens_in + learned.tokens_out,
        "learning seconds": round(learning, 1),
        "evaluations": len(results),
        "faults": faults,
    }


def _accuracy(results: Sequence[Result]) -> float | None:
    """The share of right answers; a candidate's fault is a wrong one."""
    broken = [r.fault for r in results if r.fault and r.fault.blame not in ("candidate",)]
    if broken:
        sys.exit(f"an evaluation broke down: {broken[0]}")
    return round(sum(r.score or 0.0 for r in results) / len(results), 4) if results else None


async def _measure(options: argparse.Namespace) -> None:
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    path = record.RESULTS / "textclass.json"
    if options.only and path.exists():
        for row in json.loads(path.read_text())["embedded model"]:
            rows[row["set"], row["harness"]] = row
    gateway = Gateway(
        EmbeddedProvider(slots=SLOTS),
        sampling=Sampling(max_tokens=256),
        pace=Pace(concurrency=SLOTS),
    )
    few = 4 if options.quick else None
    with tempfile.TemporaryDirectory() as folder, RunStore.create(Path(folder) / "run") as store:
        try:
            for name in options.sets:
                bench = Bench(store, gateway, options.data, few)
                for harness in options.only or HARNESSES:
                    rows[name, harness] = row = await bench.row(name, harness)
                    print(json.dumps(row), flush=True)
                    if not options.quick:
                        record.save("textclass", {"embedded model": _sorted(rows)})
        finally:
            await gateway.close()
    for name in SETS:
        if table := [row for row in _sorted(rows) if row["set"] == name]:
            record.show(name, table)


def _sorted(rows: dict[tuple[str, str], dict[str, Any]]) -> list[dict[str, Any]]:
    order = [(name, harness) for name in SETS for harness in HARNESSES]
    return [rows[key] for key in sorted(rows, key=lambda k: order.index(k) if k in order else 99)]


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=SHARED if SHARED.is_dir() else None)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=PUBLISHED)
    parser.add_argument("--only", nargs="+", metavar="HARNESS")
    parser.add_argument("--quick", action="store_true")
    asyncio.run(_measure(parser.parse_args()))


if __name__ == "__main__":
    main()
