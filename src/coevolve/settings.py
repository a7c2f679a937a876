"""Tables of settings: their base class, and how a table finds the class of its plug.

The settings of a plug are a subclass of `Table` next to its code. It checks the keys of the
plug's table in the TOML file and builds the plug. A table is read in two steps: its `kind` finds
the plug (`coevolve.registry`), and the plug's settings class checks the rest of the table.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ModelWrapValidatorHandler,
    PlainValidator,
    Strict,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import CoreSchema, ErrorDetails, InitErrorDetails, PydanticCustomError
from pydantic_core.core_schema import ErrorType

from coevolve import registry
from coevolve.errors import InputError, nearest

Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[tuple[Text, ...], Strict(False)]
Words = Annotated[tuple[Text, ...], Strict(False), Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(gt=0)]
Needed = tuple[str, str, Literal["file", "folder", "either", "harness"]]
"""A key, the path it names, and what must be there.

A "harness" is a folder, or a name in `harnesses` of the benchmark's settings.
"""


_ERRORS = frozenset(get_args(ErrorType))


class Table(BaseModel):
    """A table of the TOML file: unknown keys and values of another type are errors.

    >>> class Mine(Table):
    ...     size: Count = 3
    >>> Mine().size
    3
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="wrap")
    @classmethod
    def _list_known_keys(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Add the known keys to the error for an unknown key."""
        try:
            return handler(data)
        except ValidationError as error:
            lines = [_line(one, sorted(cls.model_fields)) for one in error.errors()]
            raise ValidationError.from_exception_data(cls.__name__, lines) from None

    def needs(self) -> Iterator[Needed]:
        """The paths that the table names."""
        yield from ()

    def check(self, config: Any) -> None:
        """Refuse a configuration whose other tables do not fit this one.

        Args:
            config: The whole configuration, a `coevolve.runs.RunConfig`.

        Raises:
            InputError: They do not fit; the message says what to change.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a settings class may use to build its plug.

    Args:
        config: The whole configuration, a `coevolve.runs.RunConfig`.
        base: The folder of the TOML file, from which paths start.
        folder: The folder of the run; None if nothing may be written.
    """

    config: Any
    base: Path
    folder: Path | None = None


class Plugged:
    """Marks a field whose table belongs to a plug, found by a key of the table.

    Args:
        family: The family of the plug.
        base: The class that the settings of the family derive from.
        factory: The settings of a plug that is a plain function or class: it is called with the
            `arguments` of the table.
        key: The key that names the plug.
        default: The name if the key is left out; None makes the key required.
        given: Values for keys that are left out.
    """

    others = ""
    """Other allowed names, in a few words."""

    def __init__(
        self,
        family: registry.Family,
        base: type[Table],
        factory: type[Table],
        *,
        key: str = "kind",
        default: str | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> None:
        self.family, self.base, self.factory = family, base, factory
        self.key, self.default, self.given = key, default, given or {}

    def named(self, table: Mapping[str, Any]) -> Any:
        """The name of the plug that a table is for."""
        return table.get(self.key, self.default)

    def settings(self, table: Mapping[str, Any], folder: Path | None) -> type[Table]:
        """The class that reads a table.

        Raises:
            InputError: The plug that the table names cannot be found.
        """
        name = self.named(table)
        if not isinstance(name, str) or not name:
            names = registry.names(self.family)
            known = ("one of " if len(names) > 1 else "") + ", ".join(map(repr, names))
            what = "is missing" if name is None else f"is {name!r}"
            more = f"{self.others}, or" if self.others else "or"
            raise InputError(f"{what}; use {known}, {more} 'package.module:name'.")
        found = registry.find(self.family, name, folder=folder)
        if isinstance(found, type) and issubclass(found, self.base):
            return found
        if callable(found) and not (isinstance(found, type) and issubclass(found, Table)):
            return self.factory
        raise InputError(
            f"{name!r} is {_kind_of(found)}; it must be a subclass of {self.base.__module__}."
            f"{self.base.__name__}, or a function or class that returns the plug."
        )

    def read(self, value: Any, info: ValidationInfo) -> Table:
        """The settings in a table; `folder` of the validation context is the project."""
        if isinstance(value, self.base):
            return value
        if not isinstance(value, Mapping):
            raise PydanticCustomError("dict_type", "a table")
        folder = (info.context or {}).get("folder")
        try:
            settings = self.settings(value, folder)
        except InputError as error:
            wrong, key = PydanticCustomError("plug", "{why}", {"why": str(error)}), self.key
            slips = [one for one in value if nearest(one, [key])] if key not in value else []
            if slips:
                key, known = slips[0], [key]
                wrong = PydanticCustomError("unknown_key", "unknown key", {"known": known})
            line = InitErrorDetails(type=wrong, loc=(key,), input=value.get(key))
            raise ValidationError.from_exception_data(self.family, [line]) from None
        return settings.model_validate({**self.given, **value}, context=info.context)

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return PlainValidator(self.read).__get_pydantic_core_schema__(source, handler)


def _line(found: ErrorDetails, known: list[str]) -> InitErrorDetails:
    kind: str | PydanticCustomError = found["type"]
    if kind == "extra_forbidden" and len(found["loc"]) == 1:
        kind = PydanticCustomError("unknown_key", "unknown key", {"known": known})
    elif found["type"] not in _ERRORS:
        kind = PydanticCustomError(found["type"], found["msg"], found.get("ctx"))
    return InitErrorDetails(
        type=kind, loc=found["loc"], input=found["input"], ctx=found.get("ctx", {})
    )


def _kind_of(found: object) -> str:
    return (
        f"the class {found.__name__}" if isinstance(found, type) else f"a {type(found).__name__}"
    )
