"""A benchmark removes what earlier sessions left before workers start, and states its limits."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import coevolve
from coevolve.errors import StopRun

SWEEPER = """
from pathlib import Path

from coevolve import Pool

SWEPT = Path(__file__).with_name("swept")


class Benchmark:
    limits = {"asks": 7, "seconds": 9}
    trial_seconds = 77
    pool = Pool(["1", "2"])
    starts = {name: {"harness.py": f"name = '{name}'".encode()} for name in "ab"}

    def __init__(self, fails=False):
        self.fails = fails

    def sweep(self):
        with SWEPT.open("a") as file:
            file.write("swept\\n")
        if self.fails:
            raise RuntimeError("the container engine is away")

    def check(self, harness): pass

    def prepare(self, harness): pass

    def run(self, harness, task, trial):
        assert SWEPT.exists()
        return float(harness.limits.asks == 7 and harness.limits.seconds == 5)
"""

FILE = """
[search]
rounds = 1

[benchmark]
kind = "sweeper:Benchmark"
arguments = {{ fails = {fails} }}

[proposer]
kind = "function"
file = "propose.py"

[executor]
workers = 1

[isolation]
kind = "process-as-root"
seconds = 5
"""

PROPOSE = """
def propose(view, count):
    return [{"name": f"c{view.round}", "files": {"harness.py": f"x = {view.round}"}}]
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "sweeper.py").write_text(SWEEPER)
    (tmp_path / "propose.py").write_text(PROPOSE)
    before = list(sys.path)
    yield tmp_path
    sys.path[:] = before
    sys.modules.pop("sweeper", None)


def opened(project: Path, fails: bool) -> coevolve.Run:
    (project / "run.toml").write_text(FILE.format(fails=str(fails).lower()))
    return coevolve.open(project / "run.toml")


def test_a_run_sweeps_when_it_starts_and_when_it_is_resumed(project: Path) -> None:
    run = opened(project, fails=False)
    result = run.run()
    assert (project / "swept").read_text().count("swept") == 1
    assert {row["score"] for row in result.outcomes()} == {1.0}
    run.extend(rounds=2).resume()
    assert (project / "swept").read_text().count("swept") == 2


def test_a_run_does_not_start_if_sweeping_fails(project: Path) -> None:
    run = opened(project, fails=True)
    with pytest.raises(StopRun, match=r"the container engine is away.*then resume the run"):
        run.run()
    assert not list((project / "runs").glob("*"))
