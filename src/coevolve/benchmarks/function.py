"""A Python function as a benchmark: the shortest way to optimise anything."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from coevolve.benchmarks.base import Start, Tasks, check_sealed, make_pool, read_starts
from coevolve.benchmarks.briefing import function_briefing
from coevolve.benchmarks.secrets import Secrets
from coevolve.core.outcomes import Missing
from coevolve.errors import ConfigError
from coevolve.executors.isolation import Harness, HarnessFault
from coevolve.executors.workload import Host, Score
from coevolve.models.client import ModelClient

Evaluate = Callable[..., float | Score | Missing]


class FunctionBenchmark:
    """A benchmark whose trials are calls of one function.

    The function is trusted and runs outside the sandbox; it reaches the candidate through
    `harness.call`, and whatever the candidate does wrong there ends as the candidate's fault.

    Args:
        evaluate: `evaluate(harness, task)` or `evaluate(harness, task, trial)`; returns a score in
            [0, 1], a `Score`, or `Missing(reason)`.
        tasks: Task ids, or the ids of each pool by its name.
        starts: Two or more starting harnesses, as folders or as files by name.
        prepare: Called once per candidate; what it returns is `harness.state` in every trial.
        check: Called once per candidate, before anything else; raises if it is not fit.
        functions: Names that every candidate's `harness.py` must define.
        test_tasks: Ids of the sealed test.
        evaluate_test: As `evaluate`, for the test tasks; `evaluate` itself when left out.
        weights: Weight of each pool by name.
        costs: Expected cost of each task.
        briefing: What proposers should know of harnesses here, in Markdown. The functions that
            they must define, as the first starting harness has them, and the rules of the sandbox
            are added. It holds nothing of a task.
        secrets: Returns what each task asks, or a pair of that and the answer, by task, so that
            candidates that know tasks by heart are found.
        sealed_secrets: The same for the test tasks.
        host: How to reach the model of the run, where it has one. The candidate asks it by
            `coevolve_host.ask("model", prompt=...)` in any call.

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
        """Load the candidate in the sandbox and look for the functions it must define."""
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

    def _offer_model(self, harness: Harness, trial: int | None = None) -> None:
        """Let it reach the model, within what a trial may ask if this is one."""
        if self._client is not None:
            self._client.begin(capped=trial is not None, trial=trial or 0)
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
    # Paths of attributes that end in a method of a built-in text: harmless to call.
    harness.call("__name__.upper")
    for name in functions:
        try:
            harness.call(f"{name}.__call__.__class__.__name__.upper")
        except HarnessFault as error:
            if error.kind != "missing-function":
                raise
            raise HarnessFault(error.kind, f"the harness has no function {name!r}") from error


def _with_trial(function: Evaluate, name: str) -> Evaluate:
    """The function with all three arguments, whether it wants the trial or not."""
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
