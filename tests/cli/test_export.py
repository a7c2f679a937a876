"""`coevolve export`, run as users run it, and read back by those it is for."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest

from coevolve.analysis import read_matrix
from coevolve.analysis.matrix_files import read_events
from coevolve.core.selector import Selector
from coevolve.runs.session import read_state
from tests.cli.projects import coevolve


def exported(finished: Path, path: Path) -> Path:
    done = coevolve("export", finished / "runs" / "doubling", "--to", path)
    assert done.returncode == 0, done.stderr
    return path


def test_rows(finished: Path, tmp_path: Path) -> None:
    with exported(finished, tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 68
    assert {row["split"] for row in rows} == {"validation", "test"}
    (row,) = (r for r in rows if r["candidate"] == "square" and r["task"] == "2")
    assert (row["round"], row["pool"], row["score"], row["missing"]) == ("0", "small", "1.0", "")
    assert float(row["seconds"]) > 0


def test_parquet_has_the_rows_of_the_csv(finished: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(exported(finished, tmp_path / "out.parquet"))
    with exported(finished, tmp_path / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert table.column_names == list(rows[0])
    assert table["score"].to_pylist() == [float(row["score"]) for row in rows]


def test_parquet_without_pyarrow(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "pyarrow.py").write_text("raise ImportError('not here')")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    run = finished / "runs" / "doubling"
    done = coevolve("export", run, "--to", tmp_path / "out.parquet", env=env)
    assert done.returncode == 2
    assert "pip install 'task-coevolve[parquet]'" in done.stderr
    assert sorted(path.name for path in tmp_path.glob("*out*")) == []


def test_the_matrix_and_the_events_agree(finished: Path, tmp_path: Path) -> None:
    matrix = read_matrix(exported(finished, tmp_path / "out.npz")).series[0]
    other = read_matrix(exported(finished, tmp_path / "out.jsonl")).series[0]
    assert matrix.candidates == other.candidates == ("same", "square", "r1-0", "r2-0", "r3-0")
    assert matrix.pool.names == other.pool.names == ("small", "large")
    np.testing.assert_array_equal(matrix.outcomes, other.outcomes)
    assert np.isnan(matrix.outcomes).sum() == 3 * 8


def test_the_events_make_the_selector_of_the_run(finished: Path, tmp_path: Path) -> None:
    selector = Selector.from_events(read_events(exported(finished, tmp_path / "out.jsonl")))
    of_run = read_state(finished / "runs" / "doubling").selector
    assert selector.best() == of_run.best()
    assert selector.usage.seconds > 0
    done = coevolve("analyse", tmp_path / "out.jsonl", "--table", "cost", "--out", tmp_path)
    assert done.returncode == 0, done.stderr


def test_what_was_written_as_json(finished: Path, tmp_path: Path) -> None:
    run, path = finished / "runs" / "doubling", tmp_path / "deep" / "out.csv"
    done = coevolve("export", run, "--to", path, "--json")
    assert json.loads(done.stdout) == {"folder": str(run), "file": str(path), "outcomes": 68}


def test_an_unknown_ending(finished: Path, tmp_path: Path) -> None:
    done = coevolve("export", "--to", "out.xls", cwd=finished)
    assert done.returncode == 2
    assert "has the suffix '.xls'; use one of .csv, .parquet, .npz, .jsonl." in done.stderr


def test_a_run_folder_can_be_analysed_as_it_is(finished: Path, tmp_path: Path) -> None:
    (folder,) = (finished / "runs").iterdir()
    done = coevolve("analyse", folder, "--table", "difficulty", "--json", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
