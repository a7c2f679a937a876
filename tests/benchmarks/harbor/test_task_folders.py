"""Tasks are found in folders and by registries, and mistakes are named."""

import json
from pathlib import Path

import pytest

from coevolve.benchmarks.harbor.task_folders import (
    TaskFolder,
    downloaded,
    past_seconds,
    read_tasks_folder,
    selected,
)
from coevolve.errors import ConfigError


def write_task(folder: Path, name: str, toml: str = "") -> Path:
    task = folder / name
    (task / "environment").mkdir(parents=True)
    (task / "tests").mkdir()
    (task / "environment" / "Dockerfile").write_text("FROM debian:bookworm-slim\n")
    (task / "tests" / "test.sh").write_text("echo 0 > /logs/verifier/reward.txt\n")
    (task / "instruction.md").write_text(f"Do {name}.")
    (task / "task.toml").write_text(toml or 'version = "1.0"\n')
    return task


def test_time_limits_are_those_of_the_task(tmp_path: Path) -> None:
    write_task(tmp_path, "one", "[agent]\ntimeout_sec = 90\n[verifier]\ntimeout_sec = 30.5\n")
    (task,) = read_tasks_folder(tmp_path).values()
    assert (task.name, task.agent_seconds, task.verifier_seconds) == ("one", 90.0, 30.5)
    assert task.instruction == "Do one."
    assert task.seconds(2, 1, 1, 0) == task.build_seconds + 180 + 30.5


@pytest.mark.parametrize("value", ["0", "-3", '"long"', "true"])
def test_a_wrong_time_limit_is_named(tmp_path: Path, value: str) -> None:
    task = write_task(tmp_path, "one", f"[agent]\ntimeout_sec = {value}\n")
    with pytest.raises(ConfigError, match=r"task\.toml: agent\.timeout_sec must be a positive"):
        TaskFolder.read(task)


def test_a_folder_without_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no tasks"):
        read_tasks_folder(tmp_path)
    with pytest.raises(ConfigError, match="does not exist"):
        read_tasks_folder(tmp_path / "absent")


def test_a_task_without_tests_is_refused(tmp_path: Path) -> None:
    task = write_task(tmp_path, "one")
    (task / "tests" / "test.sh").unlink()
    (task / "tests").rmdir()
    with pytest.raises(ConfigError, match="has no tests"):
        read_tasks_folder(tmp_path)


def test_patterns_select_tasks(tmp_path: Path) -> None:
    for name in ("fix-a", "fix-b", "make-c"):
        write_task(tmp_path, name)
    tasks = read_tasks_folder(tmp_path)
    assert list(selected(tasks, ["fix-*"], ["*-b"])) == ["fix-a"]
    with pytest.raises(ConfigError, match=r"no task matches 'fux-\*'"):
        selected(tasks, ["fux-*"], [])
    with pytest.raises(ConfigError, match="leave none of the 3 tasks"):
        selected(tasks, [], ["*"])


def test_a_data_set_of_a_registry_file_is_found_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COEVOLVE_CACHE", str(tmp_path / "cache"))
    task = write_task(tmp_path / "tasks", "one")
    registry = tmp_path / "registry.json"
    entry = {"name": "mine", "version": "1.0", "description": "", "metrics": []}
    registry.write_text(json.dumps([{**entry, "tasks": [{"name": "one", "path": str(task)}]}]))
    folder = downloaded("mine", "1.0", registry)
    assert list(read_tasks_folder(folder)) == ["one"]
    registry.unlink()
    assert downloaded("mine", "1.0", registry) == folder


def test_a_data_set_that_cannot_be_had_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COEVOLVE_CACHE", str(tmp_path / "cache"))
    registry = tmp_path / "registry.json"
    registry.write_text("[]")
    with pytest.raises(ConfigError, match=r"'mine@1\.0' cannot be downloaded .* set `path`"):
        downloaded("mine", "1.0", registry)
    assert not (tmp_path / "cache" / "harbor" / "datasets" / "mine@1.0" / ".complete").exists()


def test_costs_are_the_mean_times_of_earlier_trials(tmp_path: Path) -> None:
    for number, (task, seconds) in enumerate([("a", 10), ("a", 20), ("org/b", 5)]):
        folder = tmp_path / f"trial-{number}"
        folder.mkdir()
        times = {
            "started_at": "2026-01-01T00:00:00Z",
            "finished_at": f"2026-01-01T00:00:{seconds:02}Z",
        }
        (folder / "result.json").write_text(
            json.dumps({"task_name": task, "agent_execution": times})
        )
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "result.json").write_text('{"task_name": "a", "agent_execution": null}')
    assert past_seconds(tmp_path) == {"a": 15.0, "b": 5.0}
    with pytest.raises(ConfigError, match="has no folders of finished trials"):
        past_seconds(tmp_path / "cut")
