"""`[benchmark]`: the base of all settings, and those of files, commands and factories.

No worker imports this module: it builds the benchmark from the `Spec` alone.
"""

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, Strict, model_validator

from coevolve import registry
from coevolve.errors import ConfigError, InputError
from coevolve.executors.workload import Spec
from coevolve.findings import Finding
from coevolve.models.model_client import StubModel
from coevolve.settings import Amount, Context, Needed, Table, Text, Texts, Words

Starts = Annotated[tuple[Text, ...], Strict(False), Field(min_length=1)]


class BenchmarkSettings(Table):
    """The settings of a benchmark; a plug of yours may derive its own from it.

    `uses_model` says whether harnesses can reach the model of `[model]`; `building_blocks` names
    a `BuildingBlocks` class for the offline proposer, as `package.module:name`; `unscored` are
    keys that cannot alter a score, or that the run records in another way.
    """

    uses_model: ClassVar[bool] = True
    building_blocks: ClassVar[str] = ""
    unscored: ClassVar[frozenset[str]] = frozenset({"starts", "tasks", "test_tasks", "briefing"})
    kind: Text

    def examine(self) -> Iterator[Finding]:
        """What the benchmark needs of this machine, for `coevolve doctor`; nothing is run."""
        yield from ()

    def stub_model(self) -> StubModel:
        """The model of trials that `coevolve doctor` runs, which cost nothing."""
        return StubModel()

    @abstractmethod
    def spec(self, context: Context) -> Spec:
        """How a worker builds the benchmark in its own process."""

    def sources(self, base: Path) -> Iterator[Path]:
        """The files and folders whose contents can alter scores, for paths relative to `base`."""
        yield from ()

    def python_file(self, base: Path) -> Path | None:
        """A Python file that can alter scores, with the modules it imports and the data it names.

        The data is a guess: the file may also write what it names.
        """
        return None

    def harnesses(self) -> Mapping[str, Path]:
        """Folders of the harnesses that come with the benchmark, by name."""
        return {}

    def load(self, base: Path) -> None:
        """Import the code of the project, which may register protocols."""

    def check(self, config: Any) -> None:
        if config.model is not None and not self.uses_model:
            raise InputError(
                f"[model] has no effect on benchmark.kind {self.kind!r}; leave it out."
            )


class FactoryBenchmark(BenchmarkSettings):
    """A function or class that returns a benchmark."""

    arguments: dict[str, Any] = Field(default_factory=dict)

    def python_file(self, base: Path) -> Path | None:
        module = registry.reference("benchmarks", self.kind).partition(":")[0]
        place = base.joinpath(*module.split("."))
        for path in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
            if path.is_file():
                return path
        return None

    def spec(self, context: Context) -> Spec:
        factory = registry.reference("benchmarks", self.kind)
        return Spec(factory=factory, arguments=self.arguments, folder=context.base.resolve())


class FunctionSettings(BenchmarkSettings):
    """A Python file with an `evaluate` function."""

    file: Text
    starts: Starts

    def needs(self) -> Iterator[Needed]:
        yield ("file", self.file, "file")
        yield from (("starts", folder, "folder") for folder in self.starts)

    def load(self, base: Path) -> None:
        registry.load_module(base / self.file)

    def python_file(self, base: Path) -> Path:
        return base / self.file

    def spec(self, context: Context) -> Spec:
        base = context.base.resolve()
        arguments = {
            "path": str(base / self.file),
            "model": context.config.model is not None,
            "starts": within(base, self.starts),
        }
        factory = "coevolve.benchmarks.function:load_file"
        return Spec(factory=factory, arguments=arguments, folder=base)


class CommandSettings(BenchmarkSettings):
    """An executable that prints a score."""

    uses_model: ClassVar[bool] = False
    command: Words
    starts: Starts
    tasks: Texts | dict[Text, Texts] | None = None
    tasks_file: Text | None = None
    test_tasks: Texts = ()
    readable: Texts = ()
    test_readable: Texts = ()
    network: bool = False
    briefing: Text | None = None
    weights: dict[str, Amount] | None = None
    costs: dict[str, Amount] | None = None

    @model_validator(mode="after")
    def _has_tasks_once(self) -> Self:
        if (self.tasks is None) == (self.tasks_file is None):
            raise InputError("set either tasks or tasks_file, not both.")
        if self.test_readable and not self.test_tasks:
            raise InputError("test_readable has no effect without test_tasks.")
        return self

    def needs(self) -> Iterator[Needed]:
        for key in ("tasks_file", "briefing"):
            if (path := getattr(self, key)) is not None:
                yield (key, path, "file")
        yield from (("starts", folder, "folder") for folder in self.starts)
        yield from (("readable", path, "either") for path in self.readable)
        yield from (("test_readable", path, "either") for path in self.test_readable)

    def sources(self, base: Path) -> Iterator[Path]:
        named = [base / word for word in self.command if (base / word).is_file()]
        yield from named
        yield from (base / path for path in (*self.readable, *self.test_readable))

    def spec(self, context: Context) -> Spec:
        base = context.base.resolve()
        given = self.model_dump(mode="json", exclude={"kind", "tasks_file", "briefing"})
        given |= {"base": str(base), "starts": within(base, self.starts)}
        if self.briefing is not None:
            given["briefing"] = _text(base / self.briefing)
        if self.tasks_file is not None:
            given["tasks"] = read_tasks(base / self.tasks_file)
        factory = "coevolve.benchmarks.command:CommandBenchmark"
        return Spec(factory=factory, arguments=given, folder=base)


def read_tasks(path: Path) -> list[str] | dict[str, list[str]]:
    """The tasks in a file: one id per line, or JSON with a list or a list for each pool."""
    text = _text(path)
    if path.suffix != ".json":
        return [line.strip() for line in text.splitlines() if line.strip()]
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}.") from error
    if not isinstance(found, list | dict):
        raise ConfigError(
            f"{path} must contain a list, or a list for each pool, got {found!r:.80}."
        )
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as UTF-8 text: {error}.") from error


def within(base: Path, paths: Sequence[str]) -> list[str]:
    """Paths relative to a folder, as full paths."""
    return [str(base / path) for path in paths]
