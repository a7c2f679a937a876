"""`coevolve analyse`, run as users run it."""

import csv
import json
import os
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from coevolve_reproductions.tables import ANALYSES
from tests.analysis.runs import CANDIDATES, SCORES, TASKS, finished, written
from tests.command import coevolve

PNG = b"\x89PNG\r\n\x1a\n"


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return coevolve("analyse", *arguments, env=os.environ | {"COLUMNS": "80", **environment})


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A folder with a run whose candidates were all scored on every task."""
    selector = finished("task-coevolve", rescored=tuple(CANDIDATES), priced=True)
    return written(selector, tmp_path / "whole" / "events.jsonl").parent


@pytest.fixture
def partial(tmp_path: Path) -> Path:
    return written(finished(), tmp_path / "partial.jsonl")


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.npz"
    outcomes = np.array(list(SCORES.values()), dtype=float)
    np.savez(path, outcomes=outcomes, tasks=TASKS, candidates=list(SCORES))
    return path


def test_settings_of_protocols_change_a_replay(whole: Path, tmp_path: Path) -> None:
    words = ("--seeds", 1, "--protocols", "naive", "--fractions", "0.01", "--out", tmp_path)
    done = run(whole, "--table", "ablation", *words, "--set", "rounding=floor")
    assert done.returncode == 0, done.stderr
    refused = run(whole, "--table", "ties", "--set", "rounding=floor", "--out", tmp_path)
    assert refused.returncode == 2
    assert "set has no effect on the table ties" in refused.stderr


@pytest.mark.parametrize("table", ANALYSES)
def test_every_table_of_a_run_is_printed_and_written(
    table: str, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    few = ("--seeds", 1, "--protocols", "naive,task-coevolve") if table == "ablation" else ()
    done = run(whole, "--table", table, "--out", out, *few)
    assert done.returncode == 0, done.stderr
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert "…" not in done.stdout
    with (out / f"whole-{table}.csv").open() as lines:
        assert list(csv.DictReader(lines))
    root = ElementTree.parse(out / f"whole-{table}.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 10


@pytest.mark.parametrize("table", ANALYSES)
def test_every_table_of_a_matrix_as_json(table: str, matrix: Path, tmp_path: Path) -> None:
    few = () if table == "headroom" else ("--seeds", 2, "--fraction", 0.5)
    out = tmp_path / "out"
    done = run(matrix, "--table", table, "--out", out, "--json", *few)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["table"] == table
    assert made["rows"]
    assert made["files"] == [str(out / f"tiny-{table}{suffix}") for suffix in (".csv", ".svg")]
    with (out / f"tiny-{table}.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert [list(row) for row in rows] == [list(row) for row in made["rows"]]


def test_figures_are_the_same_every_time(matrix: Path, tmp_path: Path) -> None:
    drawn = []
    for out in (tmp_path / "a", tmp_path / "b"):
        run(matrix, "--table", "headroom", "--out", out)
        drawn.append((out / "tiny-headroom.svg").read_bytes())
    assert drawn[0] == drawn[1]


def test_a_figure_by_its_suffix(matrix: Path, tmp_path: Path) -> None:
    path = tmp_path / "figures" / "mine.png"
    done = run(matrix, "--table", "headroom", "--out", tmp_path / "out", "--figure", path)
    assert done.returncode == 0, done.stderr
    assert path.read_bytes().startswith(PNG)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["tiny-headroom.csv"]


def test_without_matplotlib_the_table_is_still_written(matrix: Path, tmp_path: Path) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "matplotlib.py").write_text("raise ImportError")
    out = tmp_path / "out"
    done = run(matrix, "--table", "headroom", "--out", out, PYTHONPATH=str(tmp_path / "hidden"))
    assert done.returncode == 0, done.stderr
    assert "Headroom" in done.stdout
    assert "pip install 'task-coevolve[figures]'" in done.stderr
    assert [path.name for path in out.iterdir()] == ["tiny-headroom.csv"]


def test_a_series_by_name(tmp_path: Path) -> None:
    path = tmp_path / "two.npz"
    outcomes = np.array(list(SCORES.values()) * 2, dtype=float)
    np.savez(path, outcomes=outcomes, run=np.repeat(["one", "two"], 5))
    first = run(path, "--table", "headroom", "--out", tmp_path)
    assert "2 series, of which this is the first" in first.stdout.replace("\n", " ")
    second = run(path, "--table", "headroom", "--series", "two", "--out", tmp_path)
    assert "candidate-6" in second.stdout
    wrong = run(path, "--table", "headroom", "--series", "three", "--out", tmp_path)
    assert wrong.returncode == 2
    assert "no series 'three'; there are one, two" in wrong.stderr


def test_what_is_missing_in_a_run_is_named(partial: Path, tmp_path: Path) -> None:
    for table in ("accuracy", "ablation"):
        done = run(partial, "--table", table, "--out", tmp_path / "out")
        assert done.returncode == 2
        assert str(partial) in done.stderr
        assert "tell_full" in done.stderr
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--table", "tie"), f"no table 'tie'; use one of {', '.join(ANALYSES)}."),
        (("--table", "ties", "--seeds", "0"), "--seeds must be at least 1, got 0"),
        (("--table", "ties", "--fraction", "half"), "--fractions must be numbers"),
        (("--table", "ties", "--fraction", "2"), "fractions must be in (0, 1], got 2"),
        (("--table", "ties", "--protocol", "naiv"), "Did you mean 'naive'?"),
        (("--table", "ties", "--rounds", "0"), "rounds has no effect"),
        (("--table", "difficulty", "--rounds", "9"), "rounds must be from 0 to 3, got 9"),
        (("--table", "difficulty", "--rounds", "a"), "--rounds must be whole numbers"),
        (("--table", "ties", "--figure", "x.jpg"), "must be one of .svg, .png, .pdf"),
        ((), "Missing option '--table'"),
    ],
)
def test_bad_input_exits_with_2_and_says_what_was_wrong(
    arguments: tuple[str, ...], message: str, matrix: Path
) -> None:
    done = run(matrix, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_files_that_are_no_run(tmp_path: Path) -> None:
    for name, text, message in (
        ("none.jsonl", None, "is not a run or matrix"),
        ("text.jsonl", "hello", "line 1 is not JSON"),
        ("empty.jsonl", "", "no events"),
        ("notes.txt", "hello", "is not a run or matrix"),
        ("broken.npz", "hello", "is not an .npz file"),
    ):
        path = tmp_path / name
        if text is not None:
            path.write_text(text)
        done = run(path, "--table", "ties")
        assert done.returncode == 2, name
        assert message in done.stderr
        assert name in done.stderr
    assert run(tmp_path, "--table", "ties").returncode == 2


def test_a_damaged_run_is_named(whole: Path) -> None:
    path = whole / "events.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2] + lines[3:]))
    done = run(whole, "--table", "ties")
    assert done.returncode == 2
    assert "events are missing or out of order" in done.stderr
    assert str(path) in done.stderr


@pytest.fixture
def project(finished: Path, tmp_path: Path) -> Path:
    """A copy of a project whose run has ended."""
    return shutil.copytree(finished, tmp_path / "project")


def engine(project: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return coevolve("analyse", "runs/doubling", *arguments, cwd=project)


def test_an_engine_run_without_full_set_scores_says_what_to_do(project: Path) -> None:
    done = engine(project, "--table", "accuracy")
    assert done.returncode == 2
    assert "full-set scores of 0 of 3 candidates" in done.stderr
    assert "--rescore all" in done.stderr


def test_what_rescore_and_evaluate_have_scored_is_used(project: Path) -> None:
    """One candidate is scored in the journal of the run, the others in `evaluations`."""
    coevolve("rescore", "r2-0", cwd=project)
    words = ("evaluate", "r1-0", "r3-0", "--config", "coevolve.toml", "-q")
    assert coevolve(*words, cwd=project).returncode == 0
    done = engine(project, "--table", "accuracy", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["ranked"], row["rank"], row["truth"], row["best"]) == (3, 1, 1.0, 1.0)
    swapped = json.loads(engine(project, "--table", "swap", "--json").stdout)["rows"]
    assert {row["truth"] for row in swapped} == {1.0}
    rows = json.loads(engine(project, "--table", "headroom", "--json").stdout)["rows"]
    assert {row["candidate"]: row["score"] for row in rows if row["kind"] == "full set"} == {
        "r1-0": 0.5,
        "r2-0": 0.5,
        "r3-0": 1.0,
    }


def test_rescore_shows_the_price_and_needs_an_answer(project: Path) -> None:
    done = engine(project, "--table", "accuracy", "--rescore", "top 2")
    assert done.returncode == 2
    assert "runs/doubling: 2 candidates on all validation tasks, 32 trials: " in done.stderr
    assert "add --yes" in done.stderr
    coevolve("rescore", "r3-0", cwd=project)
    paid = engine(project, "--table", "accuracy", "--rescore", "top:2", "--yes", "--json")
    assert paid.returncode == 0, paid.stderr
    assert "1 candidate on all validation tasks, 16 trials: " in paid.stderr
    assert json.loads(paid.stdout)["rows"][0]["ranked"] == 2
    rest = engine(project, "--table", "ablation", "--rescore", "all", "-y", "--seeds", 1)
    assert rest.returncode == 0, rest.stderr
    assert "3 candidates, 16 tasks" in " ".join(rest.stdout.split())
    none = engine(project, "--table", "ties", "--rescore", "all")
    assert none.returncode == 0, none.stderr
    assert "Nothing to rescore" in none.stderr


def test_rescore_that_can_have_no_effect_is_refused(project: Path, matrix: Path) -> None:
    for words, message in (
        (("--table", "accuracy", "--rescore", "best"), "must be all or topN, such as top10"),
        (("--table", "accuracy", "--rescore", "top0"), "must be all or topN"),
        (("--table", "cost", "--rescore", "all"), "no effect on the table cost"),
        (("--table", "accuracy", "--yes"), "--yes has an effect only with --rescore"),
    ):
        done = engine(project, *words)
        assert done.returncode == 2
        assert message in done.stderr
    done = run(matrix, "--table", "accuracy", "--rescore", "all")
    assert "--rescore needs a run folder" in done.stderr


def test_an_evaluation_is_not_a_run(project: Path) -> None:
    coevolve("evaluate", "same", "--config", "coevolve.toml", "-q", "--trials", "2", cwd=project)
    (folder,) = (project / "evaluations").iterdir()
    done = run(folder, "--table", "ties")
    assert done.returncode == 2
    assert "is an evaluation, not a run" in done.stderr
