"""`coevolve run --matrix` and `--dry-run`, run as users run them."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from coevolve.errors import CoevolveError
from coevolve.runs.session import read_state
from tests.cli.projects import COMMAND, coevolve, write_doubling, write_synthetic

MATRIX = """
base = "world.toml"
seeds = [1, 2]
[rows.full.search]
protocol = "full"
[rows.naive-20.search]
protocol = "naive"
fraction = 0.2
"""
NAMES = ["full-s1", "full-s2", "naive-20-s1", "naive-20-s2"]


def write_matrix(folder: Path, *, seconds: float = 0.0) -> Path:
    write_synthetic(folder, seconds=seconds)
    path = folder / "m.toml"
    path.write_text(MATRIX)
    return path


def rows(*arguments: object) -> dict[str, dict[str, Any]]:
    done = coevolve("run", "--matrix", *arguments, "-q", "--json")
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)}


def events(folder: Path) -> dict[str, int]:
    return {name: read_state(folder / "runs" / name).events for name in NAMES}


def test_runs_that_are_new_start_and_ended_ones_are_skipped(tmp_path: Path) -> None:
    path = write_matrix(tmp_path)
    first = rows(path, "--only", "naive-20")
    assert list(first) == NAMES[2:]
    found = rows(path)
    assert list(found) == NAMES
    assert {row["state"] for row in found.values()} == {"ended"}
    assert found["full-s1"]["trials"] == 2 * 20 + 4 * 20 + 3 * 5
    assert found["naive-20-s2"]["trials"] == 2 * 20 + 4 * 4 + 3 * 5
    assert found["full-s1"]["test"] is not None
    before = events(tmp_path)
    again = coevolve("run", "--matrix", path)
    assert again.stdout.count("It has already ended.") == 4
    assert "4 of 4 runs ended." in again.stdout
    assert events(tmp_path) == before
    listed = coevolve("runs", tmp_path, "--json")
    assert [Path(run["run"]).name for run in json.loads(listed.stdout)] == NAMES
    for name in ("full-s1", "naive-20-s2"):  # one of them resumes on its own
        assert coevolve("resume", tmp_path / "runs" / name).returncode == 0


def test_a_changed_matrix_needs_a_decision_before_anything_runs(tmp_path: Path) -> None:
    path = write_matrix(tmp_path)
    rows(path, "--only", "naive-20", "--seeds", "1")
    path.write_text(MATRIX.replace("0.2", "0.3"))
    done = coevolve("run", "--matrix", path)
    assert done.returncode == 2
    assert f"{path} differs from what the run in {tmp_path / 'runs/naive-20-s1'}" in done.stderr
    assert "search.fraction: recorded 0.2, now 0.3" in done.stderr
    assert f"coevolve run --matrix {path} --ignore-changes" in done.stderr
    assert not (tmp_path / "runs/full-s1").exists()
    kept = rows(path, "--ignore-changes", "--seeds", "1")
    assert [row["state"] for row in kept.values()] == ["ended", "ended"]
    assert kept["naive-20-s1"]["trials"] == 2 * 20 + 4 * 4 + 3 * 5


def test_new_limits_extend_the_runs(tmp_path: Path) -> None:
    path = write_matrix(tmp_path)
    rows(path, "--only", "naive-20")
    base = tmp_path / "world.toml"
    base.write_text(base.read_text().replace("rounds = 2", "rounds = 3"))
    done = coevolve("run", "--matrix", path, "--only", "naive-20")
    assert f"coevolve run --matrix {path} --extend" in done.stderr
    found = rows(path, "--only", "naive-20", "--extend")
    assert {(row["round"], row["state"]) for row in found.values()} == {(3, "ended")}


def test_a_matrix_that_is_killed_continues(tmp_path: Path) -> None:
    path = write_matrix(tmp_path, seconds=0.02)
    with _started(path) as process:
        _wait_for_trials(tmp_path / "runs/full-s2", 25)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    found = rows(path)
    assert {row["state"] for row in found.values()} == {"ended"}
    assert [row["trials"] for row in found.values()] == [135, 135, 71, 71]
    assert read_state(tmp_path / "runs/full-s1").sessions == 1
    assert read_state(tmp_path / "runs/full-s2").sessions == 2


def test_a_signal_stops_the_matrix_and_the_same_command_continues(tmp_path: Path) -> None:
    path = write_matrix(tmp_path, seconds=0.05)
    with _started(path) as process:
        _wait_for_trials(tmp_path / "runs/full-s1", 5)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert "Stopped. Repeat the command to continue" in out
    assert "0 of 4 runs ended." in out
    assert read_state(tmp_path / "runs/full-s1").stopped is not None
    assert not (tmp_path / "runs/full-s2").exists()
    found = rows(path, "--only", "full", "--seeds", "1")
    assert found["full-s1"]["state"] == "ended"


def test_a_run_that_needs_help_stops_the_matrix(tmp_path: Path) -> None:
    write_doubling(tmp_path)
    proposer = (tmp_path / "propose.py").read_text()
    (tmp_path / "propose.py").write_text("def propose(view, count):\n    return []\n")
    path = tmp_path / "m.toml"
    path.write_text('base = "coevolve.toml"\n[rows.a.search]\nrounds = 5\n[rows.b]\n')
    done = coevolve("run", "--matrix", path)
    assert done.returncode == 2
    assert "The matrix stopped in run a-s0." in done.stderr
    assert "Fix the proposer; 2 rounds are left." in done.stderr
    assert "Repeat the command to continue" in done.stderr
    assert not (tmp_path / "runs/b-s0").exists()
    (tmp_path / "propose.py").write_text(proposer)
    found = rows(path)
    assert [row["state"] for row in found.values()] == ["ended", "ended"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "run needs FILE.toml, the configuration of a search, or --matrix FILE.toml."),
        (("world.toml", "--matrix", "m.toml"), "use one of them"),
        (("world.toml", "--only", "full"), "--only has no effect without --matrix"),
        (("world.toml", "--seeds", "1"), "--seeds has no effect without --matrix"),
        (("--matrix", "m.toml", "--seed", "1"), "--seed has no effect with --matrix"),
        (("--matrix", "m.toml", "--name", "x"), "--name has no effect with --matrix"),
        (("--matrix", "m.toml", "--seeds", "a"), "--seeds must be whole numbers"),
        (("world.toml", "--like", "x"), "--like has no effect without --dry-run"),
        (("world.toml", "--dry-run", "--extend"), "--dry-run only prints"),
        (
            ("world.toml", "--set", "search.protocol=full", "--set", "search.fraction=0.2"),
            "fraction has no effect on protocol 'full': every candidate is evaluated on every",
        ),
        (
            ("world.toml", "--set", "search.protocol=naive", "--set", "search.draw_per=candidate"),
            "draw_per has no effect on protocol 'naive': all candidates are evaluated on the same",
        ),
        (
            ("--matrix", "m.toml", "--set", "search.fraction=0.5"),
            "full: fraction has no effect on protocol 'full'",
        ),
        (
            ("--matrix", "m.toml", "--set", "search.fraction=0.5", "--dry-run"),
            "m.toml, row 'full': fraction has no effect on protocol 'full'",
        ),
    ],
)
def test_options_without_effect_are_refused(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    write_matrix(tmp_path)
    done = coevolve("run", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_dry_run_says_what_would_run_and_creates_nothing(tmp_path: Path) -> None:
    path = write_doubling(tmp_path)
    done = coevolve("run", path, "--dry-run", "--json", "--set", "search.rounds=2")
    found = json.loads(done.stdout)
    assert (found["rounds"], found["candidates"], found["evaluations"]) == (2, 2, 32)
    assert found["pools"] == [
        {"pool": "small", "tasks": 8, "drawn": 4},
        {"pool": "large", "tasks": 8, "drawn": 4},
    ]
    parts = {part["part"]: part["trials"] for part in found["parts"]}
    assert parts == {"phase 0": [32, 32], "rounds": [16, 32], "sealed test": [12, 12]} | {
        "proposing": [0, 0],
        "all": [60, 76],
    }
    text = coevolve("run", path, "--dry-run").stdout
    for line in ("3 rounds of 2 candidates", "8 small, 8 large; 4 sealed", "Nothing was created."):
        assert line in text
    assert not (tmp_path / "runs").exists()


def test_a_dry_run_of_a_matrix_has_the_price_of_all_runs(tmp_path: Path) -> None:
    path = write_matrix(tmp_path)
    found = json.loads(coevolve("run", "--matrix", path, "--dry-run", "--json").stdout)
    assert [(row["row"], row["runs"], row["plan"]["evaluations"]) for row in found["rows"]] == [
        ("full", 2, 80),
        ("naive-20", 2, 16),
    ]
    assert found["rows"][1]["trials"] == [2 * 63, 2 * 71]
    assert found["total"]["trials"] == [2 * (95 + 63), 2 * (135 + 71)]
    assert (found["total"]["dollars"], found["left"]) == (None, 4)
    assert not (tmp_path / "runs").exists()
    rows(path, "--only", "naive-20")
    like = ("--like", tmp_path / "runs/naive-20-s1")
    found = json.loads(coevolve("run", "--matrix", path, "--dry-run", "--json", *like).stdout)
    assert [row["ended"] for row in found["rows"]] == [0, 2]
    assert found["total"]["dollars"] == [0, 0]
    assert 0 < found["total"]["hours"][0] <= found["total"]["hours"][1]
    text = coevolve("run", "--matrix", path, "--dry-run").stdout
    assert "2 of them have not ended yet." in text
    narrow = os.environ | {"COLUMNS": "50"}
    text = coevolve("run", "--matrix", path, "--dry-run", env=narrow).stdout
    assert "total: trials 316 to 412, tokens 0, dollars $0, time " in " ".join(text.split())


def _started(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [COMMAND, "run", "--matrix", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _wait_for_trials(folder: Path, trials: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(CoevolveError):
            if read_state(folder).evaluating.trials >= trials:
                return
        time.sleep(0.05)
    raise AssertionError("no trial was done in time")
