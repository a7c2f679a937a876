"""Data sets, published or from the user: rows, labels and evaluator."""

import json
import random
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coevolve.benchmarks.textclass import task_texts as prompts
from coevolve.benchmarks.textclass.evaluators import (
    CHARGE_PREFIX,
    Evaluator,
    evaluate_label,
    evaluate_law,
    evaluate_s2d,
    evaluate_uspto,
)
from coevolve.benchmarks.textclass.published_sets import (
    KNOWN,
    SHIPPED,
    SPLITS,
    KnownSet,
    check_bytes,
)
from coevolve.benchmarks.textclass.task_texts import LABEL, TaskText, labelled, open_ended
from coevolve.errors import ConfigError, nearest
from coevolve.models.response_cache import cache_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A question and its right answer."""

    question: str
    answer: str


def read_bytes(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        ConfigError: It cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}.") from error


def read_rows(data: bytes, path: Path, answer: str = "answer") -> tuple[Row, ...]:
    """The rows in the bytes of a file; an error names the line.

    Args:
        data: The bytes.
        path: The file, for messages.
        answer: The field of the right answer.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8. Save the file as UTF-8.") from error
    # A text may contain other line breaks, at which splitlines would cut.
    lines = enumerate(text.split("\n"), start=1)
    rows = tuple(_row(line, f"{path}, line {n}", answer) for n, line in lines if line.strip())
    if not rows:
        raise ConfigError(f"{path} has no rows.")
    return rows


def _row(line: str, where: str, answer: str) -> Row:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: not JSON ({error}). Each line must be one object.") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: must be an object, got a {type(value).__name__}.")
    for field in ("question", answer):
        got = value.get(field)
        if not isinstance(got, str) or not got.strip():
            have = "nothing" if field not in value else repr(got)[:80]
            raise ConfigError(f"{where}: {field!r} must be a text that is not empty, got {have}.")
    return Row(question=value["question"], answer=value[answer])


WORDS = ("task.toml", "task.json")
KEYS = ("instructions", "labels")


def read_own(folder: Path) -> tuple[TaskText, dict[str, tuple[Row, ...]]]:
    """The texts and the splits of a folder; the test split is optional.

    `task.toml` or `task.json` may have `instructions` and `labels`. Without labels, the answers
    of train are the labels; an empty list means open answers.
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
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    if not isinstance(given, dict):
        raise ConfigError(f"{path} must be an object, got a {type(given).__name__}.")
    for key in given:
        if key not in KEYS:
            raise ConfigError(
                f"{path}: unknown key {key!r}; it may have {' and '.join(KEYS)}."
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
    """Refuse an answer that is not a label: no prediction could be right."""
    known = set(labels)
    for split, rows in splits.items():
        for row in rows:
            if row.answer not in known:
                raise ConfigError(
                    f"{folder / f'{split}.jsonl'}: the answer {row.answer!r} is not one of the "
                    f"{len(labels)} labels.{nearest(row.answer, labels)}"
                )


Rows = tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """One set of questions.

    Args:
        name: The name of its pool; the ids of its tasks begin with it.
        words: Its texts for candidates.
        train: Rows to learn from; all rows are in the order of their file.
        val: Rows of the validation tasks.
        test: Rows of the sealed test; none if there is no test.
        evaluate: Whether an answer is right.
    """

    name: str
    words: TaskText
    train: Rows
    val: Rows
    test: Rows
    evaluate: Evaluator

    @property
    def labels(self) -> frozenset[str]:
        """Distinct answers in all splits."""
        return frozenset(row.answer for row in self.train + self.val + self.test)


def data_folder() -> Path:
    """The folder in which `coevolve data get` stores the published sets."""
    return cache_folder() / "data" / "textclass"


def shipped_folder() -> Path:
    """The folder of the set that is included in the package."""
    return Path(__file__).parent / SHIPPED.replace("-", "_")


def load_set(entry: str, data: Path | None = None) -> DataSet:
    """A set by its name or folder.

    Args:
        entry: A known name, or the path of a folder with train.jsonl and val.jsonl.
        data: The folder with the published sets, each in a folder with its name; by default the
            folder of `coevolve data get`.
    """
    if entry in KNOWN:
        return _known(KNOWN[entry], data or data_folder())
    folder = shipped_folder() if entry == SHIPPED else Path(entry).expanduser()
    if not folder.is_dir():
        names = [*KNOWN, SHIPPED]
        raise ConfigError(
            f"there is no set {entry!r}: it is neither a folder nor one of {', '.join(names)}."
            + nearest(entry, names)
        )
    words, splits = read_own(folder)
    name = SHIPPED if entry == SHIPPED else folder.resolve().name
    return _set(name, words, splits, evaluate_label)


def shuffled(count: int, seed: int) -> list[int]:
    """The order in which rows are used, by number.

    Published results use the order of Python's generator. Each split is shuffled by a new
    generator with the same seed.

    >>> shuffled(5, seed=42)
    [3, 1, 2, 4, 0]
    """
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return order


def read_known(known: KnownSet, folder: Path) -> dict[str, Rows]:
    """The rows of a published set, if its files are the published ones.

    Args:
        known: The set.
        folder: The folder with its three files.
    """
    download = f"Download it with `coevolve data get {known.name}`"
    splits = {}
    for split in SPLITS:
        path = folder / f"{split}.jsonl"
        if not path.exists():
            raise ConfigError(
                f"the set {known.name} is not in {folder}: there is no {path.name}. {download}, "
                "or set `data` to the folder that has it."
            )
        data = read_bytes(path)
        check_bytes(data, known.checksums[split], str(path), f"{download}.")
        splits[split] = read_rows(data, path, known.answer)
    return splits


def _known(known: KnownSet, data: Path) -> DataSet:
    splits = read_known(known, data.expanduser() / known.name)
    if known.name == "law":
        splits = {split: tuple(map(_bare, rows)) for split, rows in splits.items()}
    words: dict[str, Callable[[], TaskText]] = {
        "uspto": prompts.uspto,
        "s2d": lambda: prompts.s2d(train_labels(splits["train"])),
        "law": prompts.law,
    }
    evaluators = {"uspto": evaluate_uspto, "s2d": evaluate_s2d, "law": evaluate_law}
    return _set(known.name, words[known.name](), splits, evaluators[known.name])


def _set(name: str, words: TaskText, splits: dict[str, Rows], evaluate: Evaluator) -> DataSet:
    return DataSet(
        name=name,
        words=words,
        train=splits["train"],
        val=splits["val"],
        test=splits.get("test", ()),
        evaluate=evaluate,
    )


def _bare(row: Row) -> Row:
    return Row(question=row.question, answer=row.answer.removeprefix(CHARGE_PREFIX))
