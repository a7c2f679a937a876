"""A user's Python file as a function benchmark."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from coevolve.benchmarks.base import Start
from coevolve.benchmarks.function import FunctionBenchmark
from coevolve.errors import ConfigError, InputError, nearest
from coevolve.executors.workload import Host
from coevolve.search.loading import load_module

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
"""The names a file may define, and the arguments of `FunctionBenchmark` they become."""
REQUIRED = ("evaluate", "TASKS")


def load_file(
    path: Path | str,
    starts: Mapping[str, Start] | Iterable[Path | str],
    *,
    model: bool = False,
    host: Host | None = None,
) -> FunctionBenchmark:
    """The benchmark a Python file defines.

    The file defines `evaluate(harness, task)` and `TASKS`, a list of ids or a mapping from pool
    to list; it may define `prepare`, `check`, `FUNCTIONS`, `TEST_TASKS`, `evaluate_test`,
    `WEIGHTS`, `COSTS`, `BRIEFING`, `secrets` and `sealed_secrets`, which are the arguments of
    `FunctionBenchmark`. Without `BRIEFING`, proposers are told what the file's docstring says.
    With `model`, candidates reach the model of the host.

    Raises:
        ConfigError: The file cannot be loaded, or lacks a name, or one has a wrong value.
    """
    path = Path(path)
    module = load_module(path)
    for name in REQUIRED:
        if not hasattr(module, name):
            close = nearest(name, vars(module))
            raise ConfigError(f"{path} defines no {name}; a benchmark needs it.{close}")
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
    """A name in capitals that is nearly one of ours is a slip that would pass unseen."""
    known = [name for name in NAMES if name.isupper()]
    for name in vars(module):
        close = get_close_matches(name, known, n=1, cutoff=0.85) if name.isupper() else []
        if close and name not in known:
            raise ConfigError(
                f"{path} defines {name}, which nothing reads. Did you mean {close[0]!r}?"
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
