"""Conformance of benchmarks: whether one does what the engine relies on."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from coevolve.benchmarks.base import Benchmark, briefing_of, leak_scan_of, sealed_tasks
from coevolve.core.outcomes import Missing, checked_score
from coevolve.core.pool import Pool
from coevolve.errors import CoevolveError, ConfigError
from coevolve.executors.benchmark_needs import Needs, needs_of
from coevolve.executors.isolation import Executed, Harness, Isolation, Limits, find_isolation
from coevolve.executors.workload import Score, frame_of, located_fault
from coevolve.findings import Finding, failed, noted, passed, raise_failed
from coevolve.search.candidate import Files, check_files
from coevolve.search.trials import Blame, Fault


class RecordingHarness(Harness):
    """A harness that keeps every text passed to the candidate, in `seen`."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.seen: set[str] = set()

    def call(self, function: str, /, *arguments: Any, **named: Any) -> Any:
        """Call a function of the candidate."""
        self.seen |= texts([arguments, named])
        return super().call(function, *arguments, **named)

    def execute(self, argv: Any, **named: Any) -> Executed:
        """Run an executable in the candidate's isolation."""
        self.seen |= texts(argv)
        return super().execute(argv, **named)


class Tried:
    """The last step of a candidate, its results, and the texts it saw."""

    def __init__(self) -> None:
        self.step = ""
        self.state: object = None
        self.scores: list[float | Missing] = []
        self.fault: Fault | None = None
        self.seen: set[str] = set()


class Bench:
    """Runs candidates one after another."""

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
                fresh=needs_of(self._benchmark).fresh_sandbox,
            ) as harness:
                return self._run(harness, trials)

    def _run(self, harness: RecordingHarness, trials: int) -> Tried:
        tried = Tried()
        try:
            tried.step = "check"
            self._benchmark.check(harness)
            harness.end_trial()
            tried.step = "prepare"
            tried.state = harness.state = self._benchmark.prepare(harness)
            tried.step = "run"
            for _ in range(trials):
                harness.end_trial()
                tried.scores.append(_value(self._benchmark.run(harness, self.task, 0), self.task))
        except (Exception, SystemExit) as error:
            tried.fault = located_fault(error)
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


_LONG_ENOUGH = 6
"""Shorter ids may occur in a file by chance."""
_BRIEFING = "briefing"
"""What trials do not need."""


def assert_benchmark(benchmark: Benchmark, **options: object) -> None:
    """Raise an AssertionError that lists what `check_benchmark` found wrong; for tests."""
    raise_failed(check_benchmark(benchmark, **options))  # type: ignore[arg-type]


def check_benchmark(
    benchmark: Benchmark,
    *,
    isolation: Isolation | str = "auto",
    limits: Limits | None = None,
) -> list[Finding]:
    """Run a benchmark on one task with the starting harnesses, and list the findings.

    Args:
        benchmark: Yours.
        isolation: Where candidate code runs.
        limits: Its limits; by default those that the benchmark states.
    """
    where = find_isolation(isolation) if isinstance(isolation, str) else isolation
    static = list(_static(benchmark))
    if any(found.kind == "failed" and found.about != _BRIEFING for found in static):
        return static
    return [
        *static,
        *_trials(benchmark, Bench(benchmark, where, limits or needs_of(benchmark).limited())),
    ]


def _needs(benchmark: Benchmark) -> Iterator[Finding]:
    """What the benchmark states about limits, sandboxes and workers, if anything."""
    try:
        needs = needs_of(benchmark)
    except ConfigError as error:
        yield failed("limits", str(error))
        return
    stated = {name: getattr(needs, name) for name in ("trial_seconds", "grace_seconds")}
    shown = {**needs.limits, **stated, "fresh_sandbox": needs.fresh_sandbox}
    usual = {name: getattr(Needs(), name) for name in (*stated, "fresh_sandbox")}
    own = [f"{name} = {value}" for name, value in shown.items() if value != usual.get(name)]
    if own:
        yield passed("limits", ", ".join(own))
    for name in ("close", "sweep"):
        if not callable(getattr(benchmark, name, print)):
            yield failed("limits", f"{name} must be a method without arguments")


def _static(benchmark: Benchmark) -> Iterator[Finding]:
    """Findings that need no trial."""
    yield from _needs(benchmark)
    lacking = [
        n for n in ("pool", "starts", "check", "prepare", "run") if not hasattr(benchmark, n)
    ]
    if lacking:
        yield failed("shape", f"{type(benchmark).__name__} has no {', '.join(lacking)}")
        return
    if not isinstance(benchmark.pool, Pool):
        yield failed("pool", f"pool must be a Pool, got {benchmark.pool!r}")
        return
    pools = ", ".join(benchmark.pool.names)
    yield passed("pool", f"{len(benchmark.pool)} tasks ({pools})")
    yield _test_tasks(benchmark)
    yield from _starts(benchmark)
    yield from _briefing(benchmark)


