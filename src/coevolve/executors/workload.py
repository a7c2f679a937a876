"""What a worker runs: a benchmark's trial half, how to build it, and what a trial gives."""

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from coevolve.core.outcomes import Missing, Usage
from coevolve.errors import ConfigError

if TYPE_CHECKING:
    from coevolve.executors.isolation import Harness


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
    """Give an error the trace of the trial that it ends, so that the trace is kept with it.

    >>> error = ValueError("broken")
    >>> attach_trace(error, {"question": "6 x 7?"})
    >>> attached_trace(error)
    {'question': '6 x 7?'}
    """
    vars(error)["trace"] = trace


def attached_trace(error: BaseException) -> object | None:
    """What `attach_trace` gave an error, if anything."""
    return vars(error).get("trace")


class Host(Protocol):
    """The engine as a benchmark in a worker sees it."""

    def ask(self, service: str, /, **payload: Any) -> Any:
        """What a service of the engine answers; JSON both ways."""
        ...


class Workload(Protocol):
    """The trial half of a benchmark.

    It may also have `run_test`, with the arguments of `run`, for tasks of the sealed test, and a
    text `frame`: source of a module that runs around the candidate's, inside its sandbox.
    """

    def check(self, harness: "Harness", /) -> None:
        """Raise if the candidate cannot be evaluated at all."""
        ...

    def prepare(self, harness: "Harness", /) -> object:
        """Make the candidate ready, once; what it learned, as plain JSON, or None."""
        ...

    def run(self, harness: "Harness", task: str, trial: int, /) -> float | Score | Missing:
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
        factory: "package.module:callable". If it has a parameter `host`, it gets the `Host`.
        arguments: Its keyword arguments, plain JSON.
        folder: The project: where it runs, and where its modules are looked for first.

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
        """The spec `to_json` described."""
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
