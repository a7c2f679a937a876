"""Isolation by an ordinary process: limits and a clean environment only."""

import os
import secrets
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from coevolve.errors import StopRun
from coevolve.executors.isolation.bubblewrap import INSTALL
from coevolve.executors.isolation.cgroups import grouped
from coevolve.executors.isolation.folders import copy_folder
from coevolve.executors.isolation.launch import Launch, Program, confined, unused_uid
from coevolve.executors.isolation.system_paths import (
    RUNNER,
    environment,
    interpreter,
    site_packages,
)

MARK = "COEVOLVE_SANDBOX"
AS_ROOT = "process-as-root"
"""The isolation that may run candidates as root."""
PERMISSION = "COEVOLVE_CANDIDATES_AS_ROOT"
"""The environment variable that gives the same permission if it is 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainProcess:
    """Runs each candidate as a process, with limits, on a copy of its files.

    Root gives each candidate its own user id; where that is not possible, nothing is started
    unless it may run as root. Other users run candidates as themselves.

    Args:
        as_root: Whether candidates may run as root, even if the environment does not allow it.

    >>> PlainProcess(as_root=True).refusal()
    ''
    """

    as_root: bool = False

    protects = (
        "It finds no credentials in its environment and none of the engine's open files.",
        "It works on a private copy of its files.",
        "Its time, memory, processes, files, output and answers are limited.",
        "Its processes are found and ended with it, unless they hide.",
    )

    @property
    def name(self) -> str:
        """The name that the run records: it says whether candidates run as root."""
        return AS_ROOT if why_root() and not self.refusal() else "process"

    @property
    def exposes(self) -> tuple[str, ...]:
        """What a candidate can do; less if root can give it its own user id."""
        if self.name == AS_ROOT:
            return ("It runs as root and can do anything on this machine.", *_ALWAYS)
        files = (
            "It can read every file that all users may read"
            if gives_user()
            else "It can read and change every file of this user, the answers and the run included"
        )
        others = (
            "It can see the command lines of all processes."
            if gives_user()
            else "It can signal this user's processes and read their environment and memory."
        )
        return f"{files}.", others, *_ALWAYS

    def refusal(self, readable: Sequence[Path] = ()) -> str:
        """Why it starts no candidate here, and what to do; empty if it does.

        Args:
            readable: Files and folders that the candidate must be able to read.
        """
        why = why_root(readable)
        if not why or self.as_root or os.environ.get(PERMISSION) == "1":
            return ""
        return (
            f"isolation 'process' would run candidates as root, because {why}. Use isolation "
            f"'bwrap' ({INSTALL}), start coevolve as an ordinary user, or make that path readable "
            f"by all users. If you trust every candidate, allow it: isolation '{AS_ROOT}', or "
            f"{PERMISSION}=1 in the environment."
        )

    def launch(self, program: Program) -> Launch:
        """How to start a limited process.

        This hides neither paths nor the network.

        Raises:
            StopRun: It would run as root, which is not allowed.
        """
        if refusal := self.refusal(program.readable):
            raise StopRun(refusal)
        scratch = Path(tempfile.mkdtemp(prefix="coevolve-"))
        copy = copy_folder(program.folder, scratch / "candidate")
        home = scratch / "tmp"
        home.mkdir()
        own_user = os.getuid() == 0 and not why_root(program.readable)
        uid = unused_uid(program.slot) if own_user else None
        if uid is not None:
            scratch.chmod(0o711)
            os.chown(home, uid, uid)
        mark = secrets.token_hex(16)
        inner = confined(
            program,
            runner=str(RUNNER),
            folder=str(copy),
            writable=[str(home)],
            private_count=uid is not None,
            uid=uid,
            parent=os.getpid(),
        )
        launch = Launch(
            argv=tuple(inner),
            env={**environment(str(home)), MARK: mark},
            cwd=copy,
            fds=program.fds,
            scratch=scratch,
            mark=f"{MARK}={mark}",
            uid=uid,
            wrappers=0 if program.serve is None else 1,
        )
        return grouped(launch, program.limits)


_ALWAYS = (
    "It can use the network and the services of this machine.",
    "It can fill the disk with many files.",
    "Processes that hide can outlive it, and all of them can when the run is killed.",
)


def gives_user() -> bool:
    """Whether each candidate gets its own user id."""
    return os.getuid() == 0 and not why_root()


def why_root(readable: Sequence[Path] = ()) -> str:
    """Why a candidate would run as root; empty if it would not.

    Args:
        readable: Files and folders that it must be able to read, besides this Python.
    """
    if os.getuid() != 0:
        return ""
    if unused_uid(0) is None:
        return "this container has no other user ids"
    needed = (interpreter(), Path(os.__file__), Path(tempfile.gettempdir()), *readable)
    for path in (*needed, *map(Path, site_packages())):
        if not _reachable(path):
            return f"other users cannot read {path.resolve()}"
    return ""


def _reachable(path: Path) -> bool:
    real = path.resolve()
    passable = all(parent.stat().st_mode & 0o001 for parent in real.parents)
    return passable and bool(real.stat().st_mode & 0o004)
