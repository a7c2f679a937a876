"""The fingerprint of a benchmark: a hash of each part that can alter scores."""

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any

from coevolve.benchmarks.base import Benchmark
from coevolve.benchmarks.source_files import files_in, source_files
from coevolve.errors import ConfigError
from coevolve.executors.workload import frame_of
from coevolve.registry import described
from coevolve.runs.config import RunConfig

MOST_FILES = 300
"""Files of a folder that are parts of their own; the files of a larger one are one part."""
EVALUATIONS = "evaluations"
"""The folder of the evaluations of a project."""
_LONGEST = 120
"""Characters of a value that is recorded as it is; a longer one is hashed."""


def fingerprint(
    config: RunConfig,
    base: Path,
    benchmark: Benchmark,
    *,
    known: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The parts of a benchmark by name: a hash, or the value itself if it is short.

    The parts are its files and data ("benchmark.py", "data/x.jsonl"), its arguments
    ("arguments.split"), what its own `fingerprint` lists, the "model", and the "frame" around
    candidates. The starting harnesses are not among them: a run keeps their files. Neither are
    past results in a folder of data: the run has imported them.

    Args:
        config: The configuration that the run recorded.
        base: The folder that its paths are relative to.
        benchmark: The benchmark that was built from it.
        known: The fingerprint of the last session. Data that was not there then, and that the same
            program names, is what the program has written.
    """
    base = base.resolve()
    apart, past = _recorded_elsewhere(config, base), _past_results(config, base)
    modules, data = _of_python(config, base)
    parts: dict[str, str] = {}
    for path in (*config.benchmark.sources(base), *modules):
        parts |= _of_path(_name(path, base), path, split=True, without=past)
    if config.model is not None:
        parts |= _of_model(config, base)
    parts |= {name: _short(value) for name, value in _arguments(config)}
    for name, value in _own(benchmark).items():
        parts |= _of_value(name, value)
    if frame := frame_of(benchmark):
        parts["frame"] = _hashed(frame.encode())
    named: dict[str, str] = {}
    for path in data:
        if not any(path.is_relative_to(one) or one.is_relative_to(path) for one in apart):
            named |= _of_path(_name(path, base), path, split=True, without=past)
    if known is not None and all(known.get(name) == value for name, value in parts.items()):
        named = {name: value for name, value in named.items() if name in known}
    return dict(sorted({**named, **parts}.items()))


def _of_python(config: RunConfig, base: Path) -> tuple[list[Path], list[Path]]:
    """The modules of the benchmark's Python file, if it has one, and the data that they name."""
    file = config.benchmark.python_file(base)
    return ([], []) if file is None else source_files(file, base)


def _recorded_elsewhere(config: RunConfig, base: Path) -> list[Path]:
    """The folders of runs and evaluations, and the starting harnesses: the run keeps them."""
    starts = [path for key, path, _ in config.benchmark.needs() if key == "starts"]
    return [(base / path).resolve() for path in (config.run.folder, EVALUATIONS, *starts)]


def _past_results(config: RunConfig, base: Path) -> Path | None:
    """The file or folder of past results, if the configuration names one."""
    return None if config.search.history is None else (base / config.search.history).resolve()


def _arguments(config: RunConfig) -> Iterator[tuple[str, Any]]:
    """The keys of `[benchmark]` that the run recorded, without those that alter no score."""
    table = config.benchmark
    given = table.model_dump(mode="json", exclude_unset=True, exclude=set(table.unscored))
    for key, value in given.items():
        if key == "arguments" and isinstance(value, dict):
            yield from ((f"arguments.{name}", one) for name, one in value.items())
        else:
            yield f"benchmark.{key}", value


def _of_model(config: RunConfig, base: Path) -> dict[str, str]:
    assert config.model is not None
    model = config.model
    given = model.model_dump(mode="json", exclude_unset=True, exclude=set(model.unscored))
    parts = {"model": _short(given)}
    for path in model.sources(base):
        parts |= _of_path(_name(path, base), path, split=False)
    return parts


def _own(benchmark: Benchmark) -> Mapping[str, Any]:
    """What a benchmark itself says can alter its scores."""
    given = getattr(benchmark, "fingerprint", None)
    try:
        found = given() if callable(given) else given
    except Exception as error:
        raise ConfigError(f"fingerprint of the benchmark failed: {described(error)}") from error
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise ConfigError(
            "fingerprint of the benchmark must map names to paths or values, got a "
            f"{type(found).__name__}."
        )
    return {str(name): value for name, value in found.items()}


def _of_value(name: str, value: Any) -> dict[str, str]:
    if isinstance(value, Path):
        return _of_path(name, value, split=False)
    return {name: _hashed(value) if isinstance(value, bytes) else _short(value)}


def _of_path(name: str, path: Path, *, split: bool, without: Path | None = None) -> dict[str, str]:
    """The hash of a file or folder; with `split`, one for each file of a small folder.

    Files of a folder that are `without`, or in it, are left out.
    """
    if not path.is_dir():
        return {name: _of_file(path)}
    found = [
        file
        for file in files_in(path)
        if without in (None, path.resolve()) or not file.resolve().is_relative_to(without)
    ]
    files = {file.relative_to(path).as_posix(): _of_file(file) for file in found}
    if split and len(files) <= MOST_FILES:
        return {f"{name}/{inside}": found for inside, found in files.items()}
    lines = "".join(f"{inside}\0{found}\n" for inside, found in files.items())
    return {name: _hashed(lines.encode())}


def _of_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()
    except OSError as error:
        return f"unreadable: {error.strerror}"


def _name(path: Path, base: Path) -> str:
    """The path as a message shows it: relative to the project if it is inside."""
    path = path.resolve()
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else path.as_posix()


def _short(value: Any) -> str:
    try:
        text = json.dumps(value, sort_keys=True)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= _LONGEST else _hashed(text.encode())


def _hashed(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
