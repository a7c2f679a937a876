"""Control groups: limits on all processes of a sandbox together, their kernel memory included.

Limits of single processes do not add up, and count neither socket buffers nor pipes. A control
group (version 2) does, but only where this process may make groups: in the root group as root, or
in a group that was delegated to it (https://docs.kernel.org/admin-guide/cgroup-v2.html, section
2.5). A group with limited subgroups must not contain processes, so this process and its children
then move into a subgroup of their own.
"""

import contextlib
import functools
import itertools
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from coevolve.executors.isolation.launch import SPARE, Launch, Limits, SandboxError
from coevolve.executors.isolation.process_table import descendants

_ROOT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_CONTROLLERS = frozenset({"memory", "pids"})
_ENGINE = "coevolve-engine"
_SANDBOX = "coevolve-sandbox-"
_LONGEST_REMOVAL = 2.0
_JOIN = 'echo 0 > "$0" && exec "$@"'

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Group:
    """The control group of one sandbox."""

    folder: Path

    def joining(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """A command line that joins the group and then becomes this one."""
        return "/bin/sh", "-c", _JOIN, str(self.folder / "cgroup.procs"), *argv

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel has ended a process of the group for its memory."""
        with contextlib.suppress(OSError):
            rows = dict(map(str.split, (self.folder / "memory.events").read_text().splitlines()))
            return rows["oom_kill"] != "0"
        return False

    def remove(self) -> None:
        """End what is left in the group, and remove it."""
        deadline = time.monotonic() + _LONGEST_REMOVAL
        with contextlib.suppress(OSError):  # before Linux 5.14 there is no such file
            (self.folder / "cgroup.kill").write_text("1")
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                self.folder.rmdir()
                return
            time.sleep(0.001)


def grouped(launch: Launch, limits: Limits) -> Launch:
    """The same program in a control group with these limits, where there can be one."""
    parent = parent_group()
    if isinstance(parent, str):
        return launch
    group = Group(parent / f"{_SANDBOX}{os.getpid()}-{next(_numbers)}")
    wanted = {
        # Files in the private folders are memory, too.
        "memory.max": limits.memory_bytes + 2 * limits.file_bytes,
        "memory.oom.group": 1,
        "pids.max": limits.processes + launch.wrappers + SPARE,
    }
    try:
        group.folder.mkdir()
        for name, value in wanted.items():
            (group.folder / name).write_text(str(value))
        with contextlib.suppress(FileNotFoundError):  # there is none without swap
            (group.folder / "memory.swap.max").write_text("0")
    except OSError as error:
        launch.close()
        raise SandboxError(f"the control group {group.folder} cannot be made: {error}.") from error
    return replace(launch, argv=group.joining(launch.argv), group=group)


def why_no_groups() -> str:
    """Why sandboxes get no control groups here; empty if they do."""
    parent = parent_group()
    return parent if isinstance(parent, str) else ""


@functools.cache
def parent_group() -> Path | str:
    """The group in which this process may make groups with limits, or why there is none."""
    if not (_ROOT / "cgroup.controllers").exists():
        return "this system does not have control groups of version 2"
    lines = _OWN.read_text().splitlines()
    own = next((line[3:] for line in lines if line.startswith("0::")), "/..")
    if own.startswith("/.."):
        return "the control group of this process is not visible here"
    group = _ROOT / own.lstrip("/")
    group = group.parent if group.name == _ENGINE else group
    if missing := _CONTROLLERS - _words(group / "cgroup.controllers"):
        return f"the control group {group} has no controller for {' and '.join(sorted(missing))}"
    try:
        if not _words(group / "cgroup.subtree_control") >= _CONTROLLERS:
            if others := _others(group):
                return f"the control group {group} is shared with {others}"
            _divide(group)
        _remove_stale(group)
        probe = group / f"{_SANDBOX}{os.getpid()}"
        probe.mkdir()
        probe.rmdir()
    except OSError as error:
        return f"the control group {group} is not delegated to this user ({error.strerror})"
    return group


def _words(file: Path) -> set[str]:
    return set(file.read_text().split())


def _others(group: Path) -> str:
    """A process in the group that this one has not started; empty if there is none.

    The root group, the only one without a type, may be divided with processes in it.
    """
    if not (group / "cgroup.type").exists():
        return ""
    others = set(map(int, _words(group / "cgroup.procs"))) - set(descendants(os.getpid()))
    return f"process {min(others)}" if others else ""


def _divide(group: Path) -> None:
    """Move this process and its children into a subgroup, and allow limits on subgroups."""
    if (group / "cgroup.type").exists():
        engine = group / _ENGINE
        engine.mkdir(exist_ok=True)
        for pid in _words(group / "cgroup.procs"):
            with contextlib.suppress(ProcessLookupError):
                (engine / "cgroup.procs").write_text(pid)
    wanted = " ".join(f"+{name}" for name in sorted(_CONTROLLERS))
    (group / "cgroup.subtree_control").write_text(wanted)


def _remove_stale(parent: Path) -> None:
    """Remove the groups of processes that have ended."""
    for folder in parent.glob(f"{_SANDBOX}*"):
        pid = folder.name.removeprefix(_SANDBOX).partition("-")[0]
        if not Path("/proc", pid).exists():
            with contextlib.suppress(OSError):
                folder.rmdir()
