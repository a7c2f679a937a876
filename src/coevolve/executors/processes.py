"""Ending processes with all they started."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys

from coevolve.executors.isolation.processes import descendants
from coevolve.executors.starts import Process

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Make the kernel end this process when its parent ends, where it can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before we asked
        raise SystemExit(1)


def kill_tree(process: Process, grace: float) -> None:
    """Kill a process that leads a session, and all it started, and wait for its end.

    It is asked to end first, for it knows best what it started. After `grace` seconds it is
    stopped, so that it starts nothing while its children are killed.
    """
    if process.poll() is None:
        _send(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace)
    if process.poll() is None:
        _send(process.pid, signal.SIGSTOP)
        killed: set[int] = set()
        while found := set(descendants(process.pid)) - killed - {process.pid}:
            for pid in found:
                _send(pid, signal.SIGKILL)
            killed |= found
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
