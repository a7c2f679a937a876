"""What proposers are told of text classification."""

import inspect
import re
from pathlib import Path

import pytest

from coevolve.benchmarks.base import briefing_of
from coevolve.benchmarks.textclass import TextClassification
from coevolve.benchmarks.textclass.harness_check import Mode
from coevolve.benchmarks.textclass.inside.interface import Model, Task
from coevolve.executors.isolation import Limits
from coevolve.models.model_client import StubModel
from tests.benchmarks.textclass.files import PUBLISHED, needs_published, write_set
from tests.benchmarks.textclass.workbench import at_work


def test_the_harness_in_the_briefing_is_one(tmp_path: Path) -> None:
    folder = str(write_set(tmp_path / "animals"))
    benchmark = TextClassification([folder], host=StubModel())
    (source,) = re.findall(r"```python\n(.*?)```", briefing_of(benchmark), re.DOTALL)
    with at_work(benchmark, source, prepared=False) as harness:
        benchmark.check(harness)


def test_all_of_the_interface_is_told() -> None:
    told = TextClassification().briefing
    for kind, name in ((Model, "model"), (Task, "task")):
        for member in vars(kind):
            if not member.startswith("_"):
                assert f"`{name}.{member}" in told, member
    for option in inspect.signature(Model.__call__).parameters.values():
        if option.kind is option.KEYWORD_ONLY:
            assert f"{option.name}=" in told
    assert f"may take {Limits().seconds:g} seconds" in told
    assert not re.search(r"\b[A-Z]{4,}\b", told.replace("JSON", "").replace("SMILES", ""))


@pytest.mark.parametrize(
    ("mode", "words"),
    [("offline", "comes with its answer"), ("online", "`predict` is called first")],
)
def test_the_mode_is_told(mode: Mode, words: str) -> None:
    assert words in TextClassification(mode=mode).briefing


@needs_published
def test_the_sets_are_told_in_general_terms() -> None:
    told = TextClassification(["uspto", "s2d", "law"], data=PUBLISHED).briefing
    assert "has all 22 answers: allergy, arthritis" in told
    assert "50 training examples" in told
    assert "no answer is there twice" in told
    assert "`[罪名]` and `<eoa>`" in told
    assert "212" not in told, "nothing of the test"


def test_the_answers_of_an_open_set_are_not_listed(tmp_path: Path) -> None:
    rows = [(f"Case {n}?", f"answer {n}") for n in range(4)]
    folder = write_set(tmp_path / "open", {"train": rows, "val": rows[:2]})
    (folder / "task.toml").write_text('instructions = "Say it."\nlabels = []\n')
    told = TextClassification([str(folder)]).briefing
    assert "**open.** Say it. 4 training examples" in told
    assert "`task.labels` is None" in told
    assert "answer 3" not in told
