"""A conformance suite for benchmarks: does mine keep to what the engine relies on?"""

import json
import re
from collections.abc import Iterator

from coevolve.benchmarks.base import Benchmark, briefing_of, leak_scan_of, sealed_tasks
from coevolve.benchmarks.findings import Finding, Kind, failed, noted, passed
from coevolve.benchmarks.tryout import Bench, Tried, texts
from coevolve.core.outcomes import Missing
from coevolve.core.pool import Pool
from coevolve.errors import CoevolveError
from coevolve.executors.isolation import Isolation, Limits, find_isolation
from coevolve.search.candidate import Files, check_files
from coevolve.search.trials import Blame

__all__ = ["Finding", "Kind", "assert_benchmark", "check_benchmark"]

_LONG_ENOUGH = 6
"""Shorter ids turn up in a file by chance."""


def assert_benchmark(benchmark: Benchmark, **options: object) -> None:
    """Raise an AssertionError that lists what `check_benchmark` found wrong; for tests."""
    wrong = [found for found in check_benchmark(benchmark, **options) if found.kind == "failed"]  # type: ignore[arg-type]
    if wrong:
        raise AssertionError("\n".join(str(found) for found in wrong))


def check_benchmark(
    benchmark: Benchmark,
    *,
    isolation: Isolation | str = "auto",
    limits: Limits | None = None,
) -> list[Finding]:
    """Try a benchmark out, with one task and the starting harnesses, and say what was found.

    Args:
        benchmark: Yours.
        isolation: Where candidate code runs meanwhile.
        limits: Its limits.
    """
    where = find_isolation(isolation) if isinstance(isolation, str) else isolation
    static = list(_static(benchmark))
    if any(found.kind == "failed" for found in static):
        return static
    return [*static, *_trials(benchmark, Bench(benchmark, where, limits or Limits()))]


def _static(benchmark: Benchmark) -> Iterator[Finding]:
    """What can be said without running anything."""
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
    yield from _told(benchmark)


def _told(benchmark: Benchmark) -> Iterator[Finding]:
    """What is wrong with the briefing or the secrets, if anything is."""
    try:
        scan, briefing = leak_scan_of(benchmark), briefing_of(benchmark)
    except CoevolveError as error:
        yield failed("briefing", str(error))
        return
    for leak in scan.scan({"briefing": briefing.encode()}) if scan else ():
        yield failed("briefing", f"proposers would be told of a task: {leak}")


def _test_tasks(benchmark: Benchmark) -> Finding:
    tasks = sealed_tasks(benchmark)
    if not tasks:
        return noted("test", "no sealed test: the final choice is judged on validation tasks only")
    if len(set(tasks)) < len(tasks):
        return failed("test", "a test task is there twice; ids must be distinct")
    if common := sorted(set(tasks) & set(benchmark.pool.tasks)):
        return failed("test", f"{common[0]!r} is both a validation and a test task")
    return passed("test", f"{len(tasks)} sealed tasks, none of them in the pool")


def _starts(benchmark: Benchmark) -> Iterator[Finding]:
    if len(benchmark.starts) < 2:
        yield failed("starts", f"two or more are needed, got {list(benchmark.starts)}")
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
    """What running shows: the starting harnesses, then two candidates that cannot work."""
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
        yield passed("run", f"start {name!r} scores {first:g}, twice alike")
    else:
        yield noted(
            "run",
            f"start {name!r}: the same trial gave {first!r}, then {second!r}: scores are random",
            "Several trials per task (search.trials) make estimates steadier.",
        )
    if shown := sorted((tried.seen | texts(tried.state)) & set(sealed_tasks(benchmark))):
        yield failed("sealed", f"start {name!r} was shown the test task {shown[0]!r}")


def _state(name: str, state: object) -> Finding:
    try:
        alike = json.loads(json.dumps(state, allow_nan=False)) == state
    except (TypeError, ValueError, RecursionError) as error:
        return failed("prepare", f"start {name!r}: its state is no plain JSON: {error}")
    if not alike:
        return failed("prepare", f"start {name!r}: its state comes back changed from JSON")
    return passed("prepare", f"start {name!r}: its state comes back from JSON as it was")


def _broken(what: str, tried: Tried) -> Finding:
    fault = tried.fault
    if fault is None:
        return noted("faults", f"{what} is given the score {tried.scores[0]!r}")
    if fault.blame is Blame.CANDIDATE:
        return passed("faults", f"{what} is at fault in {tried.step}: {fault.reason}")
    return failed(
        "faults",
        f"{what} ends as a fault of the {fault.blame} in {tried.step}: {fault.reason}",
        "Raise CandidateFault, or let HarnessFault pass, where the candidate is to blame.",
    )
