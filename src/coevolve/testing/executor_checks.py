"""Conformance of executors: whether one does what the engine relies on."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from coevolve.errors import StateError
from coevolve.executors.local import Contents
from coevolve.executors.workload import Spec
from coevolve.findings import Finding, failed, passed, raise_failed
from coevolve.registry import described
from coevolve.search.candidate import Candidate
from coevolve.search.journal import MemoryJournal
from coevolve.search.trials import Blame, Executor, Result, Trial
from coevolve.testing.sample_benchmark import BROKEN, HARNESS

Make = Callable[[Spec, Contents], Executor]
_SPEC = Spec(factory="coevolve.testing.sample_benchmark:SampleBenchmark")
_TRACE = ({"answer": "HI"}, "the candidate says hi\n")
_NONE = (None, None)
_WANTED: dict[str, tuple[float | None, tuple[Blame, str] | None, int, tuple[Any, Any]]] = {
    "score:0.25": (0.25, None, 0, _NONE),
    "trial": (0.3, None, 0, _NONE),
    "answer:0.5": (0.5, None, 0, _NONE),
    "whole:hi": (0.5, None, 3, _TRACE),
    "limited": (None, (Blame.INFRASTRUCTURE, "RateLimitError: slow down"), 0, _NONE),
    "bug": (None, (Blame.BENCHMARK, "KeyError: 'label'"), 0, _NONE),
    "disk": (None, (Blame.OPERATOR, "OSError: [Errno 28] No space left on device"), 0, _NONE),
}
"""What each task of the sample benchmark gives: score, fault, tokens, trace and output."""


def assert_executor(make: Make) -> None:
    """Raise an AssertionError that lists what `check_executor` found wrong; for tests."""
    raise_failed(check_executor(make))


def check_executor(make: Make) -> list[Finding]:
    """Run the sample benchmark on executors that `make` returns, and list the findings.

    Args:
        make: Called twice with the spec of a benchmark and the contents of candidates; returns a
            new executor.
    """
    return asyncio.run(_findings(make))


async def _findings(make: Make) -> list[Finding]:
    bench = Bench()
    try:
        busy, unused = make(_SPEC, bench.contents), make(_SPEC, bench.contents)
    except Exception as error:
        return [failed("make", f"it cannot be made: {described(error)}")]
    found = [await _checked(about, check(busy, bench)) for about, check in _CHECKS.items()]
    found += [
        await _checked("closing", _closing(busy, bench)),
        await _checked("unused", _unused(unused)),
    ]
    return found


async def _checked(about: str, check: Awaitable[str]) -> Finding:
    try:
        return passed(about, await check)
    except AssertionError as error:
        return failed(about, str(error))
    except Exception as error:
        return failed(about, described(error))


class Bench:
    """Candidates of the sample benchmark, and where their files are."""

    def __init__(self) -> None:
        self.contents = MemoryJournal()
        self.good = self._candidate("good", HARNESS)
        self.broken = self._candidate("broken", BROKEN)

    def _candidate(self, name: str, source: bytes) -> Candidate:
        self.contents.put(source)
        return Candidate.of({"harness.py": source}, name=name)


Check = Callable[[Executor, Bench], Awaitable[str]]


def _expect(true: bool, message: str) -> None:
    if not true:
        raise AssertionError(message)


def _trial(task: str, number: int = 0, candidate: str = "good", **more: Any) -> Trial:
    return Trial(candidate=candidate, task=task, trial=number, **more)


async def _results(executor: Executor, bench: Bench) -> str:
    runs = [executor.run(bench.good, _trial(task, 3)) for task in _WANTED]
    results = await asyncio.gather(*runs)
    for task, result in zip(_WANTED, results, strict=True):
        _expect(
            _facts(result) == _WANTED[task],
            f"the task {task!r} must give {_WANTED[task]}, got {_facts(result)}",
        )
        _expect(result.usage.seconds > 0, f"the task {task!r} must report its seconds, got 0")
    return f"{len(_WANTED)} trials give the right scores, faults, usage and traces"


def _facts(result: Result) -> Any:
    fault = None if result.fault is None else (result.fault.blame, result.fault.reason)
    trace = json.loads(result.trace or "{}")
    told = (trace.get("trace"), trace.get("output"))
    return result.score, fault, result.usage.tokens_in, told


async def _blame(executor: Executor, bench: Bench) -> str:
    ends: list[Any] = [
        await executor.check(bench.broken),
        await executor.run(bench.broken, _trial("answer:1", candidate="broken")),
        await executor.run(bench.good, _trial("call:fail")),
    ]
    for end in ends:
        blame = None if end.fault is None else end.fault.blame
        _expect(blame is Blame.CANDIDATE, f"a broken candidate must be blamed, got {end}")
    last = await executor.run(bench.good, _trial("answer:1"))
    _expect(last.score == 1.0, f"the next trial must run after a broken candidate, got {last}")
    return "broken candidates are blamed, and later trials run"


async def _state(executor: Executor, bench: Bench) -> str:
    checked = await executor.check(bench.good)
    _expect(checked.fault is None, f"a good candidate must pass its check, got {checked.fault}")
    prepared = await executor.prepare(bench.good)
    _expect(prepared.state is not None, f"prepare must return the state, got {prepared}")
    address = bench.contents.put((prepared.state or "").encode())
    result = await executor.run(bench.good, _trial("state", state=address))
    _expect(result.score == 0.75, f"the state must reach the trials, got {result}")
    return "the state of a prepared candidate reaches its trials"


async def _sealed(executor: Executor, bench: Bench) -> str:
    result = await executor.run(bench.good, _trial("score:1", split="test"))
    _expect(result.score == 0.125, f"a trial of the test must call run_test, got {result}")
    return "trials of the sealed test call run_test"


async def _capacity(executor: Executor, bench: Bench) -> str:
    most = executor.capacity
    _expect(isinstance(most, int) and most >= 1, f"capacity must be at least 1, got {most!r}")
    runs = [executor.run(bench.good, _trial("trial", number % 10)) for number in range(2 * most)]
    scores = [result.score for result in await asyncio.gather(*runs)]
    wanted = [number % 10 / 10 for number in range(2 * most)]
    _expect(scores == wanted, f"{2 * most} attempts at once must all end, got {scores}")
    return f"{most} attempts run at once, and as many wait"


async def _cancelling(executor: Executor, bench: Bench) -> str:
    attempt = asyncio.ensure_future(executor.run(bench.good, _trial("sleep:0.2")))
    await asyncio.sleep(0)
    attempt.cancel()
    done = (await asyncio.gather(attempt, return_exceptions=True))[0]
    cancelled = isinstance(done, asyncio.CancelledError)
    _expect(cancelled, f"a cancelled attempt must raise CancelledError, got {done!r}")
    last = await executor.run(bench.good, _trial("answer:1"))
    _expect(last.score == 1.0, f"the next trial must run after a cancelled one, got {last}")
    return "the next trial runs after a cancelled attempt"


async def _closing(executor: Executor, bench: Bench) -> str:
    first = await executor.run(bench.good, _trial("answer:1"))
    _expect(first.score == 1.0, f"a trial must run, got {first}")
    await executor.close()
    await executor.close()
    try:
        late = await executor.run(bench.good, _trial("answer:1"))
    except StateError:
        return "it can be closed twice, and then refuses trials"
    raise AssertionError(f"a closed executor must raise StateError, got {late}")


async def _unused(executor: Executor) -> str:
    await executor.close()
    return "it can be closed without any trial"


_CHECKS: dict[str, Check] = {
    "results": _results,
    "blame": _blame,
    "state": _state,
    "sealed test": _sealed,
    "capacity": _capacity,
    "cancelling": _cancelling,
}
