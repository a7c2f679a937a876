"""From a configuration to a benchmark, and the spec workers build it from."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coevolve.benchmarks.base import Benchmark, check_sealed, check_starts
from coevolve.benchmarks.textclass.harness_files import built_in
from coevolve.core.pool import Pool
from coevolve.errors import CoevolveError, ConfigError
from coevolve.executors.failures import named
from coevolve.executors.workload import Host, Spec, where_raised
from coevolve.runs.config import RunConfig
from coevolve.runs.plugs import (
    CommandBenchmarkSettings,
    FunctionBenchmarkSettings,
    SyntheticBenchmarkSettings,
    TextClassificationSettings,
    is_path,
)


def build_benchmark(config: RunConfig, base: Path, host: Host | None = None) -> Benchmark:
    """The benchmark of a configuration whose paths start from `base`.

    It reaches the services of a `host`, where it wants any.

    Raises:
        ConfigError: What the configuration names cannot be loaded or is no benchmark.
    """
    config.check_paths(base)
    spec = benchmark_spec(config, base)
    try:
        return _checked(spec.build(host), spec.factory)
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(_told(error, config.benchmark.kind, spec)) from error


def benchmark_spec(config: RunConfig, base: Path) -> Spec:
    """How a worker builds the benchmark of a configuration."""
    base = base.resolve()
    table = config.benchmark
    match table:
        case FunctionBenchmarkSettings():
            factory = "coevolve.benchmarks.function:load_file"
            given: dict[str, Any] = {
                "path": str(base / table.file),
                "model": config.model is not None,
                "starts": _within(base, table.starts),
            }
        case CommandBenchmarkSettings():
            factory = "coevolve.benchmarks.command:CommandBenchmark"
            given = table.model_dump(mode="json", exclude={"kind", "tasks_file", "briefing"})
            if table.briefing is not None:
                given["briefing"] = (base / table.briefing).read_text(encoding="utf-8")
            given["base"] = str(base)
            given["starts"] = _within(base, table.starts)
            if table.tasks_file is not None:
                given["tasks"] = read_tasks(base / table.tasks_file)
        case TextClassificationSettings():
            factory = "coevolve.benchmarks.textclass.text_classification:TextClassification"
            given = {
                "sets": [str(base / name) if is_path(name) else name for name in table.sets],
                "data": None if table.data is None else str(base / table.data),
                "starts": [_harness(base, name) for name in table.starts],
                "mode": table.mode,
            }
        case SyntheticBenchmarkSettings():
            factory = "coevolve.benchmarks.synthetic.synthetic_benchmark:build"
            given = table.model_dump(mode="json", exclude={"kind"})
        case _:
            factory = table.kind
            given = dict(table.arguments)
    return Spec(factory=factory, arguments=given, folder=base)


def read_tasks(path: Path) -> list[str] | dict[str, list[str]]:
    """The tasks in a file: one id a line, or JSON with a list or a list for each pool."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".json":
        return [line.strip() for line in text.splitlines() if line.strip()]
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{path} is no JSON: {error}") from error
    if not isinstance(found, list | dict):
        raise ConfigError(f"{path} must hold a list, or a list for each pool, got {found!r}.")
    return found


def _checked(found: object, factory: str) -> Benchmark:
    """What a factory gave, if it is a benchmark."""
    for name in ("pool", "starts", "check", "prepare", "run"):
        if not hasattr(found, name):
            raise ConfigError(
                f"benchmark {factory!r} gave a {type(found).__name__} without {name!r}, "
                "which is no benchmark; see docs/benchmark.md."
            )
    assert isinstance(found, Benchmark)
    if not isinstance(found.pool, Pool):
        raise ConfigError(f"the pool of benchmark {factory!r} is no Pool: {found.pool!r}.")
    check_starts(found.starts)
    check_sealed(found)
    return found


def _told(error: BaseException, kind: str, spec: Spec) -> str:
    """What kept a benchmark from being built, and where."""
    said = str(error) if isinstance(error, CoevolveError) else named(error)
    if isinstance(error, SyntaxError):  # whose text has half of the place
        said = f"{type(error).__name__}: {error.msg}"
    where = where_raised(error, spec.folder)
    return f"benchmark.kind {kind!r} cannot be built: {said}" + (f" ({where})" if where else "")


def _harness(base: Path, name: str) -> str:
    """A built-in harness by its name, another by its folder."""
    return name if name in built_in() else str(base / name)


def _within(base: Path, paths: Sequence[str]) -> list[str]:
    return [str(base / path) for path in paths]
