"""The part of a benchmark that runs in a worker, how to build it, and one attempt."""

import importlib
import inspect
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, Self, cast

from coevolve.core.outcomes import Missing, Usage, checked_score
from coevolve.errors import ConfigError, InputError, ScoreError
from coevolve.executors.failures import InfrastructureError, OperatorError, classify
from coevolve.executors.isolation import Executed, Harness
from coevolve.registry import own_frame, where_raised
from coevolve.search.trials import Blame, Fault, Prepared, Result, Split

MOST_OUTPUT = 16_000
"""How many characters of a candidate's output are kept: the last ones."""
MOST_TRACE = 64_000
"""How many characters of a trace are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What an evaluator may return instead of a bare number.

    Args:
        value: The score, in [0, 1].
        usage: What the trial consumed; `seconds` is measured where it is left at 0.
        trace: Plain JSON for people and proposers: prompts, answers, output.

    >>> Score(value=1.0, trace={"answer": "42"}).usage is None
    True
    """

    value: float
    usage: Usage | None = None
    trace: object | None = None


def attach_trace(error: BaseException, trace: object) -> None:
    """Attach the trace of a trial to the error that ends it, so that the trace is recorded.

    >>> error = ValueError("broken")
    >>> attach_trace(error, {"question": "6 x 7?"})
    >>> attached_trace(error)
    {'question': '6 x 7?'}
    """
    vars(error)["trace"] = trace


def attached_trace(error: BaseException) -> object | None:
    """The trace that `attach_trace` attached, if any."""
    return vars(error).get("trace")


class Host(Protocol):
    """The engine, as seen by a benchmark in a worker."""

    def ask(self, service: str, /, **payload: Any) -> Any:
        """Ask a service of the engine; payload and answer are JSON."""
        ...


class Workload(Protocol):
    """The part of a benchmark that runs trials.

    It may also have `run_test`, with the arguments of `run`, for tasks of the sealed test, and
    `frame`: the source of a module that runs around the candidate's, inside its sandbox.
    """

    def check(self, harness: Harness, /) -> None:
        """Raise if the candidate cannot be evaluated at all."""
        ...

    def prepare(self, harness: Harness, /) -> object:
        """Make the candidate ready, once; return its state as plain JSON, or None."""
        ...

    def run(self, harness: Harness, task: str, trial: int, /) -> float | Score | Missing:
        """The score of one trial."""
        ...


