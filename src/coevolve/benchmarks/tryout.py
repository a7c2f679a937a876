"""Candidates put on trial for the conformance suite, as a worker would."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from coevolve.benchmarks.base import Benchmark
from coevolve.core.outcomes import Missing, checked_score
from coevolve.executors.failures import classify
from coevolve.executors.isolation import Executed, Harness, Isolation, Limits
from coevolve.executors.workload import Score, frame_of
from coevolve.search.candidate import Files
from coevolve.search.trials import Fault


class RecordingHarness(Harness):
    """A harness that keeps every text passed to the candidate, in `seen`."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.seen: set[str] = set()

    def call(self, function: str, /, *arguments: Any, **named: Any) -> Any:
        """What a function of the candidate answers."""
        self.seen |= texts([arguments, named])
        return super().call(function, *arguments, **named)

    def execute(self, argv: Any, **named: Any) -> Executed:
        """What an executable gave in the candidate's isolation."""
        self.seen |= texts(argv)
        return super().execute(argv, **named)


class Tried:
    """How far a candidate came, and what it saw."""

    def __init__(self) -> None:
        self.step = ""
        self.state: object = None
        self.scores: list[float | Missing] = []
        self.fault: Fault | None = None
        self.seen: set[str] = set()


class Bench:
    """Candidates put on trial one after another."""

    def __init__(self, benchmark: Benchmark, isolation: Isolation, limits: Limits) -> None:
        self._benchmark = benchmark
        self._isolation = isolation
        self._limits = limits
        self.task = benchmark.pool.tasks[0]

    def try_out(self, name: str, files: Files, trials: int) -> Tried:
        """Check, prepare and run a candidate as a worker would."""
        with TemporaryDirectory(prefix="coevolve-conformance-") as folder:
            for path, data in files.items():
                target = Path(folder) / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
            Path(folder).chmod(0o755)
            with RecordingHarness(
                Path(folder),
                isolation=self._isolation,
                limits=self._limits,
                name=name,
                frame=frame_of(self._benchmark),
            ) as harness:
                return self._run(harness, trials)

    def _run(self, harness: RecordingHarness, trials: int) -> Tried:
        tried = Tried()
        try:
            tried.step = "check"
            self._benchmark.check(harness)
            tried.step = "prepare"
            tried.state = harness.state = self._benchmark.prepare(harness)
            tried.step = "run"
            for _ in range(trials):
                tried.scores.append(_value(self._benchmark.run(harness, self.task, 0), self.task))
        except Exception as error:
            tried.fault = classify(error)
        tried.seen = harness.seen
        return tried


def texts(value: object) -> set[str]:
    """Every text within some JSON.

    >>> sorted(texts({"a": ["b", {"c": 1}]}))
    ['a', 'b', 'c']
    """
    found: set[str] = set()
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, str):
            found.add(part)
        elif isinstance(part, Mapping):
            left += [*part.keys(), *part.values()]
        elif isinstance(part, list | tuple | set | frozenset):
            left += list(part)
    return found


def _value(given: object, task: str) -> float | Missing:
    if isinstance(given, Missing):
        return given
    return checked_score(given.value if isinstance(given, Score) else given, task)
