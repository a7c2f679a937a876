"""`[benchmark]`: what is searched; and the two tables of which the kind decides the keys."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Strict, Tag, model_validator

from coevolve.errors import InputError
from coevolve.runs.proposer_settings import (
    PROPOSERS,
    CommandProposerSettings,
    FunctionProposerSettings,
    LLMProposerSettings,
    OfflineProposerSettings,
    OwnProposerSettings,
    ScriptedProposerSettings,
    SyntheticProposerSettings,
)
from coevolve.runs.settings import Amount, Count, Needed, Table, Text, Texts, harness_folders

__all__ = ["BENCHMARKS", "PROPOSERS", "BenchmarkSettings", "ProposerSettings"]

Tasks = Texts | dict[Text, Texts]
Starts = Annotated[tuple[Text, ...], Strict(False), Field(min_length=2)]


class FunctionBenchmarkSettings(Table):
    """A Python file with an `evaluate` function."""

    kind: Literal["function"]
    file: Text
    starts: Starts

    def needs(self) -> Iterator[Needed]:
        yield ("file", self.file, "file")
        yield from (("starts", folder, "folder") for folder in self.starts)


class CommandBenchmarkSettings(Table):
    """An executable that prints a score."""

    kind: Literal["command"]
    command: Annotated[tuple[Text, ...], Strict(False), Field(min_length=1)]
    starts: Starts
    tasks: Tasks | None = None
    tasks_file: Text | None = None
    test_tasks: Texts = ()
    readable: Texts = ()
    test_readable: Texts = ()
    network: bool = False
    briefing: Text | None = None
    weights: dict[str, Amount] | None = None
    costs: dict[str, Amount] | None = None

    @model_validator(mode="after")
    def _has_tasks_once(self) -> "CommandBenchmarkSettings":
        if (self.tasks is None) == (self.tasks_file is None):
            raise InputError("give either tasks or tasks_file, and not both.")
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


class SyntheticBenchmarkSettings(Table):
    """A synthetic world; see `coevolve.benchmarks.synthetic.SyntheticWorld`."""

    kind: Literal["synthetic"]
    pools: dict[Text, Count] = Field(default_factory=lambda: {"all": 89}, min_length=1)
    ease: dict[str, float] | None = None
    skills: Count = 3
    spread: Amount = 3.0
    sharpness: Amount = 3.0
    drift: float = 0.0
    step: Amount = 0.4
    mends: Annotated[int, Field(ge=0)] = 2
    mend: float = 5.0
    seed: Annotated[int, Field(ge=0)] = 0
    starts: Annotated[int, Field(ge=2)] = 2
    test_tasks: Annotated[int, Field(ge=0)] = 0
    seconds: Annotated[float, Field(ge=0)] = 0.0


class TextClassificationSettings(Table):
    """Text classification with a model; see `coevolve.benchmarks.textclass`."""

    kind: Literal["textclass"]
    sets: Annotated[tuple[Text, ...], Strict(False), Field(min_length=1)] = ("service-desk",)
    data: Text | None = None
    starts: Starts = ("zero-shot", "few-shot")
    mode: Literal["offline", "online"] = "offline"

    def needs(self) -> Iterator[Needed]:
        if self.data is not None:
            yield ("data", self.data, "folder")
        yield from (("sets", path, "folder") for path in self.sets if is_path(path))
        yield from harness_folders("starts", self.starts)


class OwnBenchmarkSettings(Table):
    """A factory that returns a benchmark, as `package.module:factory`."""

    kind: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
    arguments: dict[str, Any] = Field(default_factory=dict)


BENCHMARKS: dict[str, type[Table]] = {
    "function": FunctionBenchmarkSettings,
    "command": CommandBenchmarkSettings,
    "synthetic": SyntheticBenchmarkSettings,
    "textclass": TextClassificationSettings,
    "package.module:factory": OwnBenchmarkSettings,
}


def is_path(name: str) -> bool:
    """Whether a name is a path rather than the name of something built in."""
    return "/" in name


def _kind(table: Any) -> Any:
    """The tag of a table: its `kind`, and one tag for all factories."""
    kind = table.get("kind") if isinstance(table, Mapping) else getattr(table, "kind", None)
    return "package.module:factory" if isinstance(kind, str) and ":" in kind else kind


BenchmarkSettings = Annotated[
    Annotated[FunctionBenchmarkSettings, Tag("function")]
    | Annotated[CommandBenchmarkSettings, Tag("command")]
    | Annotated[SyntheticBenchmarkSettings, Tag("synthetic")]
    | Annotated[TextClassificationSettings, Tag("textclass")]
    | Annotated[OwnBenchmarkSettings, Tag("package.module:factory")],
    Discriminator(_kind),
]
ProposerSettings = Annotated[
    Annotated[OfflineProposerSettings, Tag("offline")]
    | Annotated[LLMProposerSettings, Tag("llm")]
    | Annotated[CommandProposerSettings, Tag("command")]
    | Annotated[FunctionProposerSettings, Tag("function")]
    | Annotated[ScriptedProposerSettings, Tag("scripted")]
    | Annotated[SyntheticProposerSettings, Tag("synthetic")]
    | Annotated[OwnProposerSettings, Tag("package.module:factory")],
    Discriminator(_kind),
]
