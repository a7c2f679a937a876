"""Removes what killed sessions left behind: containers, networks and folders of dead workers."""

import hashlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from coevolve.benchmarks.harbor.namespace_leftovers import start_ticks
from coevolve.errors import ConfigError

_OWNED = re.compile(r"^coevolve-([0-9a-f]{8})-(\d+)-(\d+)-")
_LABEL = "com.docker.compose.project"


@cache
def _process_space() -> str:
    """A name for this machine and its process numbers: others may share its container engine."""
    identity = Path("/etc/machine-id")
    machine = identity.read_text() if identity.exists() else ""
    numbers = Path("/proc/self/ns/pid").stat().st_ino
    return hashlib.sha256(f"{machine}{socket.gethostname()}{numbers}".encode()).hexdigest()[:8]


def owned_prefix() -> str:
    """The beginning of the names of this process's trials."""
    pid = os.getpid()
    return f"coevolve-{_process_space()}-{pid}-{start_ticks(pid)}"


def abandoned(name: str) -> bool:
    """Whether a trial of this name belongs to a worker of this machine that has ended.

    >>> abandoned(f"{owned_prefix()}-task-1a2b3c4d"), abandoned("something-else")
    (False, False)
    """
    owner = _OWNED.match(name)
    if owner is None or owner[1] != _process_space():
        return False
    return start_ticks(int(owner[2])) != owner[3]


def sweep_leftovers(environment: str, folder: Path | None = None) -> list[str]:
    """Remove the leftovers of one kind of environment; return their names.

    Args:
        environment: Its class, as `module:Class`.
        folder: Where the folders of environments without Docker are; by default in the cache.

    Raises:
        ConfigError: Docker is needed and does not answer.
    """
    removed = _swept_folders()
    if environment.endswith(":GuardedDockerEnvironment"):
        removed += sweep_docker()
    elif environment.endswith(":NamespaceEnvironment"):
        from coevolve.benchmarks.harbor.namespace_leftovers import sweep_leftovers as sweep
        from coevolve.benchmarks.harbor.namespace_support import environments_folder

        removed += sweep(environments_folder() if folder is None else folder)
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


def sweep_trials(folder: Path) -> list[str]:
    """Remove the folders of trials that were cut short; their names.

    Args:
        folder: Where the folders of trials are kept. Those with a result stay.
    """
    removed = []
    for path in folder.glob("coevolve-*"):
        if abandoned(path.name) and not (path / "result.json").exists():
            shutil.rmtree(path, ignore_errors=True)
            removed.append(path.name)
    return removed


def sweep_docker() -> list[str]:
    """Remove containers, networks, volumes and images of trials whose worker has ended.

    What cannot be removed, because another sweep has done so or a container is just ending, is
    left to the next sweep.
    """
    label = f'{{{{.Label "{_LABEL}"}}}}'
    kinds = (
        (("ps", "--all"), f"{{{{.ID}}}} {label}", ("rm", "--force", "--volumes")),
        (("network", "ls"), f"{{{{.ID}}}} {label}", ("network", "rm")),
        (("volume", "ls"), f"{{{{.Name}}}} {label}", ("volume", "rm", "--force")),
        (
            ("image", "ls"),
            "{{.Repository}}:{{.Tag}} {{.Repository}}",
            ("image", "rm", "--force"),
        ),
    )
    found: dict[str, str] = {}
    for listing, shown, removal in kinds:
        left = dict(_left(*listing, "--format", shown))
        for identity in left:
            _docker(*removal, identity, check=False)
        found |= left
    return sorted(set(found.values()))


def _left(*arguments: str) -> Iterator[tuple[str, str]]:
    """Things of Docker with the name of their trial, if it was abandoned."""
    for line in _docker(*arguments).splitlines():
        identity, _, trial = line.partition(" ")
        if abandoned(trial):
            yield identity, trial


def _docker(*arguments: str, check: bool = True) -> str:
    try:
        done = subprocess.run(
            ["docker", *arguments], capture_output=True, text=True, timeout=60, check=check
        )
    except FileNotFoundError:
        raise ConfigError(
            "environment = 'docker' needs the command `docker`. Install Docker, or set "
            "environment = 'namespace' (docs/terminal-bench-environments.md)."
        ) from None
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = str(getattr(error, "stderr", "") or error).strip()
        raise ConfigError(
            f"Docker does not answer: {said}. Start it, or set environment = 'namespace'."
        ) from error
    return done.stdout
