"""A harness that looks for answers everywhere finds those it was given."""

import json
import re
from pathlib import Path

import pytest

from coevolve.benchmarks.textclass import TextClassification
from coevolve.executors.isolation import find_isolation
from coevolve.models.model_client import StubModel
from tests.benchmarks.textclass.files import write_set
from tests.benchmarks.textclass.workbench import COPY, at_work

needs_bwrap = pytest.mark.skipif(
    find_isolation("auto").name != "bwrap", reason="only bwrap hides files: it does not work here"
)

SPY = '''
import ctypes, json, os, re

SECRET = re.compile(rb"zq7-" + rb"(?:train|val|test)-(?:question|answer)-[0-9]+")


class Spy:
    def __init__(self, model, task):
        self.model, self.task, self.found = model, task, set()

    def learn(self, example):
        self.look()

    def predict(self, question):
        self.look()
        return json.dumps({"found": sorted(self.found), "files": self.files()})

    def state(self):
        return sorted(self.found)

    def restore(self, state):
        self.found = set(state)

    def look(self):
        self.search(json.dumps(dict(os.environ)).encode())
        self.memory()

    def memory(self):
        """All of this process, which is all that a candidate can read."""
        with open("/proc/self/maps") as maps:
            areas = [line.split() for line in maps]
        for place, rights, *_ in areas:
            start, end = (int(part, 16) for part in place.split("-"))
            if rights.startswith("rw") and end - start < 64 << 20:
                self.search(ctypes.string_at(start, end - start))

    def files(self):
        """Files with rows of a set, and what is in the folders that may have some."""
        found = []
        for root, folders, names in os.walk("/"):
            if root in ("/proc", "/sys", "/dev"):
                folders[:] = []
            found += [os.path.join(root, name) for name in names if name.endswith(".jsonl")]
            found += [os.path.join(root, name) for name in folders if name == "service_desk"]
        for pid in filter(str.isdigit, os.listdir("/proc")):
            for name in ("cmdline", "environ"):
                try:
                    with open(f"/proc/{pid}/{name}", "rb") as file:
                        self.search(file.read())
                except OSError:
                    continue
        for path in found:
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    self.search(file.read())
        return found

    def search(self, data):
        self.found.update(match.decode() for match in SECRET.findall(data))
'''


def secrets(split: str) -> list[tuple[str, str]]:
    return [(f"zq7-{split}-question-{n}", f"zq7-{split}-answer-{n}") for n in range(4)]


def build(folder: Path) -> TextClassification:
    sets = {split: secrets(split) for split in ("train", "val", "test")}
    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / "harness.py").write_text(COPY)
    task = write_set(folder / "secret", sets)
    (task / "task.json").write_text(json.dumps({"instructions": "Find it.", "labels": []}))
    return TextClassification(
        [str(task)], starts=[str(folder / "one"), str(folder / "two")], host=StubModel()
    )


@needs_bwrap
def test_a_harness_sees_train_and_the_question_it_is_asked(tmp_path: Path) -> None:
    benchmark = build(tmp_path)
    given = {text for row in secrets("train") for text in row}
    with at_work(benchmark, SPY) as harness:
        assert set(harness.state["secret"]) == given  # so the search finds what is there
        for task in ("secret-000", "secret-001"):
            trace = benchmark.run(harness, task, 0).trace
            assert isinstance(trace, dict)
            seen = json.loads(trace["answer"])
            earlier = {row[0] for row in secrets("val")[:2]}
            assert set(seen["found"]) - given <= earlier
            assert f"zq7-val-question-{task[-1]}" in seen["found"]
            assert seen["files"] == []


@needs_bwrap
def test_a_harness_that_sees_a_test_question_cannot_tell_anybody(tmp_path: Path) -> None:
    benchmark = build(tmp_path)
    shout = SPY.replace("return json.dumps", "print(question); return json.dumps")
    with at_work(benchmark, shout) as harness:
        score = benchmark.run_test(harness, "secret-test-002", 0)
        kept = json.dumps(score.trace) + harness.printed
        assert not re.search("zq7", kept)


def test_nothing_of_val_or_test_is_passed_before_it_is_asked(tmp_path: Path) -> None:
    benchmark = build(tmp_path)
    passed: list[str] = []
    with at_work(benchmark, COPY, prepared=False) as harness:
        call = harness.call

        def noted(function: str, /, *args: object, **named: object) -> object:
            named.pop("services", None)
            named.pop("returns", None)
            passed.append(json.dumps([function, args, named]))
            return call(function, *args, **named)

        harness.call = noted  # type: ignore[method-assign]
        harness.state = benchmark.prepare(harness)
    words = " ".join(passed)
    assert all(answer in words for row in secrets("train") for answer in row)
    assert not any(
        text in words for split in ("val", "test") for r in secrets(split) for text in r
    )