def _briefing(benchmark: Benchmark) -> Iterator[Finding]:
    """Problems of the briefing and the secrets."""
    try:
        scan, briefing = leak_scan_of(benchmark), briefing_of(benchmark)
    except CoevolveError as error:
        yield failed(_BRIEFING, str(error))
        return
    for leak in scan.scan({"briefing": briefing.encode()}) if scan else ():
        yield failed(_BRIEFING, f"the briefing mentions a task: {leak}")


def _test_tasks(benchmark: Benchmark) -> Finding:
    tasks = sealed_tasks(benchmark)
    if not tasks:
        return noted("test", "no sealed test: the final choice is judged on validation tasks only")
    if len(set(tasks)) < len(tasks):
        return failed("test", "a test task occurs twice; ids must be distinct")
    if common := sorted(set(tasks) & set(benchmark.pool.tasks)):
        return failed("test", f"{common[0]!r} is both a validation and a test task")
    return passed("test", f"{len(tasks)} sealed tasks, none of them in the pool")


def _starts(benchmark: Benchmark) -> Iterator[Finding]:
    if not benchmark.starts:
        yield failed("starts", "there is none; a search needs a starting harness")
        return
    for name, files in benchmark.starts.items():
        try:
            check_files(files, name)
        except CoevolveError as error:
            yield failed("starts", str(error))
        if leak := _leak(benchmark, files):
            yield failed("sealed", f"start {name!r} has the test task {leak!r} in its files")
    yield passed("starts", ", ".join(benchmark.starts))


def _leak(benchmark: Benchmark, files: Files) -> str | None:
    for task in sealed_tasks(benchmark):
        word = re.compile(rb"(?<!\w)" + re.escape(task.encode()) + rb"(?!\w)")
        if len(task) >= _LONG_ENOUGH and any(word.search(data) for data in files.values()):
            return task
    return None


def _trials(benchmark: Benchmark, bench: Bench) -> Iterator[Finding]:
    """Findings from trials: the starting harnesses, then two candidates that cannot work."""
    for name, files in benchmark.starts.items():
        yield from _started(benchmark, name, bench.try_out(name, files, trials=2))
    files = next(iter(benchmark.starts.values()))
    empty = dict.fromkeys(files, b"")
    raising = {
        path: b"raise RuntimeError('conformance')\n" if path.endswith(".py") else b"\xff\x00"
        for path in files
    }
    yield _broken("an empty candidate", bench.try_out("empty", empty, trials=1))
    yield _broken("a candidate that raises", bench.try_out("raising", raising, trials=1))


def _started(benchmark: Benchmark, name: str, tried: Tried) -> Iterator[Finding]:
    if tried.fault is not None:
        yield failed(tried.step, f"start {name!r}: {tried.fault.reason}", tried.fault.advice)
        return
    yield passed("check", f"start {name!r} passes check and prepare")
    yield _state(name, tried.state)
    first, second = tried.scores
    if isinstance(first, Missing):
        yield noted("run", f"start {name!r}: the trial is missing: {first.reason}")
    elif first == second:
        yield passed("run", f"start {name!r} scores {first:g}, both times")
    else:
        yield noted(
            "run",
            f"start {name!r}: the same trial gave {first!r}, then {second!r}: scores are random",
            "Several trials per task (search.trials) make estimates steadier.",
        )
    if shown := sorted((tried.seen | texts(tried.state)) & set(sealed_tasks(benchmark))):
        yield failed("sealed", f"start {name!r} saw the test task {shown[0]!r}")


def _state(name: str, state: object) -> Finding:
    try:
        alike = json.loads(json.dumps(state, allow_nan=False)) == state
    except (TypeError, ValueError, RecursionError) as error:
        return failed("prepare", f"start {name!r}: its state is not plain JSON: {error}")
    if not alike:
        return failed("prepare", f"start {name!r}: its state changes in JSON")
    return passed("prepare", f"start {name!r}: its state survives JSON")


def _broken(what: str, tried: Tried) -> Finding:
    fault = tried.fault
    if fault is None:
        return noted("faults", f"{what} gets the score {tried.scores[0]!r}")
    if fault.blame is Blame.CANDIDATE:
        return passed("faults", f"{what} is at fault in {tried.step}: {fault.reason}")
    return failed(
        "faults",
        f"{what} counts as a fault of the {fault.blame} in {tried.step}: {fault.reason}",
        "Raise CandidateFault, or do not catch HarnessFault, if the candidate is to blame.",
    )
