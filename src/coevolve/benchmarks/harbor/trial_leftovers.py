"""Removes what killed sessions left behind: containers, networks and folders of dead workers."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from coevolve.errors import ConfigError

_OWNED = re.compile(r"^coevolve-(\d+)-")
_LABEL = "com.docker.compose.project"


def alive(pid: int) -> bool:
    """Whether a process exists."""
    return Path(f"/proc/{pid}").exists()


def abandoned(name: str) -> bool:
    """Whether a trial of this name belongs to a worker that has ended.

    >>> abandoned("coevolve-999999999-task-1a2b3c4d"), abandoned("something-else")
    (True, False)
    """
    owner = _OWNED.match(name)
    return owner is not None and not alive(int(owner[1]))


def sweep_leftovers(environment: str) -> list[str]:
    """Remove the leftovers of an environment's kind; the names of what was removed.

    Raises:
        ConfigError: Docker is asked for and does not answer.
    """
    removed = _swept_folders()
    if environment == "docker":
        removed += sweep_docker()
    elif environment.endswith(":NamespaceEnvironment"):
        from coevolve.benchmarks.harbor.namespace_leftovers import sweep_leftovers as sweep
        from coevolve.benchmarks.harbor.namespace_support import environments_folder

        removed += sweep(environments_folder())
    return removed


def _swept_folders() -> list[str]:
    """Remove temporary folders whose trials all belong to workers that have ended."""
    removed = []
    for folder in Path(tempfile.gettempdir()).glob("coevolve-trials-*"):
        names = [path.name for path in folder.glob("coevolve-*")] if folder.is_dir() else []
        if names and all(map(abandoned, names)):
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(folder.name)
    return removed


def sweep_docker() -> list[str]:
    """Remove containers, volumes and networks of compose projects whose worker has ended."""
    listed = _docker("ps", "--all", "--format", f'{{{{.ID}}}} {{{{.Label "{_LABEL}"}}}}')
    projects: dict[str, list[str]] = {}
    for line in listed.splitlines():
        identity, _, project = line.partition(" ")
        if abandoned(project):
            projects.setdefault(project, []).append(identity)
    for identities in projects.values():
        _docker("rm", "--force", "--volumes", *identities)
    networks = _docker("network", "ls", "--format", "{{.Name}}").split()
    left = [name for name in networks if abandoned(name)]
    if left:
        _docker("network", "rm", *left)
    return [*projects, *left]


def _docker(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["docker", *arguments], capture_output=True, text=True, timeout=60, check=True
        )
    except FileNotFoundError:
        raise ConfigError(
            "environment = 'docker' needs the command `docker`. Install Docker, or set "
            "environment = 'namespace' (docs/terminal-bench.md)."
        ) from None
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = str(getattr(error, "stderr", "") or error).strip()
        raise ConfigError(
            f"Docker does not answer: {said}. Start it, or set environment = 'namespace'."
        ) from error
    return done.stdout
