"""Every table of the paper from the miniature in `examples/paper`: matrices, then tables.

Most rows run with one seed, and rows that only repeat another fraction or model do not run.
"""

import csv
import io
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from coevolve_reproductions.run_tables import TABLES
from tests.cli.projects import coevolve
from tests.cli.test_paper_examples import PAPER
from tests.shared import made_once

RUNS = {"tc": "runs/paper-tc", "tb": "runs/paper-tb"}
MATRICES = (
    ("tc.toml", "full,naive-7,random-resample-20,task-coevolve-20", "1"),
    ("tb.toml", "luna-full,luna-task-coevolve-20,qwen-full,qwen-naive-20", "1"),
    ("tc.toml", "naive-20", "1,2"),
    ("ablation.toml", "random-estimate-20", "1"),
    ("swap.toml", "difference-20", "1"),
    ("stronger.toml", "deepseek-full", "1"),
)
"""Matrices with the rows and seeds that are run."""
OF_TERMINAL_BENCH = ("tb", "cost", "stronger")
STRENGTHS = ("Weak", "Middle", "Strong")
WORDS = ("random-resample", "random-estimate", "task-coevolve", "MiddleModel", "StrongModel")


@pytest.fixture(scope="module")
def miniature(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The miniature after its matrices have run; tests only read it."""

    def make(copy: Path) -> None:
        left_out = shutil.ignore_patterns("runs")
        shutil.copytree(PAPER / "miniature", copy, ignore=left_out, dirs_exist_ok=True)
        for file in copy.glob("*.toml"):  # a second worker would start every harness again
            file.write_text(file.read_text().replace("workers = 2", "workers = 1"))
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda part: run(copy, *part), MATRICES))

    return made_once(tmp_path_factory, "miniature", make)


def run(miniature: Path, matrix: str, rows: str, seeds: str) -> None:
    options = ("--only", rows, "--seeds", seeds, "-q")
    done = coevolve("run", "--matrix", matrix, *options, cwd=miniature)
    assert done.returncode == 0, done.stderr


def table(miniature: Path, name: str, *options: str, of: str = "") -> dict[str, Any]:
    where = RUNS[of or ("tb" if name in OF_TERMINAL_BENCH else "tc")]
    done = coevolve("table", name, where, "--format", "json", *options, cwd=miniature)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def rows_of(found: dict[str, Any], **cells: object) -> list[dict[str, Any]]:
    return [row for row in found["rows"] if all(row[k] == v for k, v in cells.items())]


@pytest.mark.parametrize("name", TABLES)
def test_every_table_comes_out_in_80_columns(name: str, miniature: Path) -> None:
    where = RUNS["tb" if name in OF_TERMINAL_BENCH else "tc"]
    done = coevolve("table", name, where, "--paper", cwd=miniature)
    assert done.returncode == 0, done.stderr
    assert "There are no figures of the paper" in done.stdout
    for word in WORDS:
        assert done.stdout.count(word[:8]) == done.stdout.count(word)  # no word is broken


def test_the_page_of_the_command_line_shows_these_runs(miniature: Path) -> None:
    part = ("--only", "full,naive-7", "--seeds", "1")
    done = coevolve("run", "--matrix", "tc.toml", *part, "-q", cwd=miniature)
    page = (PAPER.parents[1] / "docs" / "cli.md").read_text("utf-8")
    shown = [line.split() for line in page.splitlines()]
    found = [line.split() for line in done.stdout.splitlines() if "-s1 " in line]
    assert [row[0] for row in found] == ["full-s1", "naive-7-s1"]
    assert all(row in shown for row in found), found


def test_tc_has_the_rows_of_the_paper_in_its_order(miniature: Path) -> None:
    found = rows_of(table(miniature, "tc"), section="Evolved harnesses (harness search)")
    assert [(row["method"], row["fraction"]) for row in found] == [
        ("full", 1),
        ("naive", 0.07),
        ("naive", 0.2),
        ("random-resample", 0.2),
        ("random-estimate", 0.2),
        ("task-coevolve, estimator difference", 0.2),
        ("task-coevolve, estimator hajek", 0.2),
    ]
    assert [row["n"] for row in found] == [1, 1, 2, 1, 1, 1, 1]
    assert [row["evaluations"] for row in found] == [180, 12, 36, 36, 36, 36, 36]
    assert all(0 < row["test"] <= 1 for row in found)


def test_tc_in_all_formats(miniature: Path) -> None:
    texts = {}
    for form in ("markdown", "latex", "csv"):
        done = coevolve("table", "tc", RUNS["tc"], "--format", form, cwd=miniature)
        assert done.returncode == 0, done.stderr
        texts[form] = done.stdout
    methods = [row["method"] for row in table(miniature, "tc")["rows"]]
    assert [row["method"] for row in csv.DictReader(io.StringIO(texts["csv"]))] == methods
    assert all(f"| {method} |" in texts["markdown"] for method in methods)
    assert all(f"{method} & " in texts["latex"] for method in methods)


def test_tb_has_a_column_for_each_model_and_their_strength(miniature: Path) -> None:
    (full,) = rows_of(table(miniature, "tb"), method="full")
    weak, middle, strong = (full[f"model:word_model:{m}Model"] for m in STRENGTHS)
    assert 0 < weak < middle < strong < 1
    assert full["average"] == pytest.approx((weak + middle + strong) / 3)


def test_cost_has_tokens_and_dollars_of_each_model(miniature: Path) -> None:
    found = table(miniature, "cost")
    parts = {row["part"] for row in found["rows"]}
    assert parts == {"search", "phase 0", "rescoring", "whole run"}
    for strength in STRENGTHS:
        (row,) = rows_of(found, model=f"word_model:{strength}Model", method="full", part="search")
        assert row["trials"] == 42
        assert row["tokens_in"] > 0
        assert row["dollars"] > 0
    (ours,) = rows_of(found, method="task-coevolve", part="search")
    assert (ours["trials"], ours["reduction"]) == (10, pytest.approx(-0.76, abs=0.03))


def test_a_stronger_model_gains_less(miniature: Path) -> None:
    rows = {row["model"]: row for row in rows_of(table(miniature, "stronger"), method="full")}
    assert len(rows) == 3
    gains = {model: row["after"] - row["before"] for model, row in rows.items()}
    assert min(gains, key=gains.__getitem__) == "word_model:StrongModel"


def test_difficulty_phase_0_ablation_and_swap(miniature: Path) -> None:
    start = rows_of(table(miniature, "difficulty"), method="full")
    assert sum(row["round_0"] for row in start) == 45
    pools = table(miniature, "phase0")["rows"]
    assert [(row["pool"], row["tasks"], row["n"]) for row in pools] == [
        ("parcels", 15, 8),
        ("garden", 15, 8),
        ("kitchen", 15, 8),
    ]
    ablated = table(miniature, "ablation")["rows"]
    ticks = {row["method"]: (row["rotates"], row["estimates"]) for row in ablated}
    assert ticks["random-estimate"] == (True, True)
    searches = rows_of(table(miniature, "swap"), method="task-coevolve", kind="search")
    assert [row["estimator"] for row in searches] == ["difference", "Hájek"]
    assert all(row["score"] is not None for row in searches)


@pytest.mark.parametrize("name", ["accuracy", "ties"])
def test_what_is_missing_is_paid_for(name: str, miniature: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(miniature, tmp_path / "miniature")
    for folder in (copy / RUNS["tc"]).iterdir():
        if folder.name not in ("full-s1", "naive-7-s1", "task-coevolve-20-s1"):
            shutil.rmtree(folder)
    missing = table(copy, name)["missing"]
    assert all(command.startswith("coevolve rescore ") for command in missing)
    assert missing
    found = table(copy, name, "--rescore", "--yes")
    assert found["missing"] == []
    column = "spearman" if name == "accuracy" else "latest"
    assert all(row[column] is not None for row in found["rows"])


def test_the_plan_of_a_matrix_has_the_price_of_its_ended_runs(miniature: Path) -> None:
    done = coevolve("run", "--matrix", "tc.toml", "--dry-run", "--json", cwd=miniature)
    found = json.loads(done.stdout)
    for measure in ("tokens", "dollars", "hours"):
        assert found["total"][measure][1] > 0
    assert "6 runs of this matrix that ended" in " ".join(found["notes"])
    like = ("--like", f"{RUNS['tb']}/luna-full-s1")
    done = coevolve("run", "--matrix", "tc.toml", "--dry-run", "--json", *like, cwd=miniature)
    other = json.loads(done.stdout)
    assert other["total"]["tokens"][1] > 0
    assert other["total"]["tokens"] != found["total"]["tokens"]
    assert "that ended" not in " ".join(other["notes"])
