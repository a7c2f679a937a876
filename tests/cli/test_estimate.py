"""`coevolve estimate`, run as users run it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.textclass.files import PUBLISHED, needs_published
from tests.cli.projects import coevolve, write_doubling


def parts(*arguments: str | Path) -> dict[str, dict[str, Any]]:
    done = coevolve("estimate", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return {part["part"]: part for part in json.loads(done.stdout)["parts"]}


def test_trials_are_known_and_the_rest_is_unknown(tmp_path: Path) -> None:
    path = write_doubling(tmp_path)
    found = parts(path)
    assert found["phase 0"]["trials"] == [32, 32]
    assert found["rounds"]["trials"] == [24, 48]
    assert found["sealed test"]["trials"] == [12, 12]
    assert found["all"]["trials"] == [68, 92]
    assert found["all"]["hours"] is None
    done = coevolve("estimate", path)
    assert "unknown" in done.stdout
    assert "The cost of a trial is unknown. Add --like RUN" in done.stdout
    assert not (tmp_path / "runs").exists()


def test_a_trial_of_each_start_tells_the_time(tmp_path: Path) -> None:
    found = parts(write_doubling(tmp_path), "--trial")
    low, high = found["phase 0"]["hours"]
    assert 0 < low < high
    assert found["phase 0"]["tokens"] == [0, 0]
    assert found["proposing"]["dollars"] is None
    assert found["all"]["hours"] is None


def test_proposing_what_is_written_already_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "world.toml"
    path.write_text(
        '[search]\nrounds = 2\n[benchmark]\nkind = "synthetic"\n[proposer]\nkind = "synthetic"\n'
    )
    found = parts(path, "--trial")
    assert found["proposing"]["tokens"] == [0, 0]
    low, high = found["all"]["hours"]
    assert 0 < low < high
    assert "cost of proposing" not in coevolve("estimate", path).stdout


def test_an_earlier_run_tells_everything(finished: Path) -> None:
    found = parts(finished / "coevolve.toml", "--like", finished / "runs" / "doubling")
    low, high = found["all"]["hours"]
    assert 0 < low <= high
    assert found["all"]["tokens"] == [0, 0]


PAPER = """
[search]
rounds = 20
candidates = 3
{search}
[benchmark]
kind = "synthetic"
pools = {{ uspto = 30, symptom2disease = 50, law = 50 }}
[proposer]
kind = "synthetic"
"""
ROWS = [
    ('protocol = "task-coevolve"\nfraction = 0.07\nrounding = "floor"', 480, "2/3/3", "down"),
    ('protocol = "task-coevolve"\nfraction = 0.07', 660, "3/4/4", "up"),
    ('protocol = "task-coevolve"\nfraction = 0.2', 1_560, "6/10/10", ""),
    ('protocol = "naive"\nfraction = 0.07\nrounding = "floor"', 480, "2/3/3", "down"),
    ('protocol = "full"', 7_800, "", ""),
]


@pytest.mark.parametrize(("search", "evaluations", "drawn", "way"), ROWS)
def test_the_rows_of_the_paper(
    search: str, evaluations: int, drawn: str, way: str, tmp_path: Path
) -> None:
    """Pools of 30, 50 and 50 tasks, 20 rounds of 3 candidates."""
    path = tmp_path / "paper.toml"
    path.write_text(PAPER.format(search=search))
    assert parts(path)["rounds"]["trials"][1] == evaluations
    said = " ".join(coevolve("estimate", path).stdout.split())
    names = "(uspto/symptom2disease/law)"
    assert (f"gets {drawn} of 30/50/50 tasks {names}" in said) == bool(drawn)
    assert (f"of each pool, rounded {way}." in said) == bool(way)


@needs_published
def test_the_7_percent_row_on_the_published_sets(tmp_path: Path) -> None:
    path = tmp_path / "paper.toml"
    path.write_text(
        PAPER.format(search=ROWS[0][0]).partition("[benchmark]")[0]
        + '[benchmark]\nkind = "textclass"\nsets = ["uspto", "s2d", "law"]\n'
        f'data = "{PUBLISHED}"\n[proposer]\nkind = "offline"\n[model]\nname = "embedded"\n'
    )
    assert parts(path)["rounds"]["trials"][1] == 480
    assert "2/3/3 of 30/50/50 tasks" in coevolve("estimate", path).stdout


def test_a_cap_ends_it(tmp_path: Path) -> None:
    path = write_doubling(tmp_path)
    path.write_text(path.read_text().replace("trials = 200", "trials = 70"))
    assert parts(path)["all"]["trials"] == [68, 70]
    assert "A cap of the budget ends the run early." in coevolve("estimate", path).stdout


def test_two_sources_at_once_are_refused(tmp_path: Path) -> None:
    done = coevolve("estimate", write_doubling(tmp_path), "--trial", "--like", tmp_path)
    assert done.returncode == 2
    assert "use one of them" in done.stderr
