"""The sandbox of an agent: the network, its workspace, a private home, and nothing else of ours.

Unlike a candidate, an agent needs the network and its own installation. Like a candidate, it
sees no project, no run, no other home, no data set of this package and no cache.
"""

import functools
import os
import secrets
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from coevolve.errors import StopRun
from coevolve.executors.isolation.base import Launch
from coevolve.executors.isolation.bubblewrap import found
from coevolve.executors.isolation.faults import one_line
from coevolve.executors.isolation.hiding import masked
from coevolve.executors.isolation.plain import MARK
from coevolve.executors.isolation.system import links, system_paths
from coevolve.executors.scratch import Scratch
from coevolve.proposers.command.agent import Agent
from coevolve.proposers.command.installation import Installation
from coevolve.proposers.command.surroundings import copy_home

WORKSPACE = "/workspace"
_USER = 1000
_EMPTY = ("--perms", "0755", "--size", "4096", "--tmpfs")
_NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
_OWN_USER = ("--unshare-user", "--uid", str(_USER), "--gid", str(_USER))
_LONGEST_TRIAL = 20.0
_TEMPORARY = 2 << 30
_PRIVATE = tuple(map(Path, ("/etc/ssl/private", "/etc/pki/tls/private", "/etc/pki/private")))
"""Keys of this machine, beside the certificates that an agent needs."""


def inner_home() -> str:
    """The home that an agent sees: the path of the real one, so that settings stay true."""
    home = Path.home()
    return str(home) if home.is_absolute() and len(home.parts) > 1 else "/home/agent"


def sandboxed(
    agent: Agent,
    installation: Installation,
    arguments: Sequence[str],
    *,
    workspace: Path,
    proposals: Path,
    environment: dict[str, str],
    readable: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
) -> Launch:
    """How to start an agent behind bwrap.

    All of the workspace that is there now can only be read, but for the proposals; new files can
    be made in it.

    Args:
        agent: Says which files of the home it gets copies of.
        installation: What it needs to run, shown read-only.
        arguments: Of its program.
        workspace: The folder it works in, and the only one of ours that it can write.
        proposals: Where it writes candidates, inside the workspace.
        environment: All its variables.
        readable: Further files and folders that it may read.
        hidden: Folders that it must not see even where they lie among those it may read.
    """
    shown = _shown(installation, readable)
    hiding = _hidden(shown, hidden)
    made = Scratch.make()
    scratch = made.folder
    home = scratch / "home"
    home.mkdir(mode=0o700)
    copy_home(agent, home)
    options = [
        *_kernel(),
        *("--perms", "1777", "--size", str(_TEMPORARY), "--tmpfs", "/tmp"),
        *_at("--bind", home, Path(inner_home())),
        *_system(shown),
        *hiding,
        *_names(scratch),
        *("--dev", "/dev", "--proc", "/proc", "--perms", "1777", "--tmpfs", "/dev/shm"),
        *_EMPTY,  # the first process is bwrap's own: it knows paths of this machine
        *("/proc/1", "--remount-ro", "/proc/1"),
        *_workspace(workspace, proposals),
        *("--remount-ro", "/", "--chdir", WORKSPACE),
    ]
    argv = (found(), *options, "--", *installation.command, *arguments)
    # Not with --setenv: every user can read command lines. The agent holds the lock on its home,
    # so that the copies of its credentials are cleared away even after this process was killed.
    return Launch(
        argv=argv,
        env=environment,
        cwd=Path("/"),
        fds=(made.lock,),
        owned=(made.lock,),
        scratch=scratch,
        namespace=True,
    )


def unconfined(
    installation: Installation,
    arguments: Sequence[str],
    *,
    workspace: Path,
    environment: dict[str, str],
) -> Launch:
    """How to start an agent that is trusted with this machine; its processes carry a mark."""
    mark = secrets.token_hex(16)
    return Launch(
        argv=(*installation.command, *arguments),
        env={**environment, MARK: mark},
        cwd=workspace,
        mark=f"{MARK}={mark}",
    )


