"""Sets read from files, and files that are refused."""

import json
import shutil
from pathlib import Path

import pytest

from coevolve.benchmarks.textclass.data_sets import data_folder, load_set, shuffled
from coevolve.errors import ConfigError
from tests.benchmarks.textclass.files import ANIMALS, PUBLISHED, needs_published, write_set


def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    found = load_set(str(write_set(tmp_path / "animals")))
    assert found.name == "animals"
    assert [(row.question, row.answer) for row in found.val] == ANIMALS["val"]
    assert found.words.labels == ("cat", "dog")
    assert found.evaluate(" Cat.", "cat").correct
    assert "It meows." in found.words.prompt("It meows.")


def test_the_words_of_ones_own_set(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "animals")
    (folder / "task.toml").write_text(
        'instructions = "Which pet?"\nlabels = ["dog", "cat", "eel"]'
    )
    words = load_set(str(folder)).words
    assert (words.instructions, words.labels) == ("Which pet?", ("dog", "cat", "eel"))
    assert words.template.startswith("Which pet?")
    assert "dog, cat, eel" in words.template


def test_labels_that_are_not_listed(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "animals")
    (folder / "task.json").write_text(json.dumps({"instructions": "Which?", "labels": []}))
    words = load_set(str(folder)).words
    assert words.labels is None
    assert words.prompt("It meows.") == "Which?\n\nIt meows."


def test_a_set_needs_no_test(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "animals")
    (folder / "test.jsonl").unlink()
    assert load_set(str(folder)).test == ()


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("val.jsonl", "", r"val.jsonl has no rows"),
        ("val.jsonl", '{"question": "a", "answer": "b"}\n{oops\n', r"val.jsonl, line 2: not JSON"),
        ("val.jsonl", "[1]\n", r"val.jsonl, line 1: must be an object, got a list"),
        ("train.jsonl", '{"question": "a"}\n', r"train.jsonl, line 1: 'answer' must be a text"),
        ("train.jsonl", '\n{"question": 7, "answer": "b"}', r"line 2: 'question' .*, got 7"),
        ("train.jsonl", '{"question": "a", "answer": " "}', r"line 1: 'answer' .* not empty"),
        ("train.jsonl", "[" * 100_000, r"line 1: not JSON"),
        ("task.toml", 'instuctions = "x"', r"unknown key 'instuctions'.*mean 'instructions'"),
        ("task.toml", "labels = 3", r"labels must be a list of distinct texts, got 3"),
        ("task.toml", 'labels = ["cat", "cat"]', r"distinct texts"),
        ("task.toml", "instructions = 3", r"instructions must be a text, got 3"),
        ("task.toml", 'labels = ["cat", "dogs"]', r"the answer 'dog' is not one of the 2 labels"),
        ("task.toml", "= 3", r"task.toml cannot be read"),
        ("task.json", "[]", r"task.json must be an object"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(
    tmp_path: Path, file: str, text: str, message: str
) -> None:
    folder = write_set(tmp_path / "animals")
    (folder / file).write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_set(str(folder))


def test_bytes_that_are_no_text_are_named_with_their_line(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "animals")
    (folder / "val.jsonl").write_bytes(b'{"question": "a", "answer": "b"}\n\xff\n')
    with pytest.raises(ConfigError, match=r"val.jsonl, line 2: not UTF-8"):
        load_set(str(folder))


def test_a_folder_without_its_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*train.jsonl: No such file"):
        load_set(str(tmp_path))


def test_the_set_that_comes_with_the_package() -> None:
    found = load_set("service-desk")
    assert found.name == "service-desk"
    assert (len(found.train), len(found.val), len(found.test)) == (192, 96, 120)
    assert found.words.labels is not None
    assert set(found.words.labels) == {row.answer for row in found.train} == found.labels
    assert len(found.labels) == 24


def test_an_unknown_name() -> None:
    with pytest.raises(ConfigError, match=r"no set 'usptoo'.*Did you mean 'uspto'"):
        load_set("usptoo")


def test_a_set_that_was_not_fetched_says_how(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Download it with `coevolve data get law`"):
        load_set("law", tmp_path)


@needs_published
def test_a_file_with_other_bytes_is_refused(tmp_path: Path) -> None:
    shutil.copytree(PUBLISHED / "s2d", tmp_path / "s2d")
    val = tmp_path / "s2d" / "val.jsonl"
    val.write_bytes(val.read_bytes().replace(b"I ", b"We ", 1))
    with pytest.raises(ConfigError) as caught:
        load_set("s2d", tmp_path)
    for part in (str(val), "should be f6ad74be", " and is ", "`coevolve data get s2d`"):
        assert part in str(caught.value)


def test_the_cache_is_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COEVOLVE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "general"))
    assert data_folder() == tmp_path / "general" / "coevolve" / "data" / "textclass"
    monkeypatch.setenv("COEVOLVE_CACHE", str(tmp_path / "own"))
    assert data_folder() == tmp_path / "own" / "data" / "textclass"


def test_the_order_is_one_of_all_rows_and_depends_on_the_seed() -> None:
    assert sorted(shuffled(50, seed=42)) == list(range(50))
    assert shuffled(50, seed=42) != shuffled(50, seed=7)
