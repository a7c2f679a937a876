"""The set that comes with the package is balanced, without doubles, and not easy."""

import hashlib
import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from coevolve.benchmarks.textclass.data_sets import DataSet, Row, load_set, shipped_folder
from coevolve.benchmarks.textclass.published_sets import SHIPPED

PER_LABEL = {"train": 8, "val": 4, "test": 5}
CHECKSUMS = {
    "train": "4a56496452266cf3a6ecc186ec144b923a0d1da12db95ec8bf4b8346ef486b10",
    "val": "6c1814afe30905ca8da781271046649c12336e3debabf44d37043d462b677558",
    "test": "dda0aa5eeeaffe0291247ef36732f5673e63f755b7f36a948544f1cdfa589b41",
}
"""Published numbers are about these bytes: changed rows make another set."""
KINDS: dict[str, dict[str, Any]] = {
    "words": {"ngram_range": (1, 2)},
    "characters": {"analyzer": "char_wb", "ngram_range": (3, 5)},
}


@pytest.fixture(scope="module")
def desk() -> DataSet:
    return load_set(SHIPPED)


def rows(desk: DataSet, split: str) -> tuple[Row, ...]:
    found: tuple[Row, ...] = getattr(desk, split)
    return found


def words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9']+", text.lower()))


@pytest.mark.parametrize("split", PER_LABEL)
def test_every_label_has_the_same_number_of_rows(desk: DataSet, split: str) -> None:
    counts = Counter(row.answer for row in rows(desk, split))
    assert set(counts) == desk.labels
    assert len(counts) == 24
    assert set(counts.values()) == {PER_LABEL[split]}


@pytest.mark.parametrize("split", PER_LABEL)
def test_the_files_are_the_ones_that_were_measured(split: str) -> None:
    data = (shipped_folder() / f"{split}.jsonl").read_bytes()
    assert hashlib.sha256(data).hexdigest() == CHECKSUMS[split]
    for line in data.decode().splitlines():
        assert set(json.loads(line)) == {"question", "answer"}


def test_labels_are_short_names_and_all_of_them_are_told(desk: DataSet) -> None:
    assert all(re.fullmatch(r"[a-z]+( [a-z]+){0,2}", label) for label in desk.labels)
    assert set(desk.words.labels or ()) == desk.labels
    told = json.loads((shipped_folder() / "task.json").read_text())
    assert told == {
        "instructions": desk.words.instructions,
        "labels": list(desk.words.labels or ()),
    }


def test_messages_have_the_length_of_messages(desk: DataSet) -> None:
    for row in desk.train + desk.val + desk.test:
        assert 8 <= len(row.question.split()) <= 35, row.question


def test_no_message_says_nearly_the_same_as_another(desk: DataSet) -> None:
    """Neither within a split nor across splits: no more than half of their words are shared."""
    texts = [row.question for row in desk.train + desk.val + desk.test]
    assert len(set(texts)) == len(texts)
    for one, other in itertools.combinations(texts, 2):
        shared, all_words = words(one) & words(other), words(one) | words(other)
        assert len(shared) / len(all_words) < 0.5, (one, other)


def test_no_addresses_and_no_long_numbers(desk: DataSet) -> None:
    for row in desk.train + desk.val + desk.test:
        assert not re.search(r"\w@\w|://|www\.|\d{5,}", row.question), row.question


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("split", ["val", "test"])
def test_similar_messages_alone_do_not_solve_it(desk: DataSet, split: str, kind: str) -> None:
    assert 0.45 < _accuracy(desk, split, kind, _vote) < 0.65


def test_the_page_says_how_far_similarity_goes(desk: DataSet) -> None:
    page = (shipped_folder() / "README.md").read_text()
    table = re.findall(r"^\| (\w+) .*(words|characters) \| ([\d.]+) \| ([\d.]+) \|$", page, re.M)
    assert len(table) == 5
    for rule, kind, *said in table:
        label = {"nearest": _nearest, "vote": _vote, "sum": _sum}[rule]
        found = [f"{_accuracy(desk, split, kind, label):.2f}" for split in ("val", "test")]
        assert found == said, (rule, kind)


Rule = Callable[[list[float], tuple[Row, ...]], str]


def _accuracy(desk: DataSet, split: str, kind: str, label: Rule) -> float:
    """How often a rule is right that knows how similar the training rows are."""
    text = pytest.importorskip("sklearn.feature_extraction.text")
    index = text.TfidfVectorizer(sublinear_tf=True, **KINDS[kind])
    known = index.fit_transform([row.question for row in desk.train])
    asked = index.transform([row.question for row in rows(desk, split)])
    lines = (asked @ known.T).toarray().tolist()
    pairs = zip(rows(desk, split), lines, strict=True)
    right = [row.answer == label(line, desk.train) for row, line in pairs]
    return sum(right) / len(right)


def _nearest(alike: list[float], train: tuple[Row, ...]) -> str:
    """The label of the most similar row."""
    return train[max(range(len(alike)), key=alike.__getitem__)].answer


def _sum(alike: list[float], train: tuple[Row, ...]) -> str:
    """The label whose three most similar rows are the most similar together."""
    values: defaultdict[str, list[float]] = defaultdict(list)
    for row, value in zip(train, alike, strict=True):
        values[row.answer].append(value)
    return max(sorted(values), key=lambda label: sum(sorted(values[label])[-3:]))


def _vote(alike: list[float], train: tuple[Row, ...]) -> str:
    """The label that the seven most similar rows have, each as much as it is similar."""
    votes: defaultdict[str, float] = defaultdict(float)
    for position in sorted(range(len(alike)), key=lambda position: -alike[position])[:7]:
        votes[train[position].answer] += alike[position]
    return max(votes, key=votes.__getitem__)
