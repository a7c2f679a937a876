"""A run with past results is extended after their file was changed, moved or replaced."""

import json
from pathlib import Path

import pytest

from coevolve.runs.session import read_state
from tests.cli.projects import coevolve, write_doubling

HEAD = "candidate,task,score\n"


@pytest.fixture
def doubling(tmp_path: Path) -> Path:
    """A project whose benchmark reads the folder in which its past results are."""
    path = write_doubling(tmp_path)
    source = tmp_path / "benchmark.py"
    source.write_text(f"{source.read_text()}\nimport os\nNAMES = os.listdir('data')\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data/rows.txt").write_text("1\n")
    path.write_text(
        path.read_text().replace("[search]\n", '[search]\nhistory = "data/past.csv"\n')
    )
    return path


def test_only_other_results_in_the_file_need_a_decision(doubling: Path) -> None:
    folder, data = doubling.parent, doubling.parent / "data"
    rows = "".join(f"same,{task},{int(task == 0)}\n" for task in range(8))
    (data / "past.csv").write_text(HEAD + rows)
    began = coevolve("run", doubling.name, "-q", cwd=folder)
    assert began.returncode == 0, began.stderr
    assert "data/rows.txt" in (read_state(folder / "runs/doubling").fingerprint or {})

    (data / "past.csv").write_text(HEAD + "same,1,1\n")
    changed = coevolve("resume", doubling.name, "--rounds", "4", "--json", cwd=folder)
    assert changed.returncode == 0, changed.stderr
    assert json.loads(changed.stdout)["imports"][0]["phase_0"] == 8

    (data / "past.csv").unlink()
    (folder / "moved.csv").write_text(HEAD + rows)
    text = doubling.read_text()
    doubling.write_text(text.replace("data/past.csv", "moved.csv"))
    moved = coevolve("resume", doubling.name, "--rounds", "5", "-q", cwd=folder)
    assert moved.returncode == 0, moved.stderr

    (folder / "other.csv").write_text(HEAD + "old,1,1\nold,2,0\n")
    doubling.write_text(text.replace("data/past.csv", "other.csv"))
    asked = coevolve("resume", doubling.name, cwd=folder)
    assert asked.returncode == 2
    assert 'search.history: recorded "data/past.csv", now "other.csv"' in asked.stderr
    command = "coevolve import other.csv --to runs/doubling"
    assert command in asked.stderr
    taken = coevolve(*command.split()[1:], cwd=folder)
    assert taken.returncode == 0, taken.stderr
    assert "count when it is extended: coevolve resume runs/doubling --rounds TOTAL" in (
        " ".join(taken.stdout.split())
    )
    done = coevolve("resume", doubling.name, "--rounds", "6", "-q", cwd=folder)
    assert done.returncode == 0, done.stderr
    state = read_state(folder / "runs/doubling")
    assert (state.selector.observed, state.changes) == (("past:old",), [])

    (data / "rows.txt").write_text("2\n")
    stopped = coevolve("resume", doubling.name, "--rounds", "7", cwd=folder)
    assert stopped.returncode == 2
    assert "data/rows.txt: changed" in stopped.stderr
