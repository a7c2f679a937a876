"""Tasks are found in folders and by registries, and mistakes are named."""

import json
import tarfile
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coevolve.benchmarks.harbor.environment_checks import check_dataset
from coevolve.benchmarks.harbor.task_folders import (
    TaskFolder,
    downloaded,
    past_seconds,
    read_tasks_folder,
    revision,
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
    assert not list((tmp_path / "cache" / "harbor" / "datasets").iterdir())


class Registry:
    """Harbor's registry of packages, at the calls that would reach the network."""

    def __init__(self, tasks: list[Path]) -> None:
        self.tasks, self.refs = tasks, list[str]()

    async def resolve_dataset_version(self, org: str, name: str, ref: str) -> Any:
        self.refs.append(f"{org}/{name}@{ref}")
        return {}, {"id": "1", "content_hash": "d" * 64}

    async def get_dataset_version_tasks(self, dataset: str) -> Any:
        del dataset
        owner = SimpleNamespace(name="terminal-bench")
        return [
            SimpleNamespace(
                task_version=SimpleNamespace(
                    package=SimpleNamespace(org=owner, name=task.name),
                    content_hash=sha256(task.name.encode()).hexdigest(),
                )
            )
            for task in self.tasks
        ]

    async def get_dataset_version_files(self, dataset: str) -> Any:
        del dataset
        return []

    async def resolve_task_version(self, org: str, name: str, ref: str) -> Any:
        del org
        found = ref.removeprefix("sha256:")
        return SimpleNamespace(id="1", archive_path=name, content_hash=found, yanked_at=None)

    async def record_task_download(self, task: str) -> None:
        """Nothing is counted."""

    async def download_file(self, name: str, target: Path) -> None:
        source = next(task for task in self.tasks if task.name == name)
        with tarfile.open(target, "w:gz") as archive:
            for path in source.iterdir():
                archive.add(path, path.name)


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    tasks = [write_task(tmp_path / "source", name) for name in ("fix-git", "chess-move")]
    made = Registry(tasks)
    for place in (
        "harbor.db.client.RegistryDB",
        "harbor.registry.client.package.RegistryDB",
        "harbor.storage.supabase.SupabaseStorage",
    ):
        monkeypatch.setattr(place, lambda: made)
    monkeypatch.setenv("COEVOLVE_CACHE", str(tmp_path / "cache"))
    return made


def test_tasks_of_a_downloaded_package_keep_their_names(registry: Registry) -> None:
    folder = downloaded("terminal-bench-2.1")
    assert sorted(read_tasks_folder(folder)) == ["chess-move", "fix-git"]
    assert registry.refs == ["terminal-bench/terminal-bench-2-1@latest"]
    assert revision(folder) == "sha256:" + "d" * 64


def test_a_version_pins_a_package(registry: Registry) -> None:
    pinned = "sha256:" + "d" * 64
    folder = downloaded("terminal-bench-2.1", pinned)
    assert registry.refs == [f"terminal-bench/terminal-bench-2-1@{pinned}"]
    assert folder != downloaded("terminal-bench-2.1")
    assert revision(folder) == pinned


def test_a_download_that_fails_halfway_leaves_nothing(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(name: str, target: Path) -> None:
        if name == "chess-move":
            raise OSError("connection reset")
        await Registry.download_file(registry, name, target)

    with monkeypatch.context() as patch:
        patch.setattr(registry, "download_file", broken)
        with pytest.raises(ConfigError, match="connection reset"):
            downloaded("terminal-bench-2.1")
    assert not list((tmp_path / "cache" / "harbor" / "datasets").iterdir())
    assert len(read_tasks_folder(downloaded("terminal-bench-2.1"))) == 2


def test_doctor_says_how_to_pin_a_data_set(registry: Registry) -> None:
    del registry
    (finding,) = check_dataset("terminal-bench-2.1", None)
    assert "2 tasks" in finding.detail
    assert f'version = "sha256:{"d" * 64}"' in finding.detail


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
