"""A Python function, or a file with one, as a benchmark."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from coevolve.benchmarks.base import (
    Secrets,
    Start,
    Tasks,
    check_sealed,
    function_briefing,
    make_pool,
    read_starts,
)
from coevolve.core.outcomes import Missing
from coevolve.errors import ConfigError, InputError, nearest
from coevolve.executors.isolation import Harness, HarnessFault
from coevolve.executors.workload import Host, Score
from coevolve.models.model_client import ModelClient
from coevolve.registry import load_module

Evaluate = Callable[..., float | Score | Missing]


class FunctionBenchmark:
    """A benchmark whose trials are calls of one function.

    The function is trusted and runs outside the sandbox. It calls the candidate through
    `harness.call`; errors in there are the candidate's fault.

    Args:
        evaluate: `evaluate(harness, task)` or `evaluate(harness, task, trial)`; returns a score in
            [0, 1], a `Score`, or `Missing(reason)`.
        tasks: Task ids, or the ids of each pool by its name.
        starts: Two or more starting harnesses, as folders or as files by name.
        prepare: Called once per candidate; returns `harness.state` for every trial.
        check: Called once per candidate, before anything else; raises to refuse it.
        functions: Names that every candidate's `harness.py` must define.
        test_tasks: Ids of the sealed test.
        evaluate_test: As `evaluate`, for the test tasks; `evaluate` by default.
        weights: Weight of each pool by name.
        costs: Expected cost of each task.
        briefing: What proposers should know about harnesses, in Markdown. The functions that they
            must define, as in the first starting harness, and the rules of the sandbox are added.
            It must not quote tasks.
        secrets: Returns the question of each task, or a pair of question and answer, to find
            candidates that contain tasks.
        sealed_secrets: The same for the test tasks.
        host: Gives access to the model of the run, if it has one. The candidate calls
            `coevolve_host.ask("model", prompt=...)`.

    >>> benchmark = FunctionBenchmark(
    ...     lambda harness, task: harness.call("double", int(task)) == 2 * int(task),
    ...     tasks=["1", "2", "3"],
    ...     starts={
    ...         "same": {"harness.py": "def double(n): return n"},
    ...         "square": {"harness.py": "def double(n): return n * n"},
    ...     },
    ... )
    >>> benchmark.pool, list(benchmark.starts)
    (Pool(3 tasks; all: 3), ['same', 'square'])
    """

    def __init__(
        self,
        evaluate: Evaluate,
        *,
        tasks: Tasks,
        starts: Mapping[str, Start] | Iterable[Path | str],
        prepare: Callable[[Harness], object] | None = None,
        check: Callable[[Harness], None] | None = None,
        functions: Sequence[str] = (),
        test_tasks: Sequence[str] = (),
        evaluate_test: Evaluate | None = None,
        weights: Mapping[str, float] | None = None,
        costs: Mapping[str, float] | None = None,
        briefing: str = "",
        secrets: Secrets | None = None,
        sealed_secrets: Secrets | None = None,
        host: Host | None = None,
    ) -> None:
        self.pool = make_pool(tasks, weights=weights, costs=costs)
        self.starts = read_starts(starts)
        self.test_tasks = tuple(test_tasks)
        check_sealed(self)
        if evaluate_test is not None and not self.test_tasks:
            raise ConfigError("evaluate_test has no effect without test tasks.")
        self.briefing = function_briefing(briefing, functions, self.starts)
        self.secrets, self.sealed_secrets = secrets, sealed_secrets
        self._evaluate = _with_trial(evaluate, "evaluate")
        self._evaluate_test = _with_trial(evaluate_test or evaluate, "evaluate_test")
        self._prepare = prepare
        self._check = check
        self._functions = tuple(functions)
        self._client = None if host is None else ModelClient(host)

    def check(self, harness: Harness) -> None:
        """Load the candidate in the sandbox and look for the functions that it must define."""
        self._offer_model(harness)
        load(harness, self._functions)
        if self._check is not None:
            self._check(harness)

    def prepare(self, harness: Harness) -> object:
        self._offer_model(harness)
        return None if self._prepare is None else self._prepare(harness)

    def run(self, harness: Harness, task: str, trial: int) -> float | Score | Missing:
        return self._tried(self._evaluate, harness, task, trial)

    def run_test(self, harness: Harness, task: str, trial: int) -> float | Score | Missing:
        return self._tried(self._evaluate_test, harness, task, trial)

    def _offer_model(self, harness: Harness, trial: int = 0) -> None:
        """Give access to the model, with a limit on requests."""
        if self._client is not None:
            self._client.begin(trial=trial)
            harness.services = self._client.services

    def _tried(
        self, evaluate: Evaluate, harness: Harness, task: str, trial: int
    ) -> float | Score | Missing:
        self._offer_model(harness, trial)
        return evaluate(harness, task, trial)


def load(harness: Harness, functions: Sequence[str] = ()) -> None:
    """Import the candidate in its sandbox, and look for functions, without calling any.

    Raises:
        HarnessFault: The import fails, or a function is missing.
    """
    # These attribute paths end in a method of a built-in string, which is harmless to call.
    harness.call("__name__.upper")
    for name in functions:
        try:
            harness.call(f"{name}.__call__.__class__.__name__.upper")
        except HarnessFault as error:
            if error.kind != "missing-function":
                raise
            raise HarnessFault(error.kind, f"the harness has no function {name!r}") from error


def _with_trial(function: Evaluate, name: str) -> Evaluate:
    """The function with three arguments, even if it takes no trial."""
    wrong = f"{name} must be a function of (harness, task) or (harness, task, trial)"
    if not callable(function):
        raise ConfigError(f"{wrong}, got {function!r}.")
    signature = inspect.signature(function)
    for count in (3, 2):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return function if count == 3 else lambda harness, task, trial: function(harness, task)
    raise ConfigError(f"{wrong}, but takes {signature}.")


NAMES = {
    "evaluate": "evaluate",
    "TASKS": "tasks",
    "prepare": "prepare",
    "check": "check",
    "FUNCTIONS": "functions",
    "TEST_TASKS": "test_tasks",
    "evaluate_test": "evaluate_test",
    "WEIGHTS": "weights",
    "COSTS": "costs",
    "BRIEFING": "briefing",
    "secrets": "secrets",
    "sealed_secrets": "sealed_secrets",
}
"""Names that a file may define, and the arguments of `FunctionBenchmark` for them."""
REQUIRED = ("evaluate", "TASKS")


def load_file(
    path: Path | str,
    starts: Mapping[str, Start] | Iterable[Path | str],
    *,
    model: bool = False,
    host: Host | None = None,
) -> FunctionBenchmark:
    """The benchmark that a Python file defines.

    The file defines `evaluate(harness, task)` and `TASKS`, a list of ids or a mapping from pool
    to list; it may define `prepare`, `check`, `FUNCTIONS`, `TEST_TASKS`, `evaluate_test`,
    `WEIGHTS`, `COSTS`, `BRIEFING`, `secrets` and `sealed_secrets`, which are the arguments of
    `FunctionBenchmark`. The default of `BRIEFING` is the docstring of the file. With `model`,
    candidates can call the model of the host.

    Raises:
        ConfigError: The file cannot be loaded, or lacks a name, or one has a wrong value.
    """
    path = Path(path)
    module = load_module(path)
    for name in REQUIRED:
        if not hasattr(module, name):
            close = nearest(name, vars(module))
            raise ConfigError(f"{path} does not define {name}, which is required.{close}")
    _check_capitals(module, path)
    given = {
        argument: getattr(module, name)
        for name, argument in NAMES.items()
        # Python has a module `secrets`, which the file may import.
        if hasattr(module, name) and not isinstance(getattr(module, name), ModuleType)
    }
    given.setdefault("briefing", module.__doc__ or "")
    _check_types(given, path)
    try:
        return FunctionBenchmark(**given, starts=starts, host=host if model else None)
    except InputError as error:
        raise ConfigError(f"{path}: {error}") from error


def _check_capitals(module: ModuleType, path: Path) -> None:
    """Refuse a misspelled name in capitals, which would have no effect."""
    known = [name for name in NAMES if name.isupper()]
    for name in vars(module):
        close = get_close_matches(name, known, n=1, cutoff=0.85) if name.isupper() else []
        if close and name not in known:
            raise ConfigError(
                f"{path} defines {name}, which has no effect. Did you mean {close[0]!r}?"
            )


def _check_types(given: Mapping[str, Any], path: Path) -> None:
    for argument, name in ((argument, name) for name, argument in NAMES.items()):
        if argument not in given:
            continue
        value = given[argument]
        lists = argument in ("functions", "test_tasks")
        tables = argument in ("weights", "costs")
        if argument == "briefing" and not isinstance(value, str):
            raise ConfigError(f"{path}: {name} must be a text, got {value!r:.80}.")
        if not name.isupper() and not callable(value):
            raise ConfigError(f"{path}: {name} must be a function, got {value!r}.")
        if lists and (isinstance(value, str) or not isinstance(value, list | tuple)):
            raise ConfigError(f"{path}: {name} must be a list of names, got {value!r}.")
        if tables and not isinstance(value, Mapping):
            raise ConfigError(f"{path}: {name} must map names to numbers, got {value!r}.")
