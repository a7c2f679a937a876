"""From `coevolve init` to the end of a run, as a newcomer does it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import command
from tests.effort import effort


def coevolve(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return command.coevolve(*arguments, cwd=folder)


def finished(folder: Path) -> dict[str, Any]:
    """The state of the run of the project in a folder."""
    done = coevolve(folder, "run", "coevolve.toml")
    assert done.returncode == 0, done.stderr
    report = coevolve(folder, "status", "runs/readings", "--json")
    state: dict[str, Any] = json.loads(report.stdout)
    assert (state["phase"], state["why"]) == ("ended", "finished"), done.stdout
    return state


@pytest.fixture
def project(tmp_path: Path) -> Path:
    assert coevolve(tmp_path, "init").returncode == 0
    return tmp_path


def test_the_project_runs_and_finds_a_better_harness(project: Path) -> None:
    state = finished(project)
    candidates = {one["name"]: one for one in state["candidates"]}
    starts = [one for one in candidates.values() if one["start"]]
    chosen = candidates[state["chosen"]["candidate"]]
    assert len(candidates) == 2 + 8 * 2
    assert chosen["test"] > max(start["test"] for start in starts) + 0.1
    assert state["searched"] < 0.4 * state["full"]


def test_the_same_seed_ends_alike_with_one_worker_or_three(project: Path) -> None:
    config = project / "coevolve.toml"
    config.write_text(config.read_text().replace("rounds = 8", f"rounds = {effort(2, 3)}"))
    chosen = []
    for workers in (1, 3):
        text = config.read_text().replace("[executor]", f"[executor]\nworkers = {workers}")
        (project / f"w{workers}").mkdir()
        assert coevolve(project / f"w{workers}", "init").returncode == 0
        (project / f"w{workers}" / "coevolve.toml").write_text(text)
        state = finished(project / f"w{workers}")
        chosen.append((state["chosen"], [one["estimate"] for one in state["candidates"]]))
    assert chosen[0] == chosen[1]


def test_a_mistake_in_the_file_ends_with_2_and_names_the_key(project: Path) -> None:
    config = project / "coevolve.toml"
    config.write_text(config.read_text().replace("rounds = 8", "round = 8"))
    done = coevolve(project, "run", "coevolve.toml")
    assert done.returncode == 2
    assert "unknown key 'search.round'. Did you mean 'search.rounds'?" in done.stderr
    assert not (project / "runs").exists()
