"""Which tasks of a folder can be built without Docker, and why others cannot."""

import asyncio
import tomllib
from dataclasses import dataclass
from pathlib import Path

from coevolve.benchmarks.harbor.dockerfile import read_dockerfile
from coevolve.benchmarks.harbor.root_folders import RootFolder, find_root
from coevolve.benchmarks.harbor.task_layers import build_layer, layer_key
from coevolve.benchmarks.harbor.transfer_archives import NamespaceError
from coevolve.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCheck:
    """Whether a task can be built; the reason is empty if it can."""

    task: str
    image: str = ""
    root: str = ""
    reason: str = ""
    result: str = ""


def check_tasks(folder: Path, *, root: str | None, build: bool) -> list[TaskCheck]:
    """Check one task, or all tasks of a folder.

    Args:
        folder: A folder with `task.toml`, or a folder of such folders.
        root: The root for all tasks; by default each task's base image decides.
        build: Whether to build them as well.

    Raises:
        InputError: There is no task.
    """
    one = (folder / "task.toml").exists()
    tasks = [folder] if one else sorted(path.parent for path in folder.glob("*/task.toml"))
    if not tasks:
        raise InputError(f"there is no task in {folder}: no folder in it has a task.toml.")
    return [_check(task, root, build) for task in tasks]


def _check(task: Path, chosen: str | None, build: bool) -> TaskCheck:
    image = name = ""
    place = task / "environment"
    dockerfile = place / "Dockerfile"
    try:
        if (place / "docker-compose.yaml").exists():
            raise InputError("cannot be built: docker-compose.yaml is not supported")
        image = read_dockerfile(dockerfile).base if dockerfile.exists() else _image(task)
        root = find_root(image, chosen=chosen, more={})
        name = root.name
        result = "can be built"
        if build and dockerfile.exists():
            asyncio.run(_build(root, dockerfile, place))
            result = "built"
    except (InputError, NamespaceError) as error:
        return TaskCheck(task=task.name, image=image, root=name, reason=str(error))
    return TaskCheck(task=task.name, image=image, root=name, result=result)


def _image(task: Path) -> str:
    try:
        facts = tomllib.loads((task / "task.toml").read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"task.toml is not valid TOML: {error}") from error
    image = facts.get("environment", {}).get("docker_image")
    if not isinstance(image, str):
        raise InputError("cannot be built: there is neither a Dockerfile nor a docker_image")
    return image


async def _build(root: RootFolder, dockerfile: Path, place: Path) -> None:
    recipe = read_dockerfile(dockerfile, base_env=root.env)
    await build_layer(root, recipe, place, key=layer_key(root, dockerfile, place))
