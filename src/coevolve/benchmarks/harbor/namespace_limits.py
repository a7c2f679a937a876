"""Control groups of task environments: limits on memory, processes and processors.

Both versions of control groups work. Where neither can be written, single processes have limits
on memory and processes, nothing limits the processors, and `why_no_limits` says why.
"""

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coevolve.executors.isolation.cgroups import parent_group

_V1 = Path("/sys/fs/cgroup")
_CONTROLLERS = {"memory": "memory", "pids": "processes", "cpu": "processors"}
"""What each controller limits."""
_PERIOD = 100_000
PROCESSES = 4096
"""The most processes and threads of one environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceLimits:
    """What all processes of an environment may use together; None means no limit."""

    memory_mb: int | None = None
    cpus: float | None = None
    processes: int = PROCESSES
    disk_mb: int | None = None


def control_groups(name: str, limits: NamespaceLimits) -> list[dict[str, Any]]:
    """The groups to make for an environment: folders, and what to write to their files."""
    parents = group_parents()
    memory = None if limits.memory_mb is None else limits.memory_mb << 20
    if "" in parents:
        files = {"pids.max": str(limits.processes)}
        if memory is not None:
            files |= {"memory.max": str(memory), "memory.oom.group": "0"}
        if limits.cpus is not None and "cpu" in _words(parents[""] / "cgroup.subtree_control"):
            files["cpu.max"] = f"{int(limits.cpus * _PERIOD)} {_PERIOD}"
        return [{"folder": str(parents[""] / name), "files": files}]
    wanted: dict[str, dict[str, str]] = {"pids": {"pids.max": str(limits.processes)}}
    if memory is not None:
        wanted["memory"] = {"memory.limit_in_bytes": str(memory)}
    if limits.cpus is not None:
        wanted["cpu"] = {
            "cpu.cfs_period_us": str(_PERIOD),
            "cpu.cfs_quota_us": str(int(limits.cpus * _PERIOD)),
        }
    return [
        {"folder": str(parents[controller] / name), "files": files}
        for controller, files in wanted.items()
        if controller in parents
    ]


def process_limits(limits: NamespaceLimits) -> dict[str, int]:
    """Limits of single processes, where there are no control groups for all together."""
    parents = group_parents()
    wanted: dict[str, int] = {}
    if not {"", "pids"} & parents.keys():
        wanted["RLIMIT_NPROC"] = limits.processes
    if not {"", "memory"} & parents.keys() and limits.memory_mb is not None:
        wanted["RLIMIT_DATA"] = limits.memory_mb << 20
    return wanted


def why_no_limits() -> str:
    """Which limits are missing here and why; empty if none is."""
    parents = group_parents()
    if "" in parents:
        return ""
    missing = [limited for name, limited in _CONTROLLERS.items() if name not in parents]
    if not missing:
        return ""
    reason = _reason() or "the control groups are not writable"
    return (
        f"an environment as a whole has no limit on {', '.join(missing)}: {reason}. Single "
        "processes have limits instead, except on processors."
    )


@functools.cache
def _version_2() -> Path | str:
    return parent_group()


def _reason() -> str:
    found = _version_2()
    return found if isinstance(found, str) else ""


@functools.cache
def group_parents() -> dict[str, Path]:
    """The group for each controller in which groups can be made; "" for version 2."""
    own: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        own |= dict.fromkeys(controllers.split(","), path)
    found: dict[str, Path] = {}
    for name in _CONTROLLERS:
        top = _V1 / name
        if not (top / "cgroup.procs").exists():
            continue
        below = top / own.get(name, "/").lstrip("/")
        place = below if (below / "cgroup.procs").exists() else top
        if os.access(place, os.W_OK):
            found[name] = place
    if found:
        return found
    parent = _version_2()
    return {} if isinstance(parent, str) else {"": parent}


def _words(file: Path) -> set[str]:
    return set(file.read_text().split())
