"""The briefing of text classification for proposers, and rows candidates must not quote."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import median

from coevolve.benchmarks.textclass.data_sets import DataSet, Row
from coevolve.benchmarks.textclass.evaluators import (
    Evaluator,
    evaluate_label,
    evaluate_law,
    evaluate_s2d,
    evaluate_uspto,
)
from coevolve.benchmarks.textclass.harness_check import Mode
from coevolve.executors.isolation import Limits
from coevolve.search.candidate import Files
from coevolve.search.leaks import Secret

_REPEATED = 0.1
"""Answers are labels if more than this share of them is repeated."""


def secret_of(data: DataSet, row: Row) -> Secret:
    """The question of a row, and its answer unless that is a label."""
    return Secret(text=row.question, answer=row.answer if has_open_answers(data) else "")


def has_open_answers(data: DataSet) -> bool:
    """Whether hardly any two rows of a set have the same answer."""
    rows = data.train + data.val + data.test
    return data.words.labels is None and len(data.labels) >= (1 - _REPEATED) * len(rows)


def quotable_files(sets: Sequence[DataSet]) -> Files:
    """What harnesses may quote, because they get it: training rows and the texts of each set."""
    return {
        f"{data.name}/{name}": json.dumps(content, ensure_ascii=False, indent=0).encode()
        for data in sets
        for name, content in _given(data).items()
    }


def _given(data: DataSet) -> Mapping[str, object]:
    rows = [{"question": row.question, "answer": row.answer} for row in data.train]
    return {"train.json": rows, "task.json": data.words.to_json()}


_MODES: Mapping[Mode, str] = {
    "offline": "Each comes with its answer; `example.prediction` and `example.correct` are None.",
    "online": (
        "For each question, `predict` is called first. Then `learn` gets the answer, with the "
        "prediction (`example.prediction`) and whether it was right (`example.correct`)."
    ),
}
_READ: Mapping[Evaluator, str] = {
    evaluate_uspto: (
        "the SMILES of the reactants, with a dot between two; right if they are the same texts, "
        "ignoring order and case"
    ),
    evaluate_s2d: (
        "the label; read between `[DIAGNOSIS]` and `[/DIAGNOSIS]`, or after `diagnosis:`, or "
        "else the whole answer, ignoring case, spaces and a final full stop"
    ),
    evaluate_law: (
        "the charges; read between `[罪名]` and `<eoa>`, or after the last `罪名:`, and split at "
        "the first of `;` `；` `,` `，` `、` in it; right if they are the same set of charges, "
        "written the same (`盗窃`, not `盗窃罪`)"
    ),
    evaluate_label: "the label alone, ignoring case, spaces and final punctuation",
}
_FEW = 40
"""Labels that are listed, at most; a longer list is only counted."""


def briefing(sets: Sequence[DataSet], mode: Mode) -> str:
    """What a harness is, its interface and rules, and the sets in general terms.

    It describes what harnesses get and what the training rows show, but no other rows.
    """
    limits = Limits()
    words = {
        "MODE": _MODES[mode],
        "SECONDS": f"{limits.seconds:g}",
        "MEMORY": str(limits.memory_mb),
        "START": f"{limits.startup_seconds:g}",
        "ASKS": str(limits.asks),
        "ANSWER": f"{limits.answer_mb:g}",
        "SETS": "\n\n".join(map(_described, sets)),
    }
    text = _template()
    for mark, word in words.items():
        text = text.replace(mark, word)
    return text


@cache
def _template() -> str:
    return Path(__file__).with_suffix(".md").read_text("utf-8")


def _described(data: DataSet) -> str:
    lengths = [len(row.question) for row in data.train]
    facts = [
        f"**{data.name}.** {data.words.instructions}",
        f"{len(data.train)} training examples; half of their questions are longer than "
        f"{median(lengths):,.0f} characters, the longest has {max(lengths):,}.",
        _answers(data),
        f"An answer is {_READ[data.evaluate]}. A JSON object in the answer with the key "
        "`final_answer` takes precedence.",
    ]
    return " ".join(facts)


def _answers(data: DataSet) -> str:
    labels = data.words.labels
    if labels is not None:
        listed = f": {', '.join(labels)}" if len(labels) <= _FEW else ""
        return f"`task.labels` has all {len(labels)} answers{listed}."
    seen = {row.answer for row in data.train}
    unlike = "no answer is there twice" if len(seen) == len(data.train) else "some repeat"
    return (
        f"`task.labels` is None: the training examples have {len(seen)} different answers "
        f"({unlike}), and other questions may have others."
    )
