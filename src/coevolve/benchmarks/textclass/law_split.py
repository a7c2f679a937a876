"""The Law set, made anew from the file of LawBench it was drawn from.

Task 3-3 of LawBench has 500 rows. The published split shuffles their numbers with Python's
generator at seed 42; the first 200 are train, the next 50 val, the next 100 test, and the last
150 are not used. Each row is written as one line of JSON with its characters as they are.
"""

import json
import random
from typing import Any

from coevolve.errors import ConfigError

ROWS = 500
SEED = 42
PARTS = {"train": slice(0, 200), "val": slice(200, 250), "test": slice(250, 350)}


def law_split(data: bytes, name: str) -> dict[str, bytes]:
    """The files of the Law set by split.

    Args:
        data: The bytes of LawBench's `3-3.json`.
        name: Where they are from, for messages.
    """
    rows = _rows(data, name)
    order = list(range(ROWS))
    random.Random(SEED).shuffle(order)  # Python's own generator: the recipe names it
    return {
        split: "".join(_line(rows[number]) for number in order[part]).encode()
        for split, part in PARTS.items()
    }


def _line(row: dict[str, Any]) -> str:
    return f"{json.dumps(row, ensure_ascii=False)}\n"


def _rows(data: bytes, name: str) -> list[dict[str, Any]]:
    try:
        rows = json.loads(data.decode("utf-8-sig"))
    except ValueError as error:
        raise ConfigError(f"{name} is no JSON: {error}.") from error
    if not isinstance(rows, list) or len(rows) != ROWS:
        got = f"{len(rows)} rows" if isinstance(rows, list) else f"a {type(rows).__name__}"
        raise ConfigError(f"{name} must be a list of {ROWS} rows, got {got}.")
    return rows
