"""Sets ready for use: their words, their rows and their evaluator."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from coevolve.benchmarks.textclass import prompts
from coevolve.benchmarks.textclass.checksums import check_bytes
from coevolve.benchmarks.textclass.evaluators import (
    CHARGE_PREFIX,
    Evaluator,
    evaluate_label,
    evaluate_law,
    evaluate_s2d,
    evaluate_uspto,
)
from coevolve.benchmarks.textclass.own import read_own, train_labels
from coevolve.benchmarks.textclass.prompts import TaskText
from coevolve.benchmarks.textclass.rows import Row, read_bytes, read_rows
from coevolve.benchmarks.textclass.sets import KNOWN, SHIPPED, SPLITS, KnownSet
from coevolve.errors import ConfigError, nearest
from coevolve.models.folders import cache_folder

Rows = tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """One set of questions.

    Args:
        name: The name of its pool, with which the ids of its tasks begin.
        words: What candidates are told of it.
        train: Rows to learn from, in the order of the file; so are the others.
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
    """Where `coevolve data get` keeps the published sets."""
    return cache_folder() / "data" / "textclass"


def shipped_folder() -> Path:
    """Where the set that comes with the package is."""
    return Path(__file__).parent / SHIPPED.replace("-", "_")


def load_set(entry: str, data: Path | None = None) -> DataSet:
    """A set by its name, or from a folder of the user's own.

    Args:
        entry: A known name, or the path of a folder with train.jsonl and val.jsonl.
        data: The folder that has the published sets, each in a folder with its name; where
            `coevolve data get` keeps them when left out.
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
    """The numbers of rows in the order in which they are used.

    Python's own generator, since published results use the order it gives: each split is
    shuffled by a generator of its own with the same seed.

    >>> shuffled(5, seed=42)
    [3, 1, 2, 4, 0]
    """
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return order


def read_known(known: KnownSet, folder: Path) -> dict[str, Rows]:
    """The rows of a published set; files that are missing or not the published ones are refused.

    Args:
        known: The set.
        folder: The folder with its three files.
    """
    again = f"`coevolve data get {known.name}` fetches it"
    splits = {}
    for split in SPLITS:
        path = folder / f"{split}.jsonl"
        if not path.exists():
            raise ConfigError(
                f"the set {known.name} is not in {folder}: there is no {path.name}. {again}, and "
                "`data` in the configuration names another folder."
            )
        data = read_bytes(path)
        check_bytes(data, known.checksums[split], str(path), f"{again} again.")
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
