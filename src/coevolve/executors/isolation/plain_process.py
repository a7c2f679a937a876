"""Isolation by an ordinary process: limits and a clean environment only."""

import os
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path

from coevolve.executors.isolation.folders import copy_folder
from coevolve.executors.isolation.launch import Launch, Program, confined, unused_uid
from coevolve.executors.isolation.system_paths import (
    RUNNER,
    environment,
    interpreter,
    site_packages,
)

MARK = "COEVOLVE_SANDBOX"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainProcess:
    """Runs each candidate as a process of the same user, with limits, on a copy of its files.

    >>> PlainProcess().name
    'process'
    """

    name = "process"
    protects = (
        "It finds no credentials in its environment and none of the engine's open files.",
        "It works on a private copy of its files.",
        "Its time, memory, processes, files, output and answers are limited.",
        "Its processes are found and ended with it, unless they hide.",
    )

    @property
    def exposes(self) -> tuple[str, ...]:
        """What a candidate can do; less if root can give it its own user id."""
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
        return (
            f"{files}.",
            others,
            "It can use the network and the services of this machine.",
            "It can fill the disk with many files.",
            "Processes that hide can outlive it, and all of them can when the run is killed.",
        )

    def launch(self, program: Program) -> Launch:
        """How to start a limited process.

        This hides neither paths nor the network. The process gets its own user id only if that
        user can read everything that it may read.
        """
        scratch = Path(tempfile.mkdtemp(prefix="coevolve-"))
        copy = copy_folder(program.folder, scratch / "candidate")
        home = scratch / "tmp"
        home.mkdir()
        own_user = gives_user() and all(map(_reachable, program.readable))
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
        return Launch(
            argv=tuple(inner),
            env={**environment(str(home)), MARK: mark},
            cwd=copy,
            fds=program.fds,
            scratch=scratch,
            mark=f"{MARK}={mark}",
            uid=uid,
            wrappers=0 if program.serve is None else 1,
        )


def gives_user() -> bool:
    """Whether this process is root and its Python is readable by every user."""
    if os.getuid() != 0 or unused_uid(0) is None:
        return False
    needed = (interpreter(), Path(os.__file__), Path(tempfile.gettempdir()))
    return all(map(_reachable, (*needed, *map(Path, site_packages()))))


def _reachable(path: Path) -> bool:
    real = path.resolve()
    passable = all(parent.stat().st_mode & 0o001 for parent in real.parents)
    return passable and bool(real.stat().st_mode & 0o004)
