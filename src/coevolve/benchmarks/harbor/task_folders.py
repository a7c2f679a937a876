"""Tasks in Harbor's format: a folder of task folders, or a data set by name and version."""

import asyncio
import json
import shutil
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatch
from pathlib import Path
from statistics import fmean
from typing import Any

from coevolve.errors import ConfigError, nearest
from coevolve.models.response_cache import cache_folder

TERMINAL_BENCH = "terminal-bench/terminal-bench-2-1"
"""The name at Harbor's registry of Terminal-Bench 2.1, the version that the paper used."""
ALIASES = {"terminal-bench-2.1": TERMINAL_BENCH}
_RECORD = "dataset.json"
_AGENT_SECONDS, _VERIFIER_SECONDS, _BUILD_SECONDS = 600.0, 600.0, 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFolder:
    """One task: its folder, its time limits and its difficulty, from its `task.toml`."""

    name: str
    folder: Path
    agent_seconds: float
    verifier_seconds: float
    build_seconds: float
    difficulty: str = ""

    @classmethod
    def read(cls, folder: Path) -> "TaskFolder":
        """The task in a folder.

        Raises:
            ConfigError: The folder has no valid task.
        """
        path = folder / "task.toml"
        try:
            said = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"{path} cannot be read: {error}.") from error
        for name in ("instruction.md", "environment", "tests"):
            if not (folder / name).exists() and not said.get("steps"):
                raise ConfigError(f"{folder} is not a Harbor task: it has no {name}.")
        return cls(
            name=folder.name,
            folder=folder.resolve(),
            agent_seconds=_seconds(said, "agent", "timeout_sec", _AGENT_SECONDS, path),
            verifier_seconds=_seconds(said, "verifier", "timeout_sec", _VERIFIER_SECONDS, path),
            build_seconds=_seconds(said, "environment", "build_timeout_sec", _BUILD_SECONDS, path),
            difficulty=str(said.get("metadata", {}).get("difficulty", "")),
        )

    @property
    def instruction(self) -> str:
        """What the agent is asked to do."""
        path = self.folder / "instruction.md"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def seconds(self, agent: float, verifier: float, build: float, setup: float) -> float:
        """The longest that a trial of it can take, with multipliers for its parts."""
        return (
            self.build_seconds * build
            + 360 * setup
            + self.agent_seconds * agent
            + self.verifier_seconds * verifier
        )


def _seconds(said: Mapping[str, Any], table: str, key: str, default: float, path: Path) -> float:
    value = said.get(table, {}).get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise ConfigError(f"{path}: {table}.{key} must be a positive number, got {value!r}.")
    return float(value)


def read_tasks_folder(folder: Path) -> dict[str, TaskFolder]:
    """All tasks in a folder, by name.

    Raises:
        ConfigError: It does not exist, or has no task.
    """
    if not folder.is_dir():
        raise ConfigError(f"the folder of tasks {folder} does not exist.")
    found = [path.parent for path in sorted(folder.glob("*/task.toml"))]
    if not found:
        raise ConfigError(
            f"{folder} has no tasks: a task is a folder with task.toml, instruction.md, "
            "environment and tests."
        )
    return {task.name: task for task in map(TaskFolder.read, found)}


def selected(
    tasks: Mapping[str, TaskFolder], include: Sequence[str], exclude: Sequence[str]
) -> dict[str, TaskFolder]:
    """The tasks that a pattern of `include` matches, if there are any, and none of `exclude`.

    Raises:
        ConfigError: A pattern matches no task, or none is left.
    """
    for pattern in (*include, *exclude):
        if not any(fnmatch(name, pattern) for name in tasks):
            raise ConfigError(f"no task matches {pattern!r}.{nearest(pattern, list(tasks))}")
    found = {
        name: task
        for name, task in tasks.items()
        if (not include or matches(name, include)) and not matches(name, exclude)
    }
    if not found:
        raise ConfigError(f"`tasks` and `exclude` leave none of the {len(tasks)} tasks.")
    return found


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns fits the name of a task."""
    return any(fnmatch(name, pattern) for pattern in patterns)


def past_seconds(folder: Path) -> dict[str, float]:
    """The mean seconds of the agent on each task, from folders of earlier trials.

    Args:
        folder: A job folder of Harbor, or `trials` of an earlier run.

    Raises:
        ConfigError: It has no finished trials.
    """
    found: dict[str, list[float]] = {}
    for path in sorted(folder.glob("*/result.json")):
        try:
            said = json.loads(path.read_text(encoding="utf-8", errors="replace"))
            begun, ended = (
                datetime.fromisoformat(said["agent_execution"][key])
                for key in ("started_at", "finished_at")
            )
            name = str(said["task_name"]).rpartition("/")[2]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # a trial that was cut short
        found.setdefault(name, []).append(max(1.0, (ended - begun).total_seconds()))
    if not found:
        raise ConfigError(f"costs_from: {folder} has no folders of finished trials.")
    return {name: fmean(seconds) for name, seconds in found.items()}


def downloaded(name: str, version: str | None = None, registry: Path | None = None) -> Path:
    """The folder of a data set's tasks, downloaded through Harbor if it is not there yet.

    It appears when all tasks are there, and does not change afterwards. Its file `dataset.json`
    has the revision that was downloaded.

    Args:
        name: As Harbor names it, such as "terminal-bench/terminal-bench-2-1".
        version: A version; for names with an owner, a tag, a number or the revision
            "sha256:...". Without one, the newest.
        registry: A registry file of your own, instead of Harbor's registry.

    Raises:
        ConfigError: The data set is unknown, or the registry cannot be reached.
    """
    name = ALIASES.get(name, name)
    shown = name if version is None else f"{name}@{version}"
    folder = cache_folder() / "harbor" / "datasets" / shown.replace("/", "--").replace(":", "-")
    if (folder / _RECORD).exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f"{folder.name}.part-", dir=folder.parent))
    try:
        asyncio.run(_download(name, version, registry, part))
        part.chmod(0o755)  # as other folders of the cache
        if not (folder / _RECORD).exists():  # another process may have been faster
            shutil.rmtree(folder, ignore_errors=True)
            part.rename(folder)
    except Exception as error:
        cause: BaseException = error
        while isinstance(cause, BaseExceptionGroup):  # downloads run side by side
            cause = cause.exceptions[0]
        raise ConfigError(
            f"the data set {shown!r} cannot be downloaded ({type(cause).__name__}: {cause}). "
            "Check the name and the network, or download it with `harbor download` on another "
            "machine and set `path` to its folder."
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def revision(folder: Path) -> str | None:
    """The revision of a downloaded data set, or None if its registry has none."""
    found = json.loads((folder / _RECORD).read_text(encoding="utf-8"))["revision"]
    return None if found is None else str(found)


async def _download(name: str, version: str | None, registry: Path | None, folder: Path) -> None:
    from harbor.models.job.config import DatasetConfig
    from harbor.tasks.client import TaskClient

    owned = "/" in name
    config = DatasetConfig(
        name=name,
        version=None if owned else version,
        ref=version if owned else None,
        registry_path=registry,
    )
    tasks = await config.get_task_configs()
    ids = [task.get_task_id() for task in tasks]
    found = await TaskClient().download_tasks(task_ids=ids, output_dir=folder, export=True)
    for path in map(Path, found.paths):
        if not path.is_relative_to(folder):  # a folder of this machine, named by a registry file
            (folder / path.name).symlink_to(path.resolve())
    record = {"name": name, "revision": config.ref or version, "tasks": len(ids)}
    (folder / _RECORD).write_text(json.dumps(record), encoding="utf-8")