def frame_of(workload: object) -> str:
    """The source of a workload's frame; empty unless it has one.

    >>> frame_of(object())
    ''
    """
    frame = getattr(workload, "frame", "")
    if not isinstance(frame, str):
        raise ConfigError(
            f"a benchmark's frame must be the source of a Python module, got {frame!r}."
        )
    return frame


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """How to build a workload in another process.

    Args:
        factory: "package.module:callable"; a parameter `host` receives the `Host`.
        arguments: Its keyword arguments, plain JSON.
        folder: The project folder: the working folder, and first on the import path.

    >>> Spec(factory="fractions:Fraction", arguments={"numerator": 2}).build()
    Fraction(2, 1)
    """

    factory: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None

    def build(self, host: Host | None = None) -> Workload:
        """The workload."""
        if self.folder is not None and str(self.folder) not in sys.path:
            sys.path.insert(0, str(self.folder))
        factory = self._find()
        extra = {"host": host} if "host" in inspect.signature(factory).parameters else {}
        return cast(Workload, factory(**self.arguments, **extra))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        folder = None if self.folder is None else str(self.folder)
        return {"factory": self.factory, "arguments": dict(self.arguments), "folder": folder}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The spec that `to_json` described."""
        folder = None if data["folder"] is None else Path(data["folder"])
        return cls(factory=data["factory"], arguments=data["arguments"], folder=folder)

    def _find(self) -> Callable[..., object]:
        name, _, path = self.factory.partition(":")
        if not name or not path:
            raise ConfigError(
                f"a benchmark's factory must be 'package.module:callable', got {self.factory!r}."
            )
        found: object = importlib.import_module(name)
        for part in path.split("."):
            if not hasattr(found, part):
                raise ConfigError(f"module {name!r} has no {path!r} (from {self.factory!r}).")
            found = getattr(found, part)
        if not callable(found):
            raise ConfigError(f"{self.factory!r} is not callable: it is a {type(found).__name__}.")
        return found


def building_fault(error: BaseException, spec: Spec) -> Fault:
    """The fault of a benchmark that could not be built: the operator's or the infrastructure's."""
    fault = classify(error)
    if fault.blame is Blame.DOUBTFUL and not isinstance(error, RecursionError):
        # No candidate was involved, so it was the machine or the network.
        return replace(fault, blame=Blame.INFRASTRUCTURE)
    if fault.blame is Blame.INFRASTRUCTURE:
        return fault
    reason = f"the benchmark {spec.factory!r} could not be built: {fault.reason}"
    where = where_raised(error, spec.folder)
    return OperatorError(
        f"{reason} ({where})" if where else reason,
        kind=fault.kind,
        advice=fault.advice or "Fix the benchmark or its arguments, then resume the run.",
    ).fault


class Flag(Protocol):
    """Bytes that are shared with another process."""

    def __setitem__(self, index: int, value: int, /) -> None: ...


class WatchedHarness(Harness):
    """A harness that shows another process when the candidate is at work.

    Args:
        flag: Two bytes. The first is 1 while the candidate is at work. The second is set to 1
            with it, and stays 1 until it is reset.
        arguments: Those of `Harness`.
    """

    def __init__(self, *arguments: Any, flag: Flag, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._flag = flag
        self.printed = ""

    def call(self, *arguments: Any, **named: Any) -> object:
        """Call a function of the candidate."""
        with self._at_work():
            return super().call(*arguments, **named)

    def execute(self, *arguments: Any, **named: Any) -> Executed:
        """Run a program in the candidate's isolation."""
        with self._at_work():
            return super().execute(*arguments, **named)

    def forget_output(self) -> None:
        """Begin a new trial."""
        self.printed = ""

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        self._flag[0] = self._flag[1] = 1
        try:
            yield
        finally:
            self._flag[0] = 0
            self.printed = (self.printed + self.output)[-MOST_OUTPUT:]


def check_candidate(workload: Workload, harness: WatchedHarness) -> Prepared:
    """Check whether the workload can evaluate the candidate."""
    done = _timed(lambda: workload.check(harness), harness)
    return Prepared(fault=done.fault, usage=done.usage(), trace=done.trace())


def prepare_candidate(workload: Workload, harness: WatchedHarness) -> Prepared:
    """Make the candidate ready; its state is JSON text."""
    done = _timed(lambda: _state_text(workload.prepare(harness)), harness)
    return Prepared(fault=done.fault, state=done.value, usage=done.usage(), trace=done.trace())


def run_trial(
    workload: Workload, harness: WatchedHarness, task: str, trial: int, split: Split
) -> Result:
    """Run one trial."""
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
        fault, attached = located_fault(error), attached_trace(error)
        if fault.blame is not Blame.CANDIDATE:  # its reason already names the line
            where = "".join(traceback.format_exception(error)[-20:])
    seconds = time.perf_counter() - started
    harness.stop_trial()
    output = harness.printed
    return _Done(
        value=value, fault=fault, seconds=seconds, output=output, where=where, attached=attached
    )


def located_fault(error: BaseException) -> Fault:
    """The fault of an error; if the benchmark is to blame, its reason names the line."""
    fault = classify(error)
    if fault.blame is Blame.BENCHMARK and (place := _place(error)):
        return replace(fault, reason=f"{fault.reason} ({place})")
    return fault


def _place(error: BaseException) -> str:
    """The file, line and function where the code of a benchmark failed; empty if elsewhere."""
    frame = own_frame(error, None)
    return f"{Path(frame.filename).name}, line {frame.lineno}, in {frame.name}" if frame else ""


def _checked(given: object, task: str) -> Score:
    if isinstance(given, Missing):
        raise InfrastructureError(given.reason, kind="missing", shared=given.shared)
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
        raise InputError(
            f"prepare() returned something that is not plain JSON: {error}."
        ) from error


def _plain(trace: object) -> object:
    """A trace unchanged if it is JSON, else as text."""
    try:
        json.dumps(trace, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return repr(trace)
    return trace


def _empty(part: object) -> bool:
    return part is None or (isinstance(part, str) and not part)


def trace_text(parts: dict[str, object]) -> str | None:
    """A trace as JSON text of bounded length; parts that are too long or not JSON become text.

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