@functools.cache
def why_no_sandbox() -> str:
    """What keeps an agent's sandbox from working here; empty where it works."""
    try:
        program = found()
    except StopRun as error:
        return str(error).partition(";")[0] + "."
    done = _trial(program, _kernel())
    return "" if done is None else done


def _kernel() -> tuple[str, ...]:
    user = _OWN_USER if _may_change_user() else ()
    session = ("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox")
    return (*_NAMESPACES, *user, *session)


@functools.cache
def _may_change_user() -> bool:
    """Whether a user of its own can be had; root can do without."""
    return os.getuid() != 0 or _trial(found(), (*_NAMESPACES, *_OWN_USER)) is None


def _trial(program: str, options: Sequence[str]) -> str | None:
    """Why bwrap does not start anything with these options; None if it does."""
    argv = (program, *options, *_system(_shown(None, ())), "--proc", "/proc", "--", "/bin/true")
    try:
        done = subprocess.run(
            argv, capture_output=True, env={}, timeout=_LONGEST_TRIAL, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return one_line(str(error))
    said = one_line(done.stderr.decode("utf-8", "replace"))
    return None if done.returncode == 0 else said or f"bwrap ended with {done.returncode}."


def _shown(installation: Installation | None, readable: Sequence[Path]) -> list[Path]:
    """Everything that is visible, outer folders first, since inner ones are put into them.

    Candidates run under this Python, with its packages, and an agent may want to try them.
    """
    own = () if installation is None else installation.shown
    python = (Path(sys.prefix) / "bin", Path(sys.prefix) / "pyvenv.cfg")
    paths = {*system_paths(network=True), *own, *python, *(p.absolute() for p in readable)}
    return sorted(path for path in paths if path.exists())


def _system(shown: Sequence[Path]) -> list[str]:
    options: list[str] = []
    for target, link in links():
        options += ["--symlink", target, link]
    tops = {link for _, link in links()}
    for path in shown:
        if f"/{path.parts[1]}" not in tops:
            options += _at("--ro-bind", path.resolve(), path)
    return options


def _hidden(shown: Sequence[Path], hidden: Sequence[Path]) -> list[str]:
    options: list[str] = []
    for folder in masked([path.resolve() for path in shown], (*_PRIVATE, *hidden)):
        for place in map(str, _visible(folder, shown)):
            options += [*_EMPTY, place, "--remount-ro", place]
    for file in (path.resolve() for path in hidden if path.is_file()):
        for place in map(str, _visible(file, shown)):
            options += ["--ro-bind", "/dev/null", place]
    return options


def _visible(path: Path, shown: Sequence[Path]) -> list[Path]:
    """Where a file or folder of this machine can be seen inside."""
    real = [(place, place.resolve()) for place in shown]
    return [p / path.relative_to(source) for p, source in real if path.is_relative_to(source)]


def _names(scratch: Path) -> list[str]:
    """A user and a group of its own names, without those of this machine."""
    shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
    (scratch / "passwd").write_text(f"agent:x:{_USER}:{_USER}::{inner_home()}:{shell}\n")
    (scratch / "group").write_text(f"agent:x:{_USER}:\n")
    options: list[str] = []
    for name in ("passwd", "group"):
        options += _at("--ro-bind", scratch / name, Path("/etc") / name)
    return options


def _workspace(workspace: Path, proposals: Path) -> list[str]:
    options = ["--bind", str(workspace.resolve()), WORKSPACE]
    for entry in sorted(workspace.iterdir()):
        kind = "--bind" if entry.name == proposals.name else "--ro-bind"
        options += [kind, str(entry.resolve()), f"{WORKSPACE}/{entry.name}"]
    return options


def _at(option: str, source: Path, target: Path) -> list[str]:
    """A mount at a path whose parents everybody may pass; bwrap alone makes them private."""
    options: list[str] = []
    for parent in reversed(target.parents[:-1]):
        options += ["--perms", "0755", "--dir", str(parent)]
    return [*options, option, str(source), str(target)]
