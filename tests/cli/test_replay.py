"""`coevolve replay`, run as users run it."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.command import coevolve

ROW = {
    "matrix": str,
    "series": str,
    "protocol": str,
    "fraction": float,
    "seed": int,
    "spearman": float,
    "kendall": float,
    "rank": int,
    "regret": float,
    "rmse": float,
    "coverage": float,
    "expected_regret": type(None),
    "probability": type(None),
    "evaluations": int,
    "share": float,
    "cost": float,
    "candidates": int,
    "tasks": int,
}


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return coevolve("replay", *arguments, env={"COLUMNS": "120", "PATH": "/usr/bin:/bin"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("matrices")
    rng = np.random.default_rng(1)
    for name in ("alpha", "beta"):
        cells = (rng.random((12, 30)) < rng.random(30)).astype(float)
        np.savez(path / f"{name}.npz", outcomes=cells, run=np.arange(12) // 6, cost=np.ones(30))
    return path


def test_json_has_the_documented_schema(folder: Path) -> None:
    done = run(folder, "--protocols", "naive,full", "--fractions", "0.2", "--seeds", "2", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout, parse_constant=pytest.fail)
    assert found["schema"] == 1
    assert list(found) == ["schema", "settings", "rows", "summary"]
    assert found["settings"]["seeds"] == [0, 1]
    assert [p["name"] for p in found["settings"]["protocols"]] == ["naive", "full"]
    assert [m["matrix"] for m in found["settings"]["matrices"]] == ["alpha", "beta"]
    assert len(found["rows"]) == 2 * 2 * 2 * 2
    for row in found["rows"]:
        assert list(row) == list(ROW)
        for name, kind in ROW.items():
            assert row[name] is None or isinstance(row[name], kind), name
    places = [(name, run) for name in ("alpha", "beta") for run in (None, "0", "1")]
    assert [(e["matrix"], e["run"], e["protocol"]) for e in found["summary"]] == [
        (*place, name) for place in (*places, (None, None)) for name in ("naive", "full")
    ]
    last = found["summary"][-1]
    assert last["series"] == 4
    assert last["regret"] == {"mean": 0.0, "se": 0.0, "se_seeds": 0.0}
    assert last["paired"]["against"] == "naive"
    assert set(last["paired"]) == {
        *("against", "difference", "se", "se_seeds", "z", "significant"),
        *("wins", "ties", "losses"),
    }


def test_tables_fit_and_show_every_matrix_and_protocol(folder: Path) -> None:
    done = run(folder, "--seeds", "2", "--workers", "1")
    assert done.returncode == 0, done.stderr
    for text in (
        *("alpha", "beta", "mean", "ρ = 0.07", "ρ = 0.2", "Spearman", "wins / ties / losses"),
        *("naive", "random-resample", "task-coevolve", "joint", "adaptive", "cost"),
    ):
        assert text in done.stdout
    assert "80 searches" in done.stderr
    assert all(len(line) <= 120 for line in done.stdout.splitlines())


def test_what_is_left_out_is_said(folder: Path) -> None:
    done = run(folder / "alpha.npz", "--seeds", "1", "--max-series", "1", "--max-candidates", "4")
    assert "alpha: the first 1 of 2 series" in done.stderr
    assert "alpha: the first 4 of up to 6 candidates" in done.stderr


@pytest.mark.long
def test_seeds_may_start_anywhere(folder: Path) -> None:
    common = (folder / "alpha.npz", "--protocols", "naive", "--fractions", "0.2", "--json")
    whole = json.loads(run(*common, "--seeds", "3").stdout)["rows"]
    part = json.loads(run(*common, "--seeds", "2", "--first-seed", "1").stdout)["rows"]
    assert part == [row for row in whole if row["seed"] in (1, 2)]


def test_identical_candidates(folder: Path) -> None:
    common = ("--aa", "--seeds", "1", "--fractions", "0.2", "--workers", "1")
    done = run(*common, "--protocols", "naive,task-coevolve")
    assert done.returncode == 0, done.stderr
    assert "pairs declared different" in done.stdout
    done = run(folder, *common, "--protocols", "naive,task-coevolve", "--json")
    (first, *_) = json.loads(done.stdout)["rows"]
    assert {"pairs_different", "winner_better", "evaluations", "share"} < set(first)


def test_settings_are_recorded_with_the_protocols_that_have_them(folder: Path) -> None:
    words = ("--protocols", "naive,task-coevolve", "--fractions", "0.2", "--seeds", "1", "--json")
    done = run(folder, *words, "--workers", "1", "--set", "rounding=floor", "--set", "floor=0.2")
    naive, paper = json.loads(done.stdout)["settings"]["protocols"]
    assert naive["allocation"]["rounding"] == paper["allocation"]["rounding"] == "floor"
    assert paper["weighting"]["floor"] == 0.2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name at least one matrix"),
        (("absent.npz",), "there is no file"),
        (("FOLDER", "--protocols", "niave"), "Did you mean 'naive'?"),
        (("FOLDER", "--protocols", "naive,naive"), "protocol 'naive' is given twice"),
        (("FOLDER", "--fractions", "0.2;0.3"), "--fractions must be numbers separated by commas"),
        (("FOLDER", "--fractions", "1.5"), "fractions must be in (0, 1], got 1.5"),
        (("FOLDER", "--set", "floor=-1"), "floor must be at least 0, got -1"),
        (("FOLDER", "--seeds", "0"), "--seeds must be at least 1, got 0"),
        (("FOLDER", "--first-seed", "-1"), "seeds must be whole numbers of at least 0, got -1"),
        (("FOLDER", "--per-round", "0"), "per_round must be at least 1, got 0"),
        (("FOLDER", "--max-series", "0"), "limit on series must be at least 1, got 0"),
        (("FOLDER", "--workers", "0"), "workers must be at least 1, got 0"),
    ],
)
def test_bad_input_exits_with_2_and_says_what_was_wrong(
    folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = run(*(folder if argument == "FOLDER" else argument for argument in arguments))
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
