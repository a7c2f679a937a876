"""The paper's rows in `examples/paper`: their numbers of evaluations, and their miniature."""

import json
import os
import shutil
import signal
import subprocess
import time
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


@pytest.fixture(params=["synthetic", pytest.param("published", marks=needs_published)])
def classification(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, tuple[str, ...]]:
    """The folder of the paper's text classification, and options that every command needs."""
    if request.param == "published":
        return PAPER, ("--set", f"benchmark.data={PUBLISHED}")
    write_worlds(tmp_path, "tc.toml", {"uspto": 30, "s2d": 50, "law": 50}, sealed=412)
    return tmp_path, ()


def write_worlds(folder: Path, matrix: str, pools: dict[str, int], *, sealed: int = 0) -> None:
    """The paper's rows in a synthetic world with as many tasks, which needs no data."""
    shutil.copy(PAPER / matrix, folder)
    searches = {run.file.name: run.config.search for run in described(PAPER / matrix).values()}
    for name, search in searches.items():
        sizes = ", ".join(f"{pool} = {size}" for pool, size in pools.items())
        (folder / name).write_text(
            dedent(f"""
                [search]
                rounds = {search.rounds}
                candidates = {search.candidates}
                [benchmark]
                kind = "synthetic"
                pools = {{ {sizes} }}
                test_tasks = {sealed}
                [proposer]
                kind = "synthetic"
            """)
        )


def test_the_evaluations_are_those_of_the_paper(
    classification: tuple[Path, tuple[str, ...]],
) -> None:
    folder, options = classification
    command = ("run", "--matrix", folder / "tc.toml", "--dry-run", *options)
    done = coevolve(*command, "--json")
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
    lines = [line.split() for line in coevolve(*command).stdout.splitlines()]
    shown = {words[0]: words[4] for words in lines if words and words[0] in EVALUATIONS}
    assert shown == {name: f"{number:,}" for name, number in EVALUATIONS.items()}


@pytest.mark.parametrize(("rounding", "evaluations"), [("ceil", 660), ("floor", 480)])
def test_rounding_decides_the_evaluations_at_seven_percent(
    rounding: str, evaluations: int, classification: tuple[Path, tuple[str, ...]]
) -> None:
    folder, options = classification
    values = ("protocol=task-coevolve", "fraction=0.07", f"rounding={rounding}")
    settings = [word for value in values for word in ("--set", f"search.{value}")]
    file = folder / "text_classification.toml"
    done = coevolve("run", file, "--dry-run", "--json", *settings, *options)
    assert json.loads(done.stdout)["evaluations"] == evaluations


def test_terminal_bench_has_the_trials_of_the_paper(tmp_path: Path) -> None:
    write_worlds(tmp_path, "tb.toml", {"terminal-bench": 89})
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


@pytest.mark.long
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
