"""The published sets: the sources and checksums of their files.

Task 3-3 of LawBench has 500 rows. The published split shuffles their numbers with Python's
generator at seed 42; the first 200 are train, the next 50 val, the next 100 test, and the last
150 are not used. Each row is written as one line of JSON, without escapes.
"""

import hashlib
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coevolve.errors import ConfigError


class ChecksumError(ConfigError):
    """A file of a known set that differs from the published one."""


def check_bytes(data: bytes, expected: str, name: str, remedy: str) -> None:
    """Refuse bytes that are not the published ones.

    Args:
        data: The bytes of the file.
        expected: SHA-256 of the published file, in hex.
        name: The file, for the message.
        remedy: What to do, for the message.
    """
    got = hashlib.sha256(data).hexdigest()
    if got != expected:
        raise ChecksumError(
            f"{name} is not the published file: its SHA-256 should be {expected} and is {got}. "
            f"{remedy}"
        )


SPLITS = ("train", "val", "test")
SHIPPED = "service-desk"
"""The set that is included in the package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file or folder of a public repository at a commit."""

    repository: str
    commit: str
    path: str

    @property
    def address(self) -> str:
        """Its path on a server with files of repositories."""
        return f"{self.repository}/{self.commit}/{self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSet:
    """A published set.

    Args:
        name: Its name in configurations.
        title: Its title for people.
        answer: The field of the right answer.
        rows: Rows of each split.
        labels: Distinct answers in all splits together.
        checksums: SHA-256 of each split's file.
        folders: Where the files of the splits are published; the first that has them is used.
    """

    name: str
    title: str
    answer: str
    rows: Mapping[str, int]
    labels: int
    checksums: Mapping[str, str]
    folders: tuple[Source, ...]


def _meta_harness(folder: str) -> Source:
    return Source(
        repository="stanford-iris-lab/meta-harness",
        commit="95175f70c758dd1145b395edfe8b67e6f9d80fbd",
        path=f"reference_examples/text_classification/data/{folder}",
    )


def _context_engineering(folder: str) -> Source:
    return Source(
        repository="metaevo-ai/meta-context-engineering",
        commit="1cc26a065dd2198ba6360791b21f29d10996cbbb",
        path=f"env/{folder}/data",
    )


def _artifact(folder: str) -> Source:
    return Source(
        repository="metaevo-ai/mce-artifact",
        commit="0ff558d0f64ffe61b9af6fc62ec3fa8b5a1440c1",
        path=f"env/{folder}/data",
    )


LAWBENCH = Source(
    repository="open-compass/LawBench",
    commit="8053ec8dc45ffb894d21dab34e9821f688e90359",
    path="data/zero_shot/3-3.json",
)
"""The 500 rows from which `law_split` makes the Law set."""

KNOWN = {
    known.name: known
    for known in (
        KnownSet(
            name="uspto",
            title="USPTO-50k, reactants",
            answer="target",
            rows={"train": 50, "val": 30, "test": 100},
            labels=180,
            checksums={
                "train": "5049890cd908a5bbed4f635a2a68c51a8756d50fc09e7648ad4ebc36a295f6d6",
                "val": "824579221c59d1e71895620f539a05f978d8832e067a7956562612eebcdef2ed",
                "test": "e2730f05f215363687ec0c6a1f75ce808ed697749b181becdae62cd7991c67e4",
            },
            folders=(_meta_harness("uspto"), _artifact("uspto")),
        ),
        KnownSet(
            name="s2d",
            title="Symptom2Disease, diagnoses",
            answer="answer",
            rows={"train": 200, "val": 50, "test": 212},
            labels=22,
            checksums={
                "train": "b41e494b40bf971a1eadd79ed4dda527640916abe0a2dc94e047e13ef293ee4c",
                "val": "f6ad74bea9fb59f4a3abf930668042c33fbb7519bc9e2568a9758c2a0b1277e8",
                "test": "6a6b224665715f40d42a46eed82498698d39fa7689241eaae2cc2276e444671d",
            },
            folders=(
                _context_engineering("symptom_diagnosis"),
                _meta_harness("symptom_diagnosis"),
            ),
        ),
        KnownSet(
            name="law",
            title="LawBench 3-3, charges",
            answer="answer",
            rows={"train": 200, "val": 50, "test": 100},
            labels=215,
            checksums={
                "train": "36ead48b5e88e02f6bf5944d1c00c561f6592e5573f9ecf05c23affc111c386c",
                "val": "c5d900d64a7be5359579e4c2fc0b499f18ebbe9a96fee1ff43879d511bc992ea",
                "test": "a08a9aba4da6814fc0efdfc713814a2562f4ce1d174981d8d5823a126b99f6dc",
            },
            folders=(_meta_harness("crime_prediction"),),
        ),
    )
}


ROWS = 500
SEED = 42
PARTS = {"train": slice(0, 200), "val": slice(200, 250), "test": slice(250, 350)}


def law_split(data: bytes, name: str) -> dict[str, bytes]:
    """The files of the Law set by split.

    Args:
        data: The bytes of LawBench's `3-3.json`.
        name: Their source, for messages.
    """
    rows = _rows(data, name)
    order = list(range(ROWS))
    random.Random(SEED).shuffle(order)  # the published split uses Python's generator
    return {
        split: "".join(_line(rows[number]) for number in order[part]).encode()
        for split, part in PARTS.items()
    }


def _line(row: dict[str, Any]) -> str:
    return f"{json.dumps(row, ensure_ascii=False)}\n"


def _rows(data: bytes, name: str) -> list[dict[str, Any]]:
    try:
        rows = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name} is not JSON: {error}.") from error
    if not isinstance(rows, list) or len(rows) != ROWS:
        got = f"{len(rows)} rows" if isinstance(rows, list) else f"a {type(rows).__name__}"
        raise ConfigError(f"{name} must be a list of {ROWS} rows, got {got}.")
    return rows
