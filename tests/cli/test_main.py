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
    assert paper["settings"]["estimator"] == "phase-zero"
    assert "estimator phase-zero (threshold 0.2)" in " ".join(listed.split())


def test_the_settings_of_a_protocol_are_explained() -> None:
    shown = " ".join(run("protocols", "task-coevolve").stdout.split())
    assert "rounding ceil" in shown
    assert "λ of the term λ/√n; positive, so that every task can be drawn." in shown
    assert "One of exact, monte-carlo." in shown


def test_settings_change_the_protocols_that_have_them() -> None:
    rows = json.loads(run("worlds", "--json", *SMALL, "--set", "rounding=floor").stdout)
    plain = json.loads(run("worlds", "--json", *SMALL).stdout)
    assert rows[0] == plain[0]
    done = run("worlds", *SMALL, "--fraction", "0.01", "--set", "rounding=floor", "--json")
    assert [row["evaluations"] for row in json.loads(done.stdout)][1:] == [4, 4, 4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("worlds", "--set", "rounding"), "--set needs KEY=VALUE, such as rounding=floor"),
        (("worlds", "--set", "rounding=up"), "rounding must be 'ceil' or 'floor', got 'up'"),
        (("worlds", "--set", "first_look=0.2"), "first_look has no effect on full, naive"),
        (("worlds", "--set", "floor=1", "--set", "floor=2"), "--set floor is given twice"),
        (("worlds", "--set", "fraction=0.1"), "--set cannot change the fraction"),
        (("protocols", "naiv"), "Did you mean 'naive'?"),
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
