"""The configuration of a run: the tables of one TOML file, and sentences for mistakes in it."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    create_model,
    model_serializer,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from coevolve import registry
from coevolve.benchmarks.benchmark_settings import BenchmarkSettings, FactoryBenchmark
from coevolve.core.allocation import WholePool
from coevolve.core.protocol_settings import setting_types, settings_of
from coevolve.core.protocols import SearchProtocol, checked_protocol, protocol, register
from coevolve.errors import ConfigError, InputError, UnknownProtocolError, nearest
from coevolve.executors.benchmark_needs import Needs
from coevolve.executors.executor_settings import ExecutorSettings, FactoryExecutor, LocalSettings
from coevolve.executors.isolation import Limits
from coevolve.models.model_settings import ModelPlug, ModelSettings
from coevolve.proposers.proposer_settings import FactoryProposer, ProposerSettings
from coevolve.runs.config_overrides import Override, apply_overrides, with_origins
from coevolve.search.budget import Budget, Settings
from coevolve.settings import Amount, Count, Plugged, Table, Text

_THERE = {
    "file": Path.is_file,
    "folder": Path.is_dir,
    "either": Path.exists,
    "harness": Path.is_dir,
}
_WORDS = {"either": "file or folder", "harness": "folder"}
_TABLES = ("benchmark", "proposer", "model", "executor")


class RunSettings(Table):
    """`[run]`: the name of the run and where it is stored."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")] = "run"
    folder: Text = "runs"
    seed: Annotated[int, Field(ge=0)] = 0


_OWN = ("fraction", "include_start")
"""Settings of protocols that are keys of `[search]` on their own."""


def _optional(types: Mapping[str, Any]) -> dict[str, Any]:
    return {key: (kind | None, None) for key, kind in types.items() if key not in _OWN}


