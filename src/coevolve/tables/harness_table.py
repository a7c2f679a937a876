"""A table: every harness of a space on every task of a set, in one compressed file.

The file is a zip archive of numpy arrays (.npz), each read when it is first used:

- `facts`: JSON as bytes: the schema, the set, the numbers of tasks and labels, the stages of the
  space, the last stage that is filled, how much a prompt may show, and where the table is from.
- `keys`: the harnesses: components joined by blanks, or the name of a starting harness.
- `gold`: the number of the right label of each task, validation first, then the test; 255 for an
  answer that does not occur in training.
- `answers`: harnesses x tasks: the number of the label, 255 for anything else.
- `correct`, `offered`, `shown`: harnesses x tasks, as packed bits.
- `tokens_in`, `tokens_out`: harnesses x tasks; `learning`: the tokens of learning, by harness.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from coevolve.core.outcomes import is_whole
from coevolve.errors import InputError
from coevolve.tables.harness_runs import Evaluated, Flags
from coevolve.tables.table_space import STARTS, TableSpace

SCHEMA = 2
_DAMAGED = (OSError, ValueError, TypeError, EOFError, BadZipFile, zlib.error)
_ARRAYS = (
    "keys",
    "gold",
    "answers",
    "correct",
    "offered",
    "shown",
    "tokens_in",
    "tokens_out",
    "learning",
)
_FACTS = (
    "schema",
    "set",
    "validation",
    "test",
    "labels",
    "stages",
    "stage",
    "characters",
    "source",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What a table is of, and where it is from.

    Args:
        set: The name of the set.
        validation: The number of validation tasks.
        test: The number of sealed tasks.
        labels: The number of labels.
        stages: The blocks of every stage of the space.
        stage: The last stage that is filled, from 1.
        characters: Characters of examples in a prompt, at most.
        source: Provenance: model, weights, arithmetic, version, command, date.
    """

    set: str
    validation: int
    test: int
    labels: int
    stages: Sequence[Mapping[str, Sequence[str]]]
    stage: int
    characters: int
    source: Mapping[str, Any]


