"""The published sets are the published ones."""

import hashlib

import pytest

from coevolve.benchmarks.textclass.data_sets import DataSet, load_set, shuffled
from coevolve.benchmarks.textclass.published_sets import KNOWN, SPLITS
from tests.benchmarks.textclass.files import PUBLISHED, needs_published

pytestmark = needs_published

LABELS = {"uspto": (50, 30, 100), "s2d": (22, 22, 22), "law": (143, 46, 83)}
"""Distinct answers in train, val and test."""


def load(name: str) -> DataSet:
    return load_set(name, PUBLISHED)


@pytest.mark.parametrize("name", KNOWN)
def test_sizes_label_counts_and_checksums(name: str) -> None:
    found, known = load(name), KNOWN[name]
    splits = (found.train, found.val, found.test)
    assert tuple(map(len, splits)) == tuple(known.rows[split] for split in SPLITS)
    assert tuple(len({row.answer for row in rows}) for rows in splits) == LABELS[name]
    assert len(found.labels) == known.labels
    for split in SPLITS:
        data = (PUBLISHED / name / f"{split}.jsonl").read_bytes()
        assert hashlib.sha256(data).hexdigest() == known.checksums[split]


def test_all_three_have_130_validation_and_412_test_rows() -> None:
    assert sum(known.rows["val"] for known in KNOWN.values()) == 130
    assert sum(known.rows["test"] for known in KNOWN.values()) == 412


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("uspto", ["CCOC(=O)c1c(OC)cc(-c2cnc(OC)c(OC)c2)nc1C.O=C1CCC(=O)N1Br"]),
        ("s2d", ["bronchial asthma", "varicose veins", "hypertension"]),
        ("law", ["单位行贿", "销售假冒注册商标的商品"]),
    ],
)
def test_validation_begins_as_in_published_runs(name: str, first: list[str]) -> None:
    val = load(name).val
    assert [val[row].answer for row in shuffled(len(val), seed=42)][: len(first)] == first


def test_the_law_rows_are_as_described() -> None:
    law = load("law")
    splits = (law.train, law.val, law.test)
    assert [sum(";" in row.answer for row in rows) for rows in splits] == [63, 18, 34]
    charges = {charge for rows in splits for row in rows for charge in row.answer.split(";")}
    assert len(charges) == 172
    assert not any(row.answer.startswith("罪名") for rows in splits for row in rows)
    assert not any(row.answer.endswith("罪") for rows in splits for row in rows)
    known = {row.answer for row in law.train}
    assert sum(row.answer not in known for row in law.val) == 29
    assert sum(row.answer not in known for row in law.test) == 55
    assert sum("、" in row.answer and ";" not in row.answer for row in law.val) == 11


def test_the_answers_of_every_set_are_right() -> None:
    for name in KNOWN:
        found = load(name)
        assert all(found.evaluate(row.answer, row.answer).correct for row in found.val)
        assert not any(found.evaluate("", row.answer).correct for row in found.val)


def test_only_diagnoses_come_with_a_list_of_labels() -> None:
    assert load("uspto").words.labels is None
    assert load("law").words.labels is None
    labels = load("s2d").words.labels
    assert labels is not None
    assert set(labels) == {row.answer for row in load("s2d").test}
