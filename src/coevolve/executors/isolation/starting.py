"""Starting and ending the process of a launch."""

import signal
import subprocess

from coevolve.executors.isolation.base import Launch
from coevolve.executors.isolation.faults import HarnessFault, SandboxError
from coevolve.executors.isolation.limits import Limits
from coevolve.executors.isolation.processes import kill_all

_LONGEST_END = 5.0


def start(launch: Launch, *, stdin: int, stderr: int) -> subprocess.Popen[bytes]:
    """Start a launch in a session of its own, so that no key pressed here reaches it."""
    try:
        return subprocess.Popen(
            launch.argv,
            env=dict(launch.env),
            cwd=launch.cwd,
            pass_fds=launch.fds,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        launch.close()
        raise SandboxError(f"the sandbox cannot be started: {error}.") from error
    finally:
        launch.started()


def end(launch: Launch, process: subprocess.Popen[bytes]) -> None:
    """End all processes of a launch and remove what they left."""
    if process.poll() is None or not launch.namespace:
        kill_all(launch, process.pid)
    try:
        process.wait(timeout=_LONGEST_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    launch.close()


def exit_fault(code: int, limits: Limits) -> HarnessFault:
    """The fault of a program that ended with this code; bwrap adds 128 to a signal.

    >>> exit_fault(-11, Limits()).reason
    'its process was ended by SIGSEGV'
    """
    number = -code if code < 0 else code - 128
    try:
        name = signal.Signals(number).name
    except ValueError:
        return HarnessFault("exit", f"its process ended by itself with code {code}")
    if name == "SIGXCPU":
        return HarnessFault("cpu-limit", f"used more than {limits.cpu:g} s of CPU time")
    return HarnessFault("killed", f"its process was ended by {name}")