class SearchSettings(
    create_model(  # type: ignore[misc]
        "ProtocolTable", __base__=Table, **_optional(setting_types())
    )
):
    """`[search]`: how many candidates, and how they are scored.

    It has a key for each setting of a protocol; those that are left out are the protocol's own.
    """

    rounds: Count
    candidates: Count = 1
    protocol: Text = "adaptive"
    fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    trials: Count = 1
    draw_per: Literal["round", "candidate"] = "round"
    confidence: Annotated[float, Field(gt=0, le=0.9999)] = 0.95
    overlap: bool = False
    in_flight: Count | None = None
    include_start: bool = False
    rescore: bool = False
    leaks: Literal["report", "refuse"] = "report"
    history: Text | None = None

    @model_serializer(mode="wrap")
    def _without_unset_keys_of_others(
        self, handler: SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        """Leave out keys of a user's own protocol that are not set: another may not have them."""
        known: dict[str, Any] = handler(self)
        base = SearchSettings.model_fields
        return {key: value for key, value in known.items() if key in base or value is not None}

    def rule(self) -> SearchProtocol:
        """The protocol with its settings; with `include_start`, a starting harness may win.

        Raises:
            UnfitSettingError: A setting has no effect on the protocol.
            InputError: A setting has a wrong value.
        """
        own = SearchSettings.__annotations__
        keys = [key for key in type(self).model_fields if key not in own]
        given = {key: value for key in keys if (value := getattr(self, key)) is not None}
        if self.include_start:
            given["include_start"] = True
        return protocol(self.protocol, **given)

    def new_rule(self) -> SearchProtocol:
        """The protocol for a new run, on which `fraction` and `draw_per` must have an effect.

        A run of an earlier version may have recorded them without one.

        Raises:
            ConfigError: One of them has none.
        """
        rule = self.rule()
        whole = isinstance(rule.allocation, WholePool)
        if self.fraction not in (None, 1) and whole:
            why = "every candidate is evaluated on every task"
            raise ConfigError(_without_effect("fraction", rule, why, ", or set it to 1"))
        if self.draw_per == "candidate" and (whole or not rule.design.redraws):
            why = "all candidates are evaluated on the same tasks"
            raise ConfigError(_without_effect("draw_per", rule, why))
        return rule


def _without_effect(key: str, rule: SearchProtocol, why: str, instead: str = "") -> str:
    return f"{key} has no effect on protocol {rule.name!r}: {why}. Leave it out{instead}."


def _read_search(value: Any, info: ValidationInfo) -> SearchSettings:
    """The table `[search]`; a protocol of the user's own adds the keys of its parts."""
    if isinstance(value, SearchSettings):
        return value
    if not isinstance(value, Mapping):
        raise PydanticCustomError("dict_type", "a table")
    folder = (info.context or {}).get("folder")
    table = _with_keys_of(value.get("protocol"), folder)
    read: SearchSettings = table.model_validate(value, context=info.context)
    return read


def _with_keys_of(name: Any, folder: Path | None) -> type[SearchSettings]:
    """The class that reads `[search]` for a protocol."""
    if not isinstance(name, str):
        return SearchSettings
    try:
        found = registry.find("protocols", name, folder=folder)
    except InputError as error:
        if not registry.REFERENCE.match(name):
            return SearchSettings  # the benchmark may register it
        wrong = PydanticCustomError("plug", "{why}", {"why": str(error)})
        line = InitErrorDetails(type=wrong, loc=("protocol",), input=name)
        raise ValidationError.from_exception_data("search", [line]) from None
    if not isinstance(found, SearchProtocol):
        return SearchSettings
    types = {key: one.type for key, one in settings_of(found).items()}
    more = {key: kind for key, kind in types.items() if key not in SearchSettings.model_fields}
    return _extended(tuple(more.items())) if more else SearchSettings


@cache
def _extended(types: tuple[tuple[str, Any], ...]) -> type[SearchSettings]:
    return create_model("SearchTable", __base__=SearchSettings, **_optional(dict(types)))


def _keys(of: type) -> dict[str, Any]:
    """A key for each field of a dataclass of numbers, with its type and its default."""
    found: dict[str, Any] = {}
    for field in fields(of):
        kinds = (field.type, *get_args(field.type))
        number = Count if int in kinds else Amount
        kind = number | None if NoneType in kinds else number
        found[field.name] = (kind, Field(field.default, validate_default=True))
    return found


BudgetTable: type[Table] = create_model("BudgetTable", __base__=Table, **_keys(Budget))
"""`[budget]`: hard caps, a key for each field of `Budget`; keys that are left out set no cap."""


def _read_budget(value: Any) -> Budget:
    return (
        value if isinstance(value, Budget) else Budget(**dict(BudgetTable.model_validate(value)))
    )


class IsolationSettings(
    create_model(  # type: ignore[misc]
        "LimitsTable",
        __base__=Table,
        kind=(Literal["auto", "bwrap", "process", "process-as-root"], "auto"),
        **{name: (kind | None, None) for name, (kind, _) in _keys(Limits).items()},
    )
):
    """`[isolation]`: where candidate code runs, and a key for each of its `Limits`.

    Limits that are left out are those of the benchmark, or the defaults.
    """

    def limits(self, needs: Needs | None = None) -> Limits:
        """The limits on candidate code, with those of the benchmark that the user has not set."""
        return (needs or Needs()).limited(self.model_dump(exclude={"kind"}))


class RunConfig(Table):
    """Everything that decides a run; paths are relative to the folder of the TOML file.

    The tables of plugs are read by the settings class of the plug that their `kind` names.

    >>> config = RunConfig.from_json({
    ...     "search": {"rounds": 3},
    ...     "benchmark": {"kind": "synthetic"},
    ...     "proposer": {"kind": "synthetic"},
    ... })
    >>> config.search.protocol, config.run.folder
    ('adaptive', 'runs')
    """

    run: RunSettings = Field(default_factory=RunSettings)
    search: Annotated[SerializeAsAny[SearchSettings], PlainValidator(_read_search)]
    budget: Annotated[
        Budget,
        PlainValidator(_read_budget),
        PlainSerializer(Budget.to_json, return_type=dict[str, Any]),
    ] = Field(default_factory=Budget)
    benchmark: Annotated[
        SerializeAsAny[BenchmarkSettings],
        Plugged("benchmarks", BenchmarkSettings, FactoryBenchmark),
    ]
    proposer: Annotated[
        SerializeAsAny[ProposerSettings], Plugged("proposers", ProposerSettings, FactoryProposer)
    ]
    model: Annotated[SerializeAsAny[ModelSettings], ModelPlug()] | None = None
    executor: Annotated[
        SerializeAsAny[ExecutorSettings],
        Plugged("executors", ExecutorSettings, FactoryExecutor, default="local"),
    ] = Field(default_factory=LocalSettings)
    isolation: IsolationSettings = Field(default_factory=IsolationSettings)

    def settings(self) -> Settings:
        """How the engine searches."""
        return Settings(
            rounds=self.search.rounds,
            candidates=self.search.candidates,
            seed=self.run.seed,
            overlap=self.search.overlap,
            in_flight=self.search.in_flight,
            rescore=self.search.rescore,
            budget=self.budget,
        )

    def given_keys(self) -> list[str]:
        """The keys that the file sets, as `table.key`."""
        given = self.model_dump(mode="json", exclude_unset=True)
        caps = {key: value for key, value in given.pop("budget", {}).items() if value is not None}
        return list(flattened({**given, "budget": caps}))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, with all defaults; its only paths are those of the file."""
        return self.model_dump(mode="json")

    @classmethod
    def from_json(
        cls, data: Mapping[str, Any], *, source: str = "configuration", folder: Path | None = None
    ) -> Self:
        """The configuration of plain JSON.

        Args:
            data: The tables.
            source: The name of the configuration in errors.
            folder: The project folder, from which plugs are imported first; the current folder
                if left out.
        """
        folder = folder or Path()
        try:
            config = cls.model_validate(data, context={"folder": folder})
        except ValidationError as error:
            raise explained(source, error) from None
        try:
            config._check_protocol(folder)
            config.settings()
            for table in (getattr(config, name) for name in _TABLES):
                if table is not None:
                    table.check(config)
        except InputError as error:
            raise ConfigError(_joined(source, [str(error)])) from error
        return config

    def _check_protocol(self, folder: Path) -> None:
        """Find the protocol, which the project may define, and register it for the run."""
        name = self.search.protocol
        try:
            if registry.REFERENCE.match(name):
                found = registry.find("protocols", name, folder=folder)
                register(checked_protocol(name, found))
            try:
                protocol(name)
            except UnknownProtocolError:
                self.benchmark.load(folder)
                protocol(name)
        except InputError as error:
            raise InputError(f"'search.protocol': {error}") from error
        self.search.rule()

    def check_paths(self, base: Path, *, source: str = "configuration") -> None:
        """Refuse paths that do not exist relative to the folder `base`."""
        known = self.benchmark.harnesses()
        lacking = [
            f"'{name}.{key}' names {path!r}, but there is no such {_WORDS.get(kind, kind)} in "
            f"{base.resolve()}.{nearest(path, known) if kind == 'harness' else ''}"
            for name in _TABLES
            if (table := getattr(self, name)) is not None
            for key, path, kind in table.needs()
            if not (kind == "harness" and path in known) and not _THERE[kind](base / path)
        ]
        if lacking:
            raise ConfigError(_joined(source, lacking))


def flattened(tables: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """The values of nested tables by their dotted keys.

    >>> flattened({"search": {"rounds": 3}, "budget": {}})
    {'search.rounds': 3}
    """
    found: dict[str, Any] = {}
    for key, value in tables.items():
        if isinstance(value, Mapping):
            found |= flattened(value, f"{before}{key}.")
        else:
            found[f"{before}{key}"] = value
    return found


def read_config(
    path: Path,
    *,
    name: str | None = None,
    seed: int | None = None,
    overrides: Sequence[Override] = (),
) -> RunConfig:
    """The configuration in a TOML file; the file's name is the run's unless `run.name` is given.

    Args:
        path: The file.
        name: The name of the run, in place of the one in the file.
        seed: The seed of the run, in place of the one in the file.
        overrides: Other values in place of those in the file.

    Raises:
        ConfigError: The file is missing, is not TOML, or has a key or value that a run cannot
            use; the message names the file, the key, the value and what is expected.
    """
    data = read_toml(path)
    if "search" not in data and ("rows" in data or "include" in data):
        raise ConfigError(f"{path} is a matrix of runs: coevolve run --matrix {path}")
    given = {
        key: value for key, value in {"name": name, "seed": seed}.items() if value is not None
    }
    for one in overrides:
        if one.path[0] == "run" and one.path[-1] in given:
            raise ConfigError(
                f"{path}: {one.key!r} comes from {one.source}, and also from another option or "
                "the matrix; use one of them."
            )
    try:
        if isinstance(run := data.setdefault("run", {}), dict):
            run.setdefault("name", path.stem)
        apply_overrides(data, overrides, source=str(path))
        if isinstance(run := data["run"], dict):
            run |= given
        config = RunConfig.from_json(data, source=str(path), folder=path.parent)
        config.check_paths(path.parent, source=str(path))
    except ConfigError as error:
        raise ConfigError(with_origins(str(error), overrides)) from error
    return config


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        ConfigError: The file is missing, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}; `coevolve init` writes one.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, or a number too long
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error


def explained(source: str, error: ValidationError) -> ConfigError:
    """What is wrong in the tables of a file, a sentence for each mistake."""
    return ConfigError(_joined(source, _sentences(error)))


def _joined(source: str, found: list[str]) -> str:
    return f"{source}: {found[0]}" if len(found) == 1 else "\n  ".join([f"{source}:", *found])


def _sentences(error: ValidationError) -> list[str]:
    """One sentence for every mistake, unknown keys first, without repeats."""
    found = sorted(error.errors(), key=lambda one: one["type"] != "unknown_key")
    keyed = [(_path(one["loc"]), _sentence(one)) for one in found]
    kept = [text for path, text in keyed if not any(_leads_to(path, other) for other, _ in keyed)]
    suggested = " ".join(text for text in kept if text.startswith("unknown"))
    return [
        text
        for text in dict.fromkeys(kept)
        if not (text.endswith("is missing.") and text.split("'")[1] in suggested.split("'"))
    ]


def _leads_to(path: list[str], other: list[str]) -> bool:
    """Whether another mistake is inside this value, and so is more precise.

    A value that may have several types has a mistake for each of them.
    """
    mine, its = ".".join(path), ".".join(other)
    return mine != its and its.startswith((f"{mine}.", f"{mine}["))


def _sentence(found: ErrorDetails) -> str:
    path = _path(found["loc"])
    key = ".".join(path)
    value = _shown(found["input"])
    match found["type"]:
        case "unknown_key":
            known = found["ctx"]["known"]
            prefix = key.removesuffix(path[-1])
            close = nearest(path[-1], known) or f" It may have {', '.join(known)}."
            return f"unknown key '{key}'.{close.replace("'", "'" + prefix, 1)}"
        case "missing":
            what = "table" if len(path) == 1 else "key"
            return f"the {what} '{key}' is missing."
        case "plug":
            said = found["msg"]
            return f"'{key}' {said}" if said.startswith("is ") else f"'{key}': {said}"
        case "too_short":
            least = found["ctx"]["min_length"]
            entries = "one entry" if least == 1 else f"{least} entries"
            return f"'{key}' must have at least {entries}, got {value}."
        case "value_error":
            reason = found["msg"].removeprefix("Value error, ")
            return f"'{key}': {reason}" if key else reason
        case "model_type" | "dict_type":
            return f"'{key}' must be a table, got {value}."
        case "string_pattern_mismatch" if path[-1].startswith("key"):  # it may be one: not shown
            return f"'{key}' must be the name of an environment variable, not the key itself."
        case "string_pattern_mismatch":
            return (
                f"'{key}' must have only letters, digits, '.', '_' and '-', and begin with a "
                f"letter or digit, got {value}."
            )
        case _:
            return f"'{key}' {_expected(found['msg'])}, got {value}."


def _path(loc: tuple[int | str, ...]) -> list[str]:
    """The dotted key of a place.

    Pydantic names the member of a union in between, which is not a key of the file.
    """
    path: list[str] = []
    for part in loc:
        if isinstance(part, int):
            path[-1] += f"[{part}]"
        elif len(path) < 2 or not ("[" in part or part == "str" or part.startswith("constrained")):
            path.append(part)
    return path


def _expected(message: str) -> str:
    """Pydantic's message as the rest of our sentence."""
    text = message.replace("Input should", "must").replace("should", "must")
    for plain, better in (
        ("a valid integer", "a whole number"),
        ("a valid number", "a number"),
        ("a valid string", "text"),
        ("a valid boolean", "true or false"),
        ("a valid tuple", "a list"),
        ("a valid array", "a list"),
        ("greater than or equal to", "at least"),
        ("less than or equal to", "at most"),
    ):
        text = text.replace(plain, better)
    return text if text.startswith("must") else f"is wrong: {text}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
