"""A set of the user's own: a folder with train, val and maybe test, and maybe its words."""

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coevolve.benchmarks.textclass.prompts import LABEL, TaskText, labelled, open_ended
from coevolve.benchmarks.textclass.rows import Row, read_bytes, read_rows
from coevolve.benchmarks.textclass.sets import SPLITS
from coevolve.errors import ConfigError, nearest

WORDS = ("task.toml", "task.json")
KEYS = ("instructions", "labels")


def read_own(folder: Path) -> tuple[TaskText, dict[str, tuple[Row, ...]]]:
    """The words and the splits of a folder; a test may be left out.

    `task.toml` or `task.json` may give `instructions` and `labels`. Without labels, the answers
    of train are the labels; an empty list says that answers are open.
    """
    splits = {
        split: read_rows(read_bytes(path), path)
        for split in SPLITS
        if (path := folder / f"{split}.jsonl").exists() or split != "test"
    }
    return _words(folder, splits), splits


def train_labels(rows: Sequence[Row]) -> tuple[str, ...]:
    """The distinct answers of some rows, in alphabetical order."""
    return tuple(sorted({row.answer for row in rows}))


def _words(folder: Path, splits: dict[str, tuple[Row, ...]]) -> TaskText:
    there = [folder / name for name in WORDS if (folder / name).exists()]
    if len(there) > 1:
        raise ConfigError(f"{folder} has both {' and '.join(WORDS)}; keep one of them.")
    given = _read(there[0]) if there else {}
    instructions = given.get("instructions", LABEL)
    labels = given.get("labels")
    if labels is None:
        return labelled(instructions, train_labels(splits["train"]))
    if not labels:
        return open_ended(instructions)
    _check_answers(folder, splits, labels)
    return labelled(instructions, labels)


def _read(path: Path) -> dict[str, Any]:
    text = read_bytes(path)
    try:
        loads = tomllib.loads if path.suffix == ".toml" else json.loads
        given = loads(text.decode())
    except ValueError as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    if not isinstance(given, dict):
        raise ConfigError(f"{path} must be an object, got a {type(given).__name__}.")
    for key in given:
        if key not in KEYS:
            raise ConfigError(
                f"{path}: there is no key {key!r}; it may have {' and '.join(KEYS)}."
                + nearest(key, KEYS)
            )
    _check_values(given, path)
    return given


def _check_values(given: dict[str, Any], path: Path) -> None:
    instructions = given.get("instructions", LABEL)
    if not isinstance(instructions, str) or not instructions.strip():
        raise ConfigError(f"{path}: instructions must be a text, got {instructions!r}.")
    labels = given.get("labels", [])
    texts = isinstance(labels, list) and all(isinstance(label, str) and label for label in labels)
    if not texts or len(set(labels)) < len(labels):
        raise ConfigError(f"{path}: labels must be a list of distinct texts, got {labels!r:.200}.")


def _check_answers(
    folder: Path, splits: dict[str, tuple[Row, ...]], labels: Sequence[str]
) -> None:
    """An answer that is no label is a slip: nobody could ever be right about it."""
    known = set(labels)
    for split, rows in splits.items():
        for row in rows:
            if row.answer not in known:
                raise ConfigError(
                    f"{folder / f'{split}.jsonl'}: the answer {row.answer!r} is none of the "
                    f"{len(labels)} labels.{nearest(row.answer, labels)}"
                )
