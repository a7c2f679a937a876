"""The paper's rows in `examples/paper`: their numbers of evaluations, and their miniature."""

import json
import os
import shutil
import signal
import subprocess
import time
import tomllib
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from coevolve.runs.run_matrix import MatrixRun, read_run_matrix
from tests.benchmarks.textclass.files import PUBLISHED, needs_published
from tests.cli.projects import COMMAND, coevolve

PAPER = Path(__file__).parents[2] / "examples" / "paper"
MATRICES = ("tc", "ablation", "swap", "ties", "tb", "stronger")
EVALUATIONS = {
    "full": 7800,
    "naive-7": 480,
    "random-resample-7": 480,
    "task-coevolve-7": 480,
    "naive-20": 1560,
    "random-resample-20": 1560,
    "task-coevolve-20": 1560,
}


def described(path: Path) -> dict[str, MatrixRun]:
    return {run.name: run for run in read_run_matrix(path).runs()}


def changes(run: MatrixRun) -> dict[str, Any]:
    return {one.key: one.value for one in run.overrides}


@pytest.fixture
def miniature(tmp_path: Path) -> Path:
    """A copy of the miniature, in which runs are made."""
    copy = tmp_path / "miniature"
    shutil.copytree(PAPER / "miniature", copy, ignore=shutil.ignore_patterns("runs"))
    return copy


@needs_published
def test_the_evaluations_are_those_of_the_paper() -> None:
    data = ("--set", f"benchmark.data={PUBLISHED}")
    done = coevolve("run", "--matrix", PAPER / "tc.toml", "--dry-run", "--json", *data)
    assert done.returncode == 0, done.stderr
    rows = {row["row"]: row for row in json.loads(done.stdout)["rows"]}
    assert {name: row["plan"]["evaluations"] for name, row in rows.items()} == EVALUATIONS
    assert {row["runs"] for row in rows.values()} == {3}
    drawn = {name: [p["drawn"] for p in row["plan"]["pools"]] for name, row in rows.items()}
    assert drawn["task-coevolve-7"] == [2, 3, 3]
    assert drawn["naive-20"] == [6, 10, 10]
    plan = rows["full"]["plan"]
    parts = {part["part"]: part["trials"][1] for part in plan["parts"]}
    assert (parts["phase 0"], parts["sealed test"]) == (2 * 130, 3 * 412)


@needs_published
@pytest.mark.parametrize(("rounding", "evaluations"), [("ceil", 660), ("floor", 480)])
def test_rounding_decides_the_evaluations_at_seven_percent(
    rounding: str, evaluations: int
) -> None:
    values = (
        f"benchmark.data={PUBLISHED}",
        "search.protocol=task-coevolve",
        "search.fraction=0.07",
        f"search.rounding={rounding}",
    )
    options = [word for value in values for word in ("--set", value)]
    done = coevolve("run", PAPER / "text_classification.toml", "--dry-run", "--json", *options)
    assert json.loads(done.stdout)["evaluations"] == evaluations


def test_terminal_bench_has_the_trials_of_the_paper(tmp_path: Path) -> None:
    """The paper's rows in a synthetic world with as many tasks, which needs no data."""
    world = """
        [search]
        rounds = {rounds}
        candidates = {candidates}
        rescore = true
        [benchmark]
        kind = "synthetic"
        pools = {{ terminal-bench = 89 }}
        [proposer]
        kind = "synthetic"
    """
    for name in ("gpt_5_6_luna.toml", "qwen_3_6.toml"):
        search = tomllib.loads((PAPER / name).read_text())["search"]
        (tmp_path / name).write_text(dedent(world).format_map(search))
    shutil.copy(PAPER / "tb.toml", tmp_path)
    matrix = ("--matrix", tmp_path / "tb.toml")
    found = json.loads(coevolve("run", *matrix, "--dry-run", "--json").stdout)
    for row in found["rows"]:
        assert row["plan"]["evaluations"] == (890 if row["row"].endswith("full") else 180)


def test_rows_that_tables_share_are_the_same_runs() -> None:
    for folder in (PAPER, PAPER / "miniature"):
        of_tc, of_tb = described(folder / "tc.toml"), described(folder / "tb.toml")
        assert described(folder / "ties.toml").keys() < of_tc.keys()
        for table, known in (("ablation", of_tc), ("swap", of_tc), ("stronger", of_tb)):
            runs = described(folder / f"{table}.toml").values()
            shared = [run for run in runs if run.name in known]
            assert len({run.row for run in shared}) >= 2
            assert all(run == known[run.name] for run in shared)


@pytest.mark.parametrize("name", MATRICES)
def test_the_miniature_has_the_rows_of_the_paper(name: str) -> None:
    full = described(PAPER / f"{name}.toml")
    small = described(PAPER / "miniature" / f"{name}.toml")
    assert small.keys() <= full.keys()
    for run, one in small.items():
        assert changes(one) == changes(full[run])
        assert one.folder == PAPER / "miniature" / full[run].folder.relative_to(PAPER)


def test_a_miniature_that_is_killed_ends_all_its_runs(miniature: Path) -> None:
    part = ("--only", "full,task-coevolve-7", "--seeds", "1")
    command = ("run", "--matrix", str(miniature / "tc.toml"), *part)
    process = subprocess.Popen(
        [COMMAND, *command], stdout=subprocess.DEVNULL, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not (miniature / "runs/paper-tc/task-coevolve-7-s1/run.db").exists():
        assert time.monotonic() < deadline, "the second run did not start in time"
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    done = coevolve(*command, "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert {row["state"] for row in rows.values()} == {"ended"}
    assert rows["full-s1"]["trials"] == 2 * 45 + 4 * 45 + 3 * 27
    assert rows["task-coevolve-7-s1"]["trials"] == 2 * 45 + 4 * 3 + 3 * 27
    assert all(0 < row["test"] < 1 for row in rows.values())
