"""Isolation by bubblewrap: namespaces of the kernel, without a daemon or an image."""

import functools
import os
import platform
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from coevolve.errors import StopRun
from coevolve.executors.isolation.cgroups import grouped
from coevolve.executors.isolation.folders import copy_folder, open_to_all
from coevolve.executors.isolation.launch import Launch, Program, confined, unused_uid
from coevolve.executors.isolation.seccomp import filter_fd
from coevolve.executors.isolation.system_paths import (
    RUNNER,
    RUNNER_FILES,
    environment,
    links,
    masked,
    system_paths,
)

FOLDER = "/candidate"
_PROGRAM = "/coevolve"
_RUNNER = f"{_PROGRAM}/{RUNNER.name}"
_WRITABLE = _TMP, _SHM = "/tmp", "/dev/shm"
EMPTY = ("--perms", "0755", "--size", "4096", "--tmpfs")
INSTALL = "apt install bubblewrap, dnf install bubblewrap"
NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubblewrap:
    """Gives each sandbox its own file system, processes, network and user.

    Args:
        change_user: Whether root gives each sandbox its own user id.
        hidden: Folders that it must not see, even inside folders of the system.

    >>> Bubblewrap().name
    'bwrap'
    """

    change_user: bool = True
    hidden: tuple[Path, ...] = ()

    name = "bwrap"
    protects = (
        "It sees its own files, the system's programs and this Python, all read-only.",
        "It sees no home, project, run folder, answers, test tasks or environment variables.",
        "It does not see this package, nor its included or downloaded data sets.",
        "It has no network, not even to this machine.",
        "It sees and signals only its own processes, and all of them end with it.",
        "Its time, memory, processes, files, output and answers are limited.",
    )
    exposes = (
        "A flaw in the kernel could let it escape; a virtual machine protects against that.",
        "It can read installed programs and packages, and some path names of this machine.",
        "It shares the processor and its caches with all other programs.",
    )

    def launch(self, program: Program) -> Launch:
        """How to start a program in a sandbox of bwrap."""
        bwrap = bwrap_program()
        uid = unused_uid(program.slot) if self.change_user and os.getuid() == 0 else None
        source, scratch = program.folder.resolve(), None
        if uid is not None and not open_to_all(source):
            scratch = Path(tempfile.mkdtemp(prefix="coevolve-"))
            scratch.chmod(0o711)
            source = copy_folder(source, scratch / "candidate")
        filters = () if program.network else filter_fd()
        size = program.limits.file_bytes
        ways = _ways_in_tmp([*system_paths(network=program.network), *program.readable])
        options = [
            *_kernel(uid, program.network, filters),
            *in_memory(_TMP, size),  # first, because this Python may be inside it
            *(option for way in ways for option in (*EMPTY, way)),
            *_system(program.network, self.hidden),
            *in_memory(_SHM, size),
            *("--remount-ro", "/dev"),
            *_own(source, program.readable),
            *(option for way in ways for option in ("--remount-ro", way)),
        ]
        inner = confined(
            program,
            runner=_RUNNER,
            folder=FOLDER,
            writable=_WRITABLE,
            private_count=uid is not None or (os.getuid() != 0 and counts_per_namespace()),
            uid=uid,
            parent=None,
            namespace=True,
        )
        launch = Launch(
            argv=(bwrap, *options, "--", *inner),
            env={},
            cwd=Path("/"),
            fds=(*program.fds, *filters),
            owned=filters,
            scratch=scratch,
            uid=uid,
            namespace=True,
            wrappers=2 if program.serve is None else 3,
        )
        return grouped(launch, program.limits)


def bwrap_program() -> str:
    """The path of bwrap; StopRun if it is not installed."""
    program = shutil.which("bwrap")
    if program is None:
        raise StopRun(
            f"bubblewrap is not installed (no bwrap on the PATH); install it ({INSTALL})."
        )
    return program


def counts_per_namespace() -> bool:
    """Whether the kernel counts processes per user namespace; Linux does from 5.14 on."""
    parts = platform.release().split(".")
    try:
        return (int(parts[0]), int(parts[1])) >= (5, 14)
    except (ValueError, IndexError):
        return False


def _kernel(uid: int | None, network: bool, filters: tuple[int, ...]) -> list[str]:
    options = [*NAMESPACES, "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    options += ["--hostname", "sandbox", "--clearenv"]
    if not network:
        options += ["--unshare-net"]
    if uid is None:
        options += ["--unshare-user"]
    else:
        options += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    for fd in filters:
        options += ["--seccomp", str(fd)]
    for name, value in environment("/tmp").items():
        options += ["--setenv", name, value]
    return options


@functools.cache
def _system(network: bool, hidden: tuple[Path, ...]) -> tuple[str, ...]:
    options: list[str] = []
    for target, link in links():
        options += ["--symlink", target, link]
    shown = system_paths(network=network)
    for path in shown:
        options += _read_only(path)
    for folder in map(str, masked(shown, hidden)):
        options += [*EMPTY, folder, "--remount-ro", folder]
    for file in RUNNER_FILES:
        options += ["--ro-bind", str(file), f"{_PROGRAM}/{file.name}"]
    options += ["--dev", "/dev", "--proc", "/proc"]
    # The first process is bwrap itself and has no filter: its memory must not be writable.
    return (*options, *EMPTY, "/proc/1", "--remount-ro", "/proc/1")


def in_memory(place: str, size: int) -> tuple[str, ...]:
    """A private folder in memory of limited size, writable by all users."""
    return "--perms", "1777", "--size", str(size), "--tmpfs", place


def _ways_in_tmp(paths: Sequence[Path]) -> list[str]:
    """The folders in /tmp that lead to some paths.

    They are mounts of their own, read-only in the end, so that a candidate cannot leave files in
    them, and so that the runner can tell them from what a candidate has made in /tmp.
    """
    inside = [path.absolute() for path in paths if path.absolute().is_relative_to(_TMP)]
    tops = {Path(_TMP, path.relative_to(_TMP).parts[0]) for path in inside if path != Path(_TMP)}
    return sorted(str(top) for top in tops.difference(inside))


def mount_at(option: str, source: Path, target: Path) -> list[str]:
    """A mount at a path whose parents are readable; bwrap alone would make them private."""
    options: list[str] = []
    for parent in reversed(target.parents[:-1]):
        options += ["--perms", "0755", "--dir", str(parent)]
    return [*options, option, str(source), str(target)]


def _own(folder: Path, readable: Sequence[Path]) -> list[str]:
    options = ["--ro-bind", str(folder), FOLDER, "--chdir", FOLDER]
    for path in readable:
        options += _read_only(path)
    return [*options, "--remount-ro", "/"]


def _read_only(path: Path) -> list[str]:
    return mount_at("--ro-bind", path.resolve(), path.absolute())
