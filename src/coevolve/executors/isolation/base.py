"""What an isolation is: a way to start a program so that it can do little harm."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from coevolve.executors.isolation.limits import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How to start an isolated program; `close` removes what it needed, after its end.

    Args:
        argv: Command line.
        env: The whole environment.
        cwd: Folder to start in.
        fds: File descriptors it inherits.
        owned: Those of them that are closed here once it has started.
        scratch: Folder made for it alone.
        mark: Text in the environment of all its processes, by which to find them.
        uid: User that only its processes have.
        namespace: Whether its processes end with the first child of the command.
        wrappers: Processes in its tree that are not the candidate's.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    fds: tuple[int, ...] = ()
    owned: tuple[int, ...] = ()
    scratch: Path | None = None
    mark: str = ""
    uid: int | None = None
    namespace: bool = False
    wrappers: int = 0

    def started(self) -> None:
        """Close what the started program has inherited."""
        for fd in self.owned:
            os.close(fd)

    def close(self) -> None:
        """Remove the scratch folder."""
        if self.scratch is not None:
            remove(self.scratch)


class Isolation(Protocol):
    """A way to start programs that may be hostile.

    `protects` and `exposes` say in sentences what such a program cannot and can do.
    """

    @property
    def name(self) -> str: ...

    @property
    def protects(self) -> tuple[str, ...]: ...

    @property
    def exposes(self) -> tuple[str, ...]: ...

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
        """How to start a program in a folder it can only read.

        Args:
            argv: The program and its arguments.
            folder: What it starts in and may read.
            limits: What it may use.
            writable: A folder it may write, at its own path.
            readable: Further files or folders it may read, at their own paths.
            network: Whether it may reach the network.
            slot: Different for sandboxes of this process that run at once.
            serve: What the runner serves instead of executing `argv`.
            fds: Descriptors it inherits.
        """
        ...


def remove(path: Path) -> None:
    """Delete a folder, whatever depth it has and whatever permissions were taken away in it.

    A link is deleted, and not what it leads to; a file likewise.
    """
    if path.is_symlink() or not path.is_dir():
        with contextlib.suppress(OSError):
            path.unlink()
        return
    with contextlib.suppress(RecursionError):
        shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        for command in (("chmod", "-R", "u+rwX"), ("rm", "-rf")):
            subprocess.run([*command, "--", path], capture_output=True, check=False)