class HarnessTable:
    """A table; `read` opens a file, and reads it as far as it is used.

    Args:
        arrays: The arrays of the schema.
        name: What messages call the table.

    Raises:
        InputError: They are not those of a table.
    """

    def __init__(self, arrays: Mapping[str, Any], name: str = "the table") -> None:
        missing = {"facts", *_ARRAYS} - set(arrays)
        if missing:
            raise InputError(f"a table needs the arrays {', '.join(sorted(missing))}.")
        facts = json.loads(bytes(arrays["facts"]))
        if not isinstance(facts, dict) or set(_FACTS) - facts.keys():
            raise InputError("the facts of a table are incomplete.")
        if facts.pop("schema") != SCHEMA:
            raise InputError(f"the table has another schema than {SCHEMA}; fill it again.")
        self.facts, self._arrays, self._name = TableFacts(**facts), arrays, name
        made = self.facts
        counts = (made.validation, made.test, made.labels, made.stage, made.characters)
        if not all(is_whole(count, least=0) for count in counts) or not made.validation:
            raise InputError("the facts of a table need whole numbers of tasks and labels.")
        if not 1 <= made.stage <= len(made.stages):
            raise InputError(
                f"the last filled stage is {made.stage}, but the space has {len(made.stages)}."
            )

    @classmethod
    def read(cls, file: Path) -> Self:
        """The table in a file that `save` wrote.

        Raises:
            InputError: It does not exist, or is not a table.
        """
        if file.is_dir():
            raise InputError(f"{file} is a folder; name the .npz file of a table.")
        try:
            return cls(np.load(file, allow_pickle=False), str(file))
        except FileNotFoundError:
            raise InputError(
                f"there is no file {file}; `coevolve fill` makes a table (docs/harness-table.md)."
            ) from None
        except InputError as error:
            raise InputError(f"{file} is not a table of harnesses: {error}") from error
        except _DAMAGED as error:
            raise InputError(f"{file} is not a table of harnesses, or it is damaged.") from error

    @cached_property
    def keys(self) -> dict[str, int]:
        """The row of every harness."""
        keys = self._read("keys")
        return {str(key): row for row, key in enumerate(keys)}

    @cached_property
    def space(self) -> TableSpace:
        """The space, with the filled stages alone."""
        try:
            return TableSpace(self.facts.stages[: self.facts.stage], self.facts.characters)
        except InputError as error:
            raise InputError(f"{self._name}: {error}") from error

    @cached_property
    def gold(self) -> NDArray[np.uint8]:
        """The number of the right label of every task."""
        return np.asarray(self._array("gold"))

    @cached_property
    def answers(self) -> NDArray[np.uint8]:
        """Harnesses x tasks: the number of the answer."""
        return np.asarray(self._array("answers"))

    @cached_property
    def correct(self) -> Flags:
        """Harnesses x tasks: whether the answer is right."""
        return self._flags("correct")

    @cached_property
    def offered(self) -> Flags:
        """Harnesses x tasks: whether the right label was among the choices."""
        return self._flags("offered")

    @cached_property
    def shown(self) -> Flags:
        """Harnesses x tasks: whether a prompt showed the right label."""
        return self._flags("shown")

    @cached_property
    def tokens(self) -> NDArray[np.int64]:
        """Harnesses x tasks: tokens that the model read and wrote."""
        read = self._array("tokens_in").astype(np.int64)
        return np.asarray(read + self._array("tokens_out"))

    @cached_property
    def validation(self) -> NDArray[np.float64]:
        """The true score of every harness on all validation tasks."""
        return np.asarray(self.correct[:, : self.facts.validation].mean(axis=1))

    @cached_property
    def test(self) -> NDArray[np.float64]:
        """The true score of every harness on the sealed test; NaN where there is none."""
        if not self.facts.test:
            return np.full(len(self.correct), np.nan)
        return np.asarray(self.correct[:, self.facts.validation :].mean(axis=1))

    def load(self) -> None:
        """Read everything that searches use, so that forked processes share it."""
        _ = self.gold, self.answers, self.offered, self.shown, self.tokens
        _ = self.validation, self.test

    @property
    def tasks(self) -> tuple[str, ...]:
        """The ids of the validation tasks, in the order of their columns."""
        width = max(3, len(str(self.facts.validation - 1)))
        return tuple(f"{self.facts.set}-{n:0{width}}" for n in range(self.facts.validation))

    @property
    def starts(self) -> tuple[str, ...]:
        """The starting harnesses."""
        return STARTS

    def _read(self, name: str) -> Any:
        try:
            return self._arrays[name]
        except _DAMAGED as error:
            raise InputError(f"{self._name}: the array {name!r} is damaged.") from error

    def _array(self, name: str, *, packed: bool = False) -> Any:
        """An array of harnesses x tasks, or of tasks."""
        found = self._read(name)
        tasks = self.facts.validation + self.facts.test
        columns = -(-tasks // 8) if packed else tasks
        wanted = (columns,) if name == "gold" else (len(self.keys), columns)
        if found.shape != wanted:
            raise InputError(
                f"{self._name}: the array {name!r} has the shape {found.shape}, but {wanted} "
                "follows from the other arrays; the table is damaged."
            )
        return found

    def _flags(self, name: str) -> Flags:
        packed = self._array(name, packed=True)
        count = self.facts.validation + self.facts.test
        return np.unpackbits(packed, axis=1, count=count).astype(bool)


def table_arrays(
    facts: TableFacts, gold: NDArray[np.uint8], rows: Mapping[str, Evaluated]
) -> dict[str, Any]:
    """The arrays of a table.

    Args:
        facts: What the table is of.
        gold: The number of the right label of every task.
        rows: The harnesses of all filled stages.
    """
    listed = list(rows.values())
    about = {name: getattr(facts, name) for name in _FACTS if name != "schema"}
    arrays: dict[str, Any] = {
        "facts": np.frombuffer(json.dumps({"schema": SCHEMA, **about}).encode(), np.uint8),
        "keys": np.array(list(rows)),
        "gold": gold,
        "learning": np.array([row.learning for row in listed], np.uint32),
    }
    for name in ("answers", "tokens_in", "tokens_out"):
        arrays[name] = np.stack([getattr(row, name) for row in listed])
    for name in ("correct", "offered", "shown"):
        arrays[name] = np.packbits(np.stack([getattr(row, name) for row in listed]), axis=1)
    return arrays


def save(file: Path, arrays: Mapping[str, Any]) -> None:
    """Write a table; it has its name only when it is complete."""
    new = file.with_name(f"{file.name}.new")
    with new.open("wb") as target:
        np.savez_compressed(target, **arrays)
    new.replace(file)
