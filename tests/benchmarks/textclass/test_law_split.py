"""The Law files, made anew from LawBench."""

import hashlib
import json
import random
from typing import Any

import pytest

from coevolve.benchmarks.textclass.published_sets import KNOWN, SPLITS, law_split
from coevolve.errors import ConfigError
from tests.benchmarks.textclass.files import PUBLISHED, needs_published


def lawbench() -> bytes:
    """LawBench's file with the published rows in their places and others filled in."""
    rows: list[dict[str, Any]] = [{"question": f"{n}", "answer": "x"} for n in range(500)]
    order = list(range(500))
    random.Random(42).shuffle(order)
    published = [
        json.loads(line)
        for split in SPLITS
        for line in (PUBLISHED / "law" / f"{split}.jsonl").read_text().split("\n")[:-1]
    ]
    for place, row in zip(order, published, strict=False):
        rows[place] = row
    return json.dumps(rows, ensure_ascii=False, indent=2).encode()


@needs_published
def test_the_recipe_gives_the_published_bytes() -> None:
    files = law_split(lawbench(), "3-3.json")
    for split in SPLITS:
        assert hashlib.sha256(files[split]).hexdigest() == KNOWN["law"].checksums[split]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"not json", "3-3.json is not JSON"),
        (b"\xff\xfe", "3-3.json is not JSON"),
        (b"[{}]", "3-3.json must be a list of 500 rows, got 1 rows"),
        (b"{}", "3-3.json must be a list of 500 rows, got a dict"),
    ],
)
def test_another_file_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        law_split(data, "3-3.json")
