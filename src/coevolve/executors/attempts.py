"""One attempt on a workload: a score or a fault, timed, with a trace."""

import json
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from coevolve.core.outcomes import Missing, Usage, checked_score
from coevolve.errors import InputError, ScoreError
from coevolve.executors.failures import InfrastructureError, classify
from coevolve.executors.watched import WatchedHarness
from coevolve.executors.workload import Score, Workload, attached_trace
from coevolve.search.trials import Blame, Fault, Prepared, Result, Split

MOST_TRACE = 64_000
"""Characters of a trace that are kept."""


def check_candidate(workload: Workload, harness: WatchedHarness) -> Prepared:
    """Whether the workload can evaluate the candidate."""
    done = _timed(lambda: workload.check(harness), harness)
    return Prepared(fault=done.fault, usage=done.usage(), trace=done.trace())


def prepare_candidate(workload: Workload, harness: WatchedHarness) -> Prepared:
    """The state of the candidate, as JSON text, once the workload has made it ready."""
    done = _timed(lambda: _state_text(workload.prepare(harness)), harness)
    return Prepared(fault=done.fault, state=done.value, usage=done.usage(), trace=done.trace())


def run_trial(
    workload: Workload, harness: WatchedHarness, task: str, trial: int, split: Split
) -> Result:
    """The result of one trial."""
    run = getattr(workload, "run_test", workload.run) if split == "test" else workload.run
    done = _timed(lambda: _checked(run(harness, task, trial), task), harness)
    if done.fault is not None:
        return Result(fault=done.fault, usage=done.usage(), trace=done.trace(done.attached))
    score: Score = done.value
    return Result(score=score.value, usage=done.usage(score.usage), trace=done.trace(score.trace))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    value: Any
    fault: Fault | None
    seconds: float
    output: str
    where: str
    attached: object = None

    def usage(self, stated: Usage | None = None) -> Usage:
        if stated is None:
            return Usage(seconds=self.seconds)
        return stated if stated.seconds else replace(stated, seconds=self.seconds)

    def trace(self, stated: object | None = None) -> str | None:
        parts = {"trace": stated, "output": self.output, "error": self.where}
        return trace_text({name: part for name, part in parts.items() if not _empty(part)})


def _timed(call: Callable[[], object], harness: WatchedHarness) -> _Done:
    harness.forget_output()
    value, fault, where, attached = None, None, "", None
    started = time.perf_counter()
    try:
        value = call()
    except (Exception, SystemExit) as error:
        fault, attached = classify(error), attached_trace(error)
        if fault.blame is not Blame.CANDIDATE:  # whose reason says all there is to know
            where = "".join(traceback.format_exception(error)[-20:])
    seconds = time.perf_counter() - started
    output = harness.said
    return _Done(
        value=value, fault=fault, seconds=seconds, output=output, where=where, attached=attached
    )


def _checked(given: object, task: str) -> Score:
    if isinstance(given, Missing):
        raise InfrastructureError(given.reason, kind="missing")
    score = given if isinstance(given, Score) else Score(value=given)  # type: ignore[arg-type]
    if not isinstance(score.usage, Usage | None):
        raise ScoreError(
            f"the usage of task {task!r} must be a Usage, got {score.usage!r}; write "
            "Usage(tokens_in=..., dollars=...)."
        )
    value, trace = checked_score(score.value, task), _plain(score.trace)
    return Score(value=value, usage=score.usage, trace=trace)


def _state_text(state: object) -> str | None:
    try:
        return None if state is None else json.dumps(state, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"what prepare returned is not plain JSON: {error}.") from error


def _plain(trace: object) -> object:
    """A trace as it is if it is JSON, else as text."""
    try:
        json.dumps(trace, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return repr(trace)
    return trace


def _empty(part: object) -> bool:
    return part is None or (isinstance(part, str) and not part)


def trace_text(parts: dict[str, object]) -> str | None:
    """A trace as JSON text of a bounded length; what is too long or no JSON becomes text.

    >>> trace_text({"trace": {"answer": "42"}, "output": "hello"})
    '{"trace": {"answer": "42"}, "output": "hello"}'
    """
    if not parts:
        return None
    try:
        text = json.dumps(parts, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        text = ""
    if text and len(text) <= MOST_TRACE:
        return text
    # A character takes at most six in JSON ("\u001b"), a surrogate pair twelve.
    most = MOST_TRACE // (12 * len(parts))
    return json.dumps({name: _shortened(part, most) for name, part in parts.items()})


def _shortened(part: object, most: int) -> str:
    text = part if isinstance(part, str) else repr(part)
    if len(text) <= most:
        return text
    return f"{text[: most // 2]} ... {text[-most // 2 :]}"
