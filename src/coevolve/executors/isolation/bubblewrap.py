"""Isolation by bubblewrap: namespaces of the kernel, without a daemon or an image."""

import functools
import os
import platform
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coevolve.errors import StopRun
from coevolve.executors.isolation.folders import copy_folder, open_to_all
from coevolve.executors.isolation.launch import Launch, Limits, confined, unused_uid
from coevolve.executors.isolation.seccomp import filter_fd
from coevolve.executors.isolation.system_paths import (
    RUNNER,
    environment,
    links,
    masked,
    system_paths,
)

FOLDER = "/candidate"
_RUNNER = "/coevolve/runner.py"
EMPTY = ("--perms", "0755", "--size", "4096", "--tmpfs")
NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubblewrap:
    """Gives each sandbox its own file system, processes, network and user.

    Args:
        program: The bwrap to start; found on the PATH by default.
        change_user: Whether root gives each sandbox its own user id.
        hidden: Folders that it must not see, even inside folders of the system.

    >>> Bubblewrap(program="/usr/bin/bwrap").name
    'bwrap'
    """

    program: str = ""
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
        "A flaw in the kernel could let it escape; use a virtual machine against that.",
        "It can read installed programs and packages, and some path names of this machine.",
        "It shares the processor and its caches with all other programs.",
    )

    def command(
        self,
        argv: Sequence[str],
        *,
        folder: Path,
        limits: Limits,
        writable: Path | None = None,
        readable: Sequence[Path] = (),
        network: bool = False,
        slot: int = 0,
        serve: Mapping[str, Any] | None = None,
        fds: tuple[int, ...] = (),
    ) -> Launch:
        """How to start a program behind bwrap; see `Isolation.command`."""
        program = self.program or bwrap_program()
        uid = unused_uid(slot) if self.change_user and os.getuid() == 0 else None
        source, scratch = folder.resolve(), None
        if uid is not None and not open_to_all(source):
            scratch = Path(tempfile.mkdtemp(prefix="coevolve-"))
            scratch.chmod(0o711)
            source = copy_folder(source, scratch / "candidate")
        if uid is not None and writable is not None:
            os.chown(writable, uid, uid)
        filters = () if network else filter_fd()
        options = [
            *_kernel(uid, network, filters),
            *in_memory("/tmp", limits.file_bytes),  # first, because this Python may be inside it
            *_system(network, self.hidden),
            *in_memory("/dev/shm", limits.file_bytes),
            *("--remount-ro", "/dev"),
            *_own(source, writable, readable),
        ]
        inner = confined(
            argv,
            limits,
            runner=_RUNNER,
            private_count=uid is not None or (os.getuid() != 0 and counts_per_namespace()),
            uid=uid,
            parent=None,
            serve=None if serve is None else {**serve, "folder": FOLDER},
        )
        return Launch(
            argv=(program, *options, "--", *inner),
            env={},
            cwd=Path("/"),
            fds=(*fds, *filters),
            owned=filters,
            scratch=scratch,
            uid=uid,
            namespace=True,
            wrappers=2,
        )


def bwrap_program() -> str:
    """The path of bwrap; StopRun if it is not installed."""
    program = shutil.which("bwrap")
    if program is None:
        raise StopRun(
            "isolation 'bwrap' needs bubblewrap, which is not on the PATH; install it "
            "(apt install bubblewrap, dnf install bubblewrap) or use isolation 'process'."
        )
    return program


def counts_per_namespace() -> bool:
    """Whether the kernel counts processes per user namespace, as from Linux 5.14 on."""
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
        options += _same_place("--ro-bind", path)
    for folder in map(str, masked(shown, hidden)):
        options += [*EMPTY, folder, "--remount-ro", folder]
    options += ["--ro-bind", str(RUNNER), _RUNNER, "--dev", "/dev", "--proc", "/proc"]
    # The first process is bwrap itself and has no filter: its memory must not be writable.
    return (*options, *EMPTY, "/proc/1", "--remount-ro", "/proc/1")


def in_memory(place: str, size: int) -> tuple[str, ...]:
    """A private folder in memory of limited size, writable by all users."""
    return "--perms", "1777", "--size", str(size), "--tmpfs", place


def mount_at(option: str, source: Path, target: Path) -> list[str]:
    """A mount at a path whose parents are readable; bwrap alone would make them private."""
    options: list[str] = []
    for parent in reversed(target.parents[:-1]):
        options += ["--perms", "0755", "--dir", str(parent)]
    return [*options, option, str(source), str(target)]


def _own(folder: Path, writable: Path | None, readable: Sequence[Path]) -> list[str]:
    options = ["--ro-bind", str(folder), FOLDER, "--chdir", FOLDER]
    for path in readable:
        options += _same_place("--ro-bind", path)
    if writable is not None:
        options += _same_place("--bind", writable)
    return [*options, "--remount-ro", "/"]


def _same_place(option: str, path: Path) -> list[str]:
    return mount_at(option, path.resolve(), path.absolute())
