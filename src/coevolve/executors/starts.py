"""How a worker process comes to be: as a fresh Python, or by way of something that forks."""

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from coevolve.executors.asked import Asked
from coevolve.executors.pipes import Message


class Process(Protocol):
    """A process that can be waited for, as `subprocess.Popen` is one."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """The same after its end; `subprocess.TimeoutExpired` if that does not come in time."""
        ...


class Ends(NamedTuple):
    """The descriptors of a worker: its socket, where it prints, and its two shared bytes."""

    socket: int
    log: int
    flag: int


Start = Callable[[Ends, Asked], Awaitable[Process]]
"""Makes a worker of its descriptors; services it asks meanwhile are put down with the rest."""


def fresh(
    ends: Ends,
    *,
    setup: Message,
    scratch: Path,
    births: Sequence[int] = (),
    variables: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """A worker that is a Python of its own.

    Args:
        ends: What it inherits.
        setup: The message it will get; its benchmark's folder is where it starts.
        scratch: Where it keeps temporary files.
        births: A socket on which it will be asked to fork, if it is to.
        variables: Additions to its environment.
    """
    module = "coevolve.executors.worker"
    numbers = map(str, (ends.flag, os.getpid(), *births))
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *numbers],
        stdin=ends.socket,
        stdout=ends.log,
        stderr=ends.log,
        pass_fds=(ends.flag, *births),
        cwd=setup["spec"]["folder"],
        env={**os.environ, **(variables or {}), "TMPDIR": str(scratch)},
        start_new_session=True,
    )
