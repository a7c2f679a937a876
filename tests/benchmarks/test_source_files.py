"""The files of a project that can alter scores are found in its source."""

from pathlib import Path

import pytest

from coevolve.benchmarks.source_files import source_files

FILES = {
    "benchmark.py": """
import json, os, glob
from pathlib import Path
import judge
from tools import words
from tools.deep import inner
HERE = Path(__file__).parent
A = (HERE / "data" / "one.jsonl").read_text()
B = open("two.txt")
C = os.path.join("three", "four.csv")
D = open(f"five/{A}.json")
E = [HERE / "six" / name for name in "ab"]
LABEL = "starts"
LOG = HERE / "log.txt"
with LOG.open("a") as log: log.write("x")
open("out/table.csv", mode="w")
(HERE / "cache" / "kept.json").write_text("{}")
""",
    "judge.py": "import helper\nTABLE = 'seven.csv'\n",
    "helper.py": "",
    "propose.py": "",
    "tools/__init__.py": "",
    "tools/words.py": "from . import sibling\nfrom .. import judge\n",
    "tools/sibling.py": "",
    "tools/deep/__init__.py": "",
    "tools/deep/inner.py": "",
    "tools/unused.py": "",
    "data/one.jsonl": "",
    "data/other.jsonl": "",
    "two.txt": "",
    "three/four.csv": "",
    "five/x.json": "",
    "six/a": "",
    "seven.csv": "",
    "starts/a/harness.py": "",
    "log.txt": "",
    "out/table.csv": "",
    "cache/kept.json": "",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_modules_and_data_of_the_project_are_found(project: Path) -> None:
    modules, data = source_files(project / "benchmark.py", project)
    assert sorted(path.relative_to(project).as_posix() for path in modules) == [
        "benchmark.py",
        "helper.py",
        "judge.py",
        "tools/__init__.py",
        "tools/deep/__init__.py",
        "tools/deep/inner.py",
        "tools/sibling.py",
        "tools/words.py",
    ]
    assert sorted(path.relative_to(project).as_posix() for path in data) == [
        "data/one.jsonl",
        "five",
        "seven.csv",
        "six",
        "three/four.csv",
        "two.txt",
    ]


@pytest.mark.parametrize("text", ["def (", "X = '" + "a/" * 3000 + "'", "open('..')", "open('/')"])
def test_odd_sources_do_no_harm(tmp_path: Path, text: str) -> None:
    (tmp_path / "benchmark.py").write_text(text)
    assert source_files(tmp_path / "benchmark.py", tmp_path) == ([tmp_path / "benchmark.py"], [])
