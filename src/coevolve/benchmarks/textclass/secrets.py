"""Rows that candidates must not know by heart, and those they may quote."""

import json
from collections.abc import Mapping, Sequence

from coevolve.benchmarks.textclass.data import DataSet
from coevolve.benchmarks.textclass.rows import Row
from coevolve.search.candidate import Files
from coevolve.search.leaks import Secret

_REPEATED = 0.1
"""Share of a set's answers that may occur twice before they count as labels."""


def secret_of(data: DataSet, row: Row) -> Secret:
    """What a row asks; its answer too, unless that is a label, of which anybody may speak."""
    return Secret(text=row.question, answer=row.answer if has_open_answers(data) else "")


def has_open_answers(data: DataSet) -> bool:
    """Whether hardly any two rows of a set have the same answer."""
    rows = data.train + data.val + data.test
    return data.words.labels is None and len(data.labels) >= (1 - _REPEATED) * len(rows)


def quotable_files(sets: Sequence[DataSet]) -> Files:
    """What harnesses are given anyway: the training rows and the words of each set."""
    return {
        f"{data.name}/{name}": json.dumps(content, ensure_ascii=False, indent=0).encode()
        for data in sets
        for name, content in _given(data).items()
    }


def _given(data: DataSet) -> Mapping[str, object]:
    rows = [{"question": row.question, "answer": row.answer} for row in data.train]
    return {"train.json": rows, "task.json": data.words.to_json()}
