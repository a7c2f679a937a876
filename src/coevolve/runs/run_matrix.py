"""A matrix of runs: rows that change a base configuration, each with several seeds.

The file of a matrix:

    base = "base.toml"            # relative to this file; a row may have its own
    seeds = [1, 2, 3]             # a row may have its own

    [include]                     # rows of other matrices, which are the same runs
    "other.toml" = ["full"]

    [rows.naive-7.search]         # tables of the configuration, with the keys to change
    protocol = "naive"
    fraction = 0.07

Each row and seed is a run of its own in the run folder of its base, with the name `ROW-sSEED`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, Strict, ValidationError, create_model

from coevolve.errors import ConfigError, InputError, nearest
from coevolve.runs.config import RunConfig, explained, read_config, read_toml
from coevolve.runs.config_overrides import Override, table_overrides
from coevolve.runs.run import Run
from coevolve.runs.session import check_new_run, create_run, run_folder
from coevolve.settings import Table, Text, Words

Seeds = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Strict(False), Field(min_length=1)]
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
_Changes = Annotated[dict[str, Any], Field(default_factory=dict)]


class RowTable(
    create_model(  # type: ignore[misc]
        "RowChanges", __base__=Table, **dict.fromkeys(RunConfig.model_fields, _Changes)
    )
):
    """A row of the file: a key for each table of the configuration, its base and its seeds."""

    base: Text | None = None
    seeds: Seeds | None = None

    def overrides(self, source: str) -> tuple[Override, ...]:
        """The values that the row changes."""
        return table_overrides(self.model_dump(exclude={"base", "seeds"}), source)


class MatrixTable(Table):
    """The file of a matrix."""

    base: Text | None = None
    seeds: Seeds = (0,)
    include: dict[Text, Words] = Field(default_factory=dict)
    rows: dict[Text, RowTable] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """A row: its base configuration, the values that it changes, and its seeds."""

    name: str
    file: Path
    overrides: tuple[Override, ...]
    seeds: tuple[int, ...]

    def runs(self, overrides: Sequence[Override] = ()) -> "list[MatrixRun]":
        """The runs of the row; `overrides` change its values further.

        Raises:
            ConfigError: The configuration is not valid; the message names the key.
        """
        _check_exists(self.file, "the key 'base' must name the configuration of a search")
        changed = (*self.overrides, *overrides)
        return [
            MatrixRun(
                row=self.name,
                seed=seed,
                file=self.file,
                overrides=changed,
                config=read_config(
                    self.file, name=f"{self.name}-s{seed}", seed=seed, overrides=changed
                ),
            )
            for seed in self.seeds
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRun:
    """One run of a matrix, which may exist already."""

    row: str
    seed: int
    file: Path
    overrides: tuple[Override, ...]
    config: RunConfig

    @property
    def name(self) -> str:
        return self.config.run.name

    @property
    def folder(self) -> Path:
        return run_folder(self.file, self.config)

    @property
    def started(self) -> bool:
        """Whether the run has a journal with events."""
        return Run(self.folder).started

    def create(self) -> Path:
        """Open the run, without evaluating anything yet, and return its folder."""
        return create_run(self.file, name=self.name, seed=self.seed, overrides=self.overrides)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMatrix:
    """The rows of a matrix, in their order.

    Args:
        file: The file that describes the matrix.
        rows: Its rows, those of other matrices first.
    """

    file: Path
    rows: tuple[MatrixRow, ...]

    def chosen(self, *, only: Sequence[str] = (), seeds: Sequence[int] = ()) -> "RunMatrix":
        """A part of the matrix.

        Args:
            only: The names of the rows; all if left out.
            seeds: Seeds in place of those of the rows.

        Raises:
            InputError: There is no such row, or a seed is not valid.
        """
        known = {row.name: row for row in self.rows}
        for name in only:
            if name not in known:
                raise InputError(
                    f"{self.file} has no row {name!r}; it has {', '.join(known)}."
                    f"{nearest(name, known)}"
                )
        if any(seed < 0 for seed in seeds) or len(set(seeds)) < len(seeds):
            given = ", ".join(map(str, seeds))
            raise InputError(f"seeds must be different whole numbers of 0 or more, got {given}.")
        rows = [row for row in self.rows if not only or row.name in only]
        return replace(
            self, rows=tuple(replace(row, seeds=tuple(seeds) or row.seeds) for row in rows)
        )

    def runs(self, overrides: Sequence[Override] = ()) -> list[MatrixRun]:
        """All runs, row by row; `overrides` change values of all of them.

        Raises:
            ConfigError: A configuration is not valid; the message has the errors of all rows.
        """
        found: list[MatrixRun] = []
        wrong: dict[str, str] = {}
        for row in self.rows:
            try:
                found += row.runs(overrides)
            except ConfigError as error:
                wrong[row.name] = str(error)
        _refuse(self.file, wrong)
        return found


def check_new_runs(file: Path, runs: Iterable[MatrixRun]) -> None:
    """Check everything that can be checked before the first trial of runs that do not exist yet.

    Raises:
        ConfigError: A run cannot start; the message has the errors of all rows.
    """
    wrong: dict[str, str] = {}
    checked: set[str] = set()
    for run in runs:
        if run.row in checked or run.started:
            continue
        checked.add(run.row)  # its other runs differ only in their seed
        try:
            check_new_run(run.config, run.file.parent)
        except ConfigError as error:
            wrong[run.row] = str(error)
    _refuse(file, wrong)


def read_run_matrix(path: Path) -> RunMatrix:
    """The matrix in a TOML file, with the rows that it includes.

    Raises:
        ConfigError: The file is missing, is not TOML, or has a key or value that a matrix cannot
            use; the message names the file and the key. Configurations are checked by `runs`.
    """
    _check_exists(path)
    return RunMatrix(file=path, rows=tuple(_rows(path, ())))


def _check_exists(path: Path, what: str = "a matrix is a TOML file with rows") -> None:
    try:
        found = path.is_file()
    except (OSError, ValueError):  # a name that is too long
        found = False
    if not found:
        raise ConfigError(f"there is no file {path}; {what}.")


def _rows(path: Path, inside: tuple[Path, ...]) -> list[MatrixRow]:
    """The rows of a file that the files `inside` include, one after another."""
    data = read_toml(path)
    if "search" in data and "rows" not in data:
        raise ConfigError(
            f"{path} is the configuration of one search, not a matrix; leave out --matrix."
        )
    try:
        table = MatrixTable.model_validate(data)
    except ValidationError as error:
        raise explained(str(path), error) from None
    found = _included(path, table, inside)
    for name, row in table.rows.items():
        if not _NAME.match(name):
            raise ConfigError(
                f"{path}: the row {name!r} must have only letters, digits, '.', '_' and '-' in "
                "its name, and begin with a letter or digit."
            )
        base = row.base or table.base
        if base is None:
            raise ConfigError(
                f"{path}: 'base' is missing; set it for all rows or in row {name!r}."
            )
        seeds = row.seeds or table.seeds
        if len(set(seeds)) < len(seeds):
            raise ConfigError(f"{path}: row {name!r} has a seed twice: {list(seeds)}.")
        found.append(
            MatrixRow(
                name=name,
                file=path.parent / base,
                overrides=row.overrides(f"row {name!r} of {path}"),
                seeds=seeds,
            )
        )
    if not found:
        raise ConfigError(f"{path}: there are no rows; add a table such as [rows.full.search].")
    names = [row.name for row in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"{path}: there are two rows {twice[0]!r}; give one another name.")
    return found


def _included(path: Path, table: MatrixTable, inside: tuple[Path, ...]) -> list[MatrixRow]:
    here = (*inside, path.resolve())
    found = []
    for other, names in table.include.items():
        file = path.parent / other
        _check_exists(file)
        if file.resolve() in here:
            raise ConfigError(f"{path}: 'include' names {other!r}, which includes this file.")
        known = {row.name: row for row in _rows(file, here)}
        for name in names:
            if name not in known:
                raise ConfigError(
                    f"{path}: 'include' names the row {name!r} of {file}, which has "
                    f"{', '.join(known)}.{nearest(name, known)}"
                )
            found.append(known[name])
    return found


def _refuse(file: Path, wrong: Mapping[str, str]) -> None:
    """Raise the errors of the rows; one that several rows share is shown once."""
    rows: defaultdict[str, list[str]] = defaultdict(list)
    for name, error in wrong.items():
        rows[error].append(name)
    if wrong:
        errors = [f"{', '.join(names)}: {error}" for error, names in rows.items()]
        raise ConfigError("\n".join([f"{file} cannot run; nothing was started.", *errors]))
