"""The sandbox of an agent: the network, its workspace, a private home, and nothing else of ours.

Unlike a candidate, an agent needs the network and its own installation. Like a candidate, it
sees no project, no run, no other home, no data set of this package and no cache.
"""

import functools
import os
import secrets
import subprocess
from collections.abc import Sequence
from pathlib import Path

from coevolve.errors import StopRun
from coevolve.executors.isolation.base import Launch
from coevolve.executors.isolation.bubblewrap import found
from coevolve.executors.isolation.faults import one_line
from coevolve.executors.isolation.plain import MARK
from coevolve.executors.scratch import Scratch
from coevolve.proposers.command.agent import Agent
from coevolve.proposers.command.installation import Installation
from coevolve.proposers.command.mounts import (
    EMPTY,
    hiding_mounts,
    in_memory,
    mount_at,
    shown_paths,
    system_mounts,
)
from coevolve.proposers.command.surroundings import copy_home

WORKSPACE = "/workspace"
_USER = 1000
_NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
_OWN_USER = ("--unshare-user", "--uid", str(_USER), "--gid", str(_USER))
_LONGEST_TRIAL = 20.0
_TEMPORARY = 2 << 30
_SHARED = 512 << 20


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
    shown = shown_paths(installation, readable)
    hiding = hiding_mounts(shown, hidden)
    made = Scratch.make()
    try:
        options = _options(agent, made.folder, shown, hiding, _workspace(workspace, proposals))
        argv = (found(), *options, "--", *installation.command, *arguments)
    except BaseException:
        made.remove()  # there may be credentials in it
        raise
    # Not with --setenv: every user can read command lines. The agent holds the lock on its home,
    # so that the copies of its credentials are cleared away even after this process was killed.
    return Launch(
        argv=argv,
        env=environment,
        cwd=Path("/"),
        fds=(made.lock,),
        owned=(made.lock,),
        scratch=made.folder,
        namespace=True,
    )


def _options(
    agent: Agent,
    scratch: Path,
    shown: Sequence[Path],
    hiding: Sequence[str],
    workspace: Sequence[str],
) -> list[str]:
    """What bwrap is told, with the private home made in a scratch folder."""
    home = scratch / "home"
    home.mkdir(mode=0o700)
    copy_home(agent, home)
    return [
        *_kernel(),
        *in_memory("/tmp", _TEMPORARY),
        *mount_at("--bind", home, Path(inner_home())),
        *system_mounts(shown),
        *hiding,
        *_names(scratch),
        *("--dev", "/dev", "--proc", "/proc"),
        *in_memory("/dev/shm", _SHARED),
        *("--remount-ro", "/dev"),
        *EMPTY,  # the first process is bwrap's own: it knows paths of this machine
        *("/proc/1", "--remount-ro", "/proc/1"),
        *workspace,
        *("--remount-ro", "/", "--chdir", WORKSPACE),
    ]


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
    mounts = (*system_mounts(shown_paths(None, ())), "--proc", "/proc")
    argv = (program, *options, *mounts, "--", "/bin/true")
    try:
        done = subprocess.run(
            argv, capture_output=True, env={}, timeout=_LONGEST_TRIAL, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return one_line(str(error))
    said = one_line(done.stderr.decode("utf-8", "replace"))
    return None if done.returncode == 0 else said or f"bwrap ended with {done.returncode}."


def _names(scratch: Path) -> list[str]:
    """A user and a group of its own names, without those of this machine."""
    shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
    (scratch / "passwd").write_text(f"agent:x:{_USER}:{_USER}::{inner_home()}:{shell}\n")
    (scratch / "group").write_text(f"agent:x:{_USER}:\n")
    options: list[str] = []
    for name in ("passwd", "group"):
        options += mount_at("--ro-bind", scratch / name, Path("/etc") / name)
    return options


def _workspace(workspace: Path, proposals: Path) -> list[str]:
    options = ["--bind", str(workspace.resolve()), WORKSPACE]
    for entry in sorted(workspace.iterdir()):
        kind = "--bind" if entry.name == proposals.name else "--ro-bind"
        options += [kind, str(entry.resolve()), f"{WORKSPACE}/{entry.name}"]
    return options
