"""The tables of a run's TOML file, one record each."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, Strict, field_validator, model_validator

from coevolve.benchmarks.textclass.harness_files import built_in
from coevolve.core.choice import HighestEstimate
from coevolve.core.protocols import SearchProtocol
from coevolve.core.protocols import protocol as find_protocol
from coevolve.errors import InputError
from coevolve.executors.isolation import Limits

Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[tuple[Text, ...], Strict(False)]
Count = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(gt=0)]
Needed = tuple[str, str, Literal["file", "folder", "either"]]


class Table(BaseModel):
    """A table of the file: unknown keys and values of another type are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    def needs(self) -> Iterator[Needed]:
        """The paths it names, as (key, path, what must be there)."""
        yield from ()


def harness_folders(key: str, names: Sequence[str]) -> Iterator[Needed]:
    """The folders among names of harnesses; the others are built in."""
    yield from ((key, name, "folder") for name in names if name not in built_in())


class RunSettings(Table):
    """`[run]`: what the run is called and where it is kept."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")] = "run"
    folder: Text = "runs"
    seed: Annotated[int, Field(ge=0)] = 0


class SearchSettings(Table):
    """`[search]`: how many candidates, and how they are judged."""

    rounds: Count
    candidates: Count = 1
    protocol: Text = "task-coevolve"
    fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    trials: Count = 1
    draw_per: Literal["round", "candidate"] = "round"
    confidence: Annotated[float, Field(gt=0, le=0.9999)] = 0.95
    overlap: bool = False
    include_start: bool = False
    rescore: bool = False
    leaks: Literal["report", "refuse"] = "report"

    @field_validator("protocol")
    @classmethod
    def _is_registered(cls, name: str) -> str:
        return find_protocol(name).name

    @model_validator(mode="after")
    def _has_effect(self) -> "SearchSettings":
        self.rule()
        return self

    def rule(self) -> SearchProtocol:
        """The protocol, in which a starting harness may win where that is wanted."""
        rule = find_protocol(self.protocol)
        if not self.include_start:
            return rule
        if not isinstance(rule.choice, HighestEstimate):
            raise InputError(
                f"include_start has no effect on protocol {rule.name!r}, which chooses by "
                f"{type(rule.choice).__name__}; leave it out."
            )
        return replace(rule, choice=replace(rule.choice, include_start=True))


class BudgetSettings(Table):
    """`[budget]`: hard caps; what is left out is not capped."""

    trials: Count | None = None
    tokens: Count | None = None
    dollars: Amount | None = None
    hours: Amount | None = None


class ExecutorSettings(Table):
    """`[executor]`: how many attempts at once, and how long one may take.

    `seconds` are for one attempt at a trial, `prepare_seconds` for a check or a preparation.
    """

    workers: Count | None = None
    seconds: Amount = 600.0
    prepare_seconds: Amount = 3600.0

    def processes(self) -> int:
        """The number of workers: as many as there are cores, unless given."""
        cores: int | None = getattr(os, "process_cpu_count", os.cpu_count)()
        return self.workers or cores or 1


class IsolationSettings(Table):
    """`[isolation]`: where candidate code runs, and its limits."""

    kind: Literal["auto", "bwrap", "process"] = "auto"
    seconds: Amount = 60.0
    cpu_seconds: Amount | None = None
    memory_mb: Count = 2048
    processes: Count = 32
    file_mb: Count = 64
    output_mb: Amount = 10.0
    answer_mb: Amount = 4.0
    startup_seconds: Amount = 20.0
    asks: Count = 1000

    def limits(self) -> Limits:
        """The limits on candidate code."""
        return Limits(**self.model_dump(exclude={"kind"}))
