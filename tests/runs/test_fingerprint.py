"""The fingerprint of a benchmark names the parts that can alter scores."""

import json
from pathlib import Path
from typing import Any

from coevolve.runs.building import build_benchmark
from coevolve.runs.config import RunConfig
from coevolve.runs.fingerprint import MOST_FILES, fingerprint

STARTS = ["starts/a", "starts/b"]


def parts(
    folder: Path,
    benchmark: dict[str, Any],
    known: dict[str, str] | None = None,
    **tables: Any,
) -> dict[str, str]:
    for start in STARTS:
        (folder / start).mkdir(parents=True, exist_ok=True)
        (folder / start / "harness.py").write_text(f"NAME = {start!r}\n")
    (folder / "propose.py").write_text("def propose(view, count): return []\n")
    config = RunConfig.from_json(
        {
            "search": {"rounds": 1},
            "benchmark": benchmark,
            "proposer": {"kind": "function", "file": "propose.py"},
            **tables,
        },
        folder=folder,
    )
    return fingerprint(config, folder, build_benchmark(config, folder), known=known)


def test_a_function_benchmark(tmp_path: Path) -> None:
    table = {"kind": "function", "file": "benchmark.py", "starts": STARTS}
    (tmp_path / "judge.py").write_text("A = 1\n")
    (tmp_path / "runs").mkdir()
    (tmp_path / "benchmark.py").write_text(
        "import judge\nTASKS = ['a']\nopen('runs')if 0 else 0\ndef evaluate(h, t): return 1\n"
    )
    before = parts(tmp_path, table)
    assert list(before) == ["benchmark.file", "benchmark.kind", "benchmark.py", "judge.py"]
    (tmp_path / "judge.py").write_text("A = 2\n")
    after = parts(tmp_path, table)
    assert {name for name in before if before[name] != after[name]} == {"judge.py"}


def test_what_a_benchmark_has_written_since_is_no_part_of_it(tmp_path: Path) -> None:
    table = {"kind": "function", "file": "benchmark.py", "starts": STARTS}
    text = "TASKS = ['a']\nA, B = 'read.csv', 'report.csv'\ndef evaluate(h, t): return 1\n"
    (tmp_path / "benchmark.py").write_text(text)
    (tmp_path / "read.csv").write_text("1")
    first = parts(tmp_path, table)
    assert "read.csv" in first
    (tmp_path / "report.csv").write_text("1")
    assert parts(tmp_path, table, first) == first
    (tmp_path / "benchmark.py").write_text(f"{text}C = 1\n")
    assert "report.csv" in parts(tmp_path, table, first)


def test_a_command(tmp_path: Path) -> None:
    (tmp_path / "score.sh").write_text("echo 1\n")
    (tmp_path / "few").mkdir()
    (tmp_path / "few" / "x.jsonl").write_text("1")
    (tmp_path / "many").mkdir()
    for number in range(MOST_FILES + 1):
        (tmp_path / "many" / str(number)).touch()
    table = {
        "kind": "command",
        "command": ["sh", "score.sh"],
        "starts": STARTS,
        "tasks": ["a", "b"],
        "readable": ["few", "many"],
    }
    before = parts(tmp_path, table)
    assert {"few/x.jsonl", "many", "score.sh", "benchmark.command"} < before.keys()
    (tmp_path / "many" / "7").write_text("changed")
    after = parts(tmp_path, table)
    assert {name for name in before if before[name] != after[name]} == {"many"}


OWN = """
from pathlib import Path
from coevolve import Pool

class Mine:
    frame = "# around"
    def __init__(self, split):
        self.pool = Pool(["a", "b"])
        self.starts = {n: {"harness.py": n.encode()} for n in ("one", "two")}
    def fingerprint(self):
        return {"rows": Path(__file__).with_name("rows" + ".csv"), "version": 3}
    def check(self, harness): pass
    def prepare(self, harness): pass
    def run(self, harness, task, trial): return 1.0
"""


def test_a_class_of_your_own_with_a_model(tmp_path: Path) -> None:
    (tmp_path / "fingerprinted_mine.py").write_text(OWN)
    (tmp_path / "rows.csv").write_text("1")
    table = {"kind": "fingerprinted_mine:Mine", "arguments": {"split": "easy"}}
    model = {"name": "embedded", "temperature": 0.5, "concurrency": 3}
    found = parts(tmp_path, table, model=model)
    assert found["arguments.split"] == '"easy"'
    assert json.loads(found["model"]) == {"name": "embedded", "temperature": 0.5}
    names = {"frame", "rows", "version", "fingerprinted_mine.py", "benchmark.kind"}
    assert found.keys() == names | {"arguments.split", "model"}
    changed = parts(tmp_path, table, model={**model, "temperature": 0.7})
    assert {name for name in found if found[name] != changed[name]} == {"model"}


def test_text_classification_and_worlds(tmp_path: Path) -> None:
    model = {"name": "embedded"}
    found = parts(tmp_path, {"kind": "textclass"}, model=model)
    assert {"frame", "model", "sets/service-desk/train", "sets/service-desk/val"} < found.keys()
    world = parts(tmp_path, {"kind": "synthetic", "pools": {"all": 9}, "starts": 3})
    assert world == {"benchmark.kind": '"synthetic"', "benchmark.pools": '{"all": 9}'}
