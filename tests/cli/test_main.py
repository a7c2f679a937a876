"""The command line, run as users run it."""

import json
import subprocess
import sys

import pytest

import coevolve
from tests.command import coevolve as run
from tests.command import fresh

SMALL = ("--tasks", "20", "--rounds", "2", "--per-round", "2", "--searches", "2")


def test_version() -> None:
    assert fresh("--version").stdout == f"coevolve {coevolve.__version__}\n"


def test_the_package_is_the_command() -> None:
    command = [sys.executable, "-m", "coevolve", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"coevolve {coevolve.__version__}\n"


def test_the_worlds_ends_with_a_table() -> None:
    done = run("worlds", *SMALL)
    assert done.returncode == 0, done.stderr
    for heading in ("protocol", "evaluations", "true score", "regret", "Spearman"):
        assert heading in done.stdout
    for name in ("full", "naive", "random-resample", "task-coevolve"):
        assert f"{name}: 2 searches done" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_the_worlds_as_json() -> None:
    done = run("worlds", "--json", *SMALL)
    rows = json.loads(done.stdout)
    assert [row["protocol"] for row in rows][0::3] == ["full", "task-coevolve"]
    assert [row["evaluations"] for row in rows] == [80, 16, 16, 16]
    assert all(row["searches"] == 2 for row in rows)


def test_the_worlds_repeats_itself() -> None:
    first, second = (run("worlds", "--json", *SMALL).stdout for _ in range(2))
    assert first == second


def test_protocols_are_listed() -> None:
    listed = run("protocols").stdout
    for name in ("full", "naive", "random-resample", "random-estimate", "task-coevolve"):
        assert name in listed
    rows = json.loads(run("protocols", "--json").stdout)
    (paper,) = (row for row in rows if row["name"] == "task-coevolve")
    assert paper["weighting"]["floor"] == 0.125
    assert all(row["summary"] for row in rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("worlds", "--fraction", "1.5"), "--fraction must be in (0, 1], got 1.5"),
        (("worlds", "--fraction", "nan"), "--fraction must be in (0, 1], got nan"),
        (("worlds", "--tasks", "0"), "--tasks must be at least 1, got 0"),
        (("worlds", "--seed", "-1"), "--seed must be at least 0, got -1"),
        (("worlds", "--rounds", "many"), "Invalid value for '--rounds'"),
        (("dmo",), "No such command 'dmo'"),
        (("worlds", "--colour"), "No such option: --colour"),
    ],
)
def test_bad_input_exits_with_2_and_says_what_was_wrong(
    arguments: tuple[str, ...], message: str
) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
