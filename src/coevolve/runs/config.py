"""The configuration of a run, read from one TOML file."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from coevolve.benchmarks.textclass.harness_files import built_in
from coevolve.errors import ConfigError, InputError, nearest
from coevolve.runs.mistakes import sentences
from coevolve.runs.model_settings import ModelSettings
from coevolve.runs.plugs import (
    BenchmarkSettings,
    CommandBenchmarkSettings,
    ProposerSettings,
    SyntheticBenchmarkSettings,
    TextClassificationSettings,
)
from coevolve.runs.proposer_settings import (
    OfflineProposerSettings,
    ScriptedProposerSettings,
    SyntheticProposerSettings,
)
from coevolve.runs.settings import (
    BudgetSettings,
    ExecutorSettings,
    IsolationSettings,
    RunSettings,
    SearchSettings,
    Table,
)
from coevolve.search.budget import Budget, Settings

_NO_MODEL = (CommandBenchmarkSettings, SyntheticBenchmarkSettings)
_HARNESSES = ("starts", "folders")
_THERE = {"file": Path.is_file, "folder": Path.is_dir, "either": Path.exists}


class RunConfig(Table):
    """Everything that decides a run; paths are relative to the folder of the TOML file.

    >>> config = RunConfig.from_json({
    ...     "search": {"rounds": 3},
    ...     "benchmark": {"kind": "synthetic"},
    ...     "proposer": {"kind": "synthetic"},
    ... })
    >>> config.search.protocol, config.run.folder
    ('task-coevolve', 'runs')
    """

    run: RunSettings = Field(default_factory=RunSettings)
    search: SearchSettings
    budget: BudgetSettings = Field(default_factory=BudgetSettings)
    benchmark: BenchmarkSettings
    proposer: ProposerSettings
    model: ModelSettings | None = None
    executor: ExecutorSettings = Field(default_factory=ExecutorSettings)
    isolation: IsolationSettings = Field(default_factory=IsolationSettings)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if isinstance(self.proposer, SyntheticProposerSettings) and not isinstance(
            self.benchmark, SyntheticBenchmarkSettings
        ):
            raise InputError(
                "proposer.kind 'synthetic' knows synthetic worlds only, but benchmark.kind is "
                f"{self.benchmark.kind!r}."
            )
        if isinstance(self.proposer, OfflineProposerSettings) and not isinstance(
            self.benchmark, TextClassificationSettings
        ):
            raise InputError(
                "proposer.kind 'offline' writes harnesses for benchmark.kind 'textclass' only, "
                f"and benchmark.kind is {self.benchmark.kind!r}; see docs/proposers.md for others."
            )
        if isinstance(self.benchmark, TextClassificationSettings) and self.model is None:
            raise InputError(
                "benchmark.kind 'textclass' needs a model; write [model] with name = \"embedded\" "
                "or the name of another one (docs/models.md)."
            )
        if self.model is not None and isinstance(self.benchmark, _NO_MODEL):
            raise InputError(
                f"[model] has no effect on benchmark.kind {self.benchmark.kind!r}; leave it out."
            )
        if isinstance(self.proposer, ScriptedProposerSettings):
            self.proposer.check_length(self.search.rounds, self.search.candidates)
        return self

    def settings(self) -> Settings:
        """How the engine searches."""
        return Settings(
            rounds=self.search.rounds,
            candidates=self.search.candidates,
            seed=self.run.seed,
            overlap=self.search.overlap,
            rescore=self.search.rescore,
            budget=Budget(**self.budget.model_dump()),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, with every default written out and no path but those in the file."""
        return self.model_dump(mode="json")

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, source: str = "configuration") -> Self:
        """The configuration of plain JSON; `source` is what errors call it."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise ConfigError(_joined(source, sentences(error, cls))) from None

    def check_paths(self, base: Path, *, source: str = "configuration") -> None:
        """Refuse paths that lead nowhere from the folder `base`."""
        lacking = [
            f"'{name}.{key}' names {path!r}, but there is no such "
            f"{'file or folder' if kind == 'either' else kind} in {base.resolve()}."
            f"{self._near_harness(key, path)}"
            for name in ("benchmark", "proposer", "model")
            if (table := getattr(self, name)) is not None
            for key, path, kind in table.needs()
            if not _THERE[kind](base / path)
        ]
        if lacking:
            raise ConfigError(_joined(source, lacking))

    def _near_harness(self, key: str, path: str) -> str:
        """A suggestion for a name that may be meant for a built-in harness."""
        named = isinstance(self.benchmark, TextClassificationSettings) and key in _HARNESSES
        return nearest(path, built_in()) if named else ""


def read_config(path: Path) -> RunConfig:
    """The configuration in a TOML file; the run is named after the file unless it says how.

    Raises:
        ConfigError: The file is missing, is no TOML, or says something a run cannot do; the
            message names the file, the key, the value and what is expected.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}; `coevolve init` writes one.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is no valid TOML: {error}.") from error
    if isinstance(run := data.setdefault("run", {}), dict):
        run.setdefault("name", path.stem)
    config = RunConfig.from_json(data, source=str(path))
    config.check_paths(path.parent, source=str(path))
    return config


def _joined(source: str, found: list[str]) -> str:
    return f"{source}: {found[0]}" if len(found) == 1 else "\n  ".join([f"{source}:", *found])
