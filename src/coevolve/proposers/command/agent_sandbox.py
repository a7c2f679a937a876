"""The sandbox of an agent: the network, its workspace, a private home, and nothing else.

Unlike a candidate, an agent needs the network and its own installation. Like a candidate, it
sees no project, no run, no real home, no data set of this package and no cache.
"""

import functools
import os
import secrets
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from coevolve.errors import ConfigError, StopRun, nearest
from coevolve.executors.isolation.bubblewrap import (
    EMPTY,
    NAMESPACES,
    bwrap_program,
    in_memory,
    mount_at,
)
from coevolve.executors.isolation.folders import Scratch
from coevolve.executors.isolation.launch import Launch
from coevolve.executors.isolation.plain_process import MARK
from coevolve.executors.isolation.system_paths import links, masked, system_paths
from coevolve.formatting import one_line
from coevolve.proposers.command.agent_setup import (
    agent_environment,
    certificates,
    copy_home,
    find_installation,
)
from coevolve.proposers.command.agents import Agent, Call, Command
from coevolve.proposers.workspace import Workspace

Isolation = Literal["bwrap", "none"]

WORKSPACE = "/workspace"
_ISOLATIONS: tuple[Isolation, ...] = get_args(Isolation)
_USER = 1000
_OWN_USER = ("--unshare-user", "--uid", str(_USER), "--gid", str(_USER))
_LONGEST_PROBE = 20.0
_TEMPORARY = 2 << 30
_SHARED = 512 << 20
_PRIVATE = tuple(map(Path, ("/etc/ssl/private", "/etc/pki/tls/private", "/etc/pki/private")))
"""Private keys of this machine, next to the certificates that an agent needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What an agent may see and do; see `CommandProposer`."""

    isolation: Isolation = "bwrap"
    hidden: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.isolation not in _ISOLATIONS:
            raise ConfigError(
                f"isolation of an agent must be 'bwrap' or 'none', got {self.isolation!r}."
                f"{nearest(self.isolation, _ISOLATIONS)}"
            )

    @property
    def confined(self) -> bool:
        """Whether the agent runs in a sandbox."""
        return self.isolation == "bwrap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """An agent ready to start: how, its standard input, and texts that must stay secret."""

    launch: Launch
    stdin: str
    secrets: tuple[str, ...]


def proposal_start(agent: Agent, setting: Setting, workspace: Workspace) -> Start:
    """How to start an agent that writes proposals in a workspace."""
    place = str(_place(setting, workspace))
    call = Call(prompt=workspace.prompt, workspace=place, confined=setting.confined)
    return command_start(agent, setting, workspace, agent.command(call))


def command_start(agent: Agent, setting: Setting, workspace: Workspace, command: Command) -> Start:
    """How to start an agent in a workspace with a given command line."""
    installation = find_installation(agent)
    home = _inner_home() if setting.confined else str(Path.home())
    # The Python of candidates comes before the agent's own, because the agent tries candidates.
    path = (_place(setting, workspace) / "bin", Path(sys.executable).parent, *installation.path)
    environment = agent_environment(agent, home=home, path=path, keys=setting.keys)
    argv = (*installation.command, *command.arguments)
    if setting.confined:
        missing = [str(place) for place in setting.readable if not place.exists()]
        if missing:
            raise ConfigError(f"readable: {', '.join(missing)} does not exist.")
        readable = (*installation.shown, *setting.readable, *certificates(environment))
        shown = _shown_paths(readable)
        hiding = _hiding_mounts(shown, setting.hidden)
        mounts = (*_system_mounts(shown), *hiding)
        launch = _sandboxed(agent, argv, environment.variables, workspace, mounts)
    else:
        # The mark in the environment is how its processes are found.
        mark = secrets.token_hex(16)
        launch = Launch(
            argv=argv,
            env={**environment.variables, MARK: mark},
            cwd=workspace.folder,
            mark=f"{MARK}={mark}",
        )
    return Start(launch=launch, stdin=command.stdin, secrets=environment.secrets)


def _place(setting: Setting, workspace: Workspace) -> Path:
    """The path of the workspace as the agent sees it."""
    return Path(WORKSPACE) if setting.confined else workspace.folder.resolve()


def _shown_paths(readable: Sequence[Path] = ()) -> list[Path]:
    """All visible paths, outer folders first, because inner ones are mounted into them.

    This Python and its packages are included, so that an agent can try its candidates.
    """
    python = (Path(sys.prefix) / "bin", Path(sys.prefix) / "pyvenv.cfg")
    paths = {*system_paths(network=True), *python, *(path.absolute() for path in readable)}
    return sorted(path for path in paths if path.exists())


def _system_mounts(shown: Sequence[Path]) -> list[str]:
    """Mount paths read-only at the same places."""
    options: list[str] = []
    for target, link in links():
        options += ["--symlink", target, link]
    tops = {link for _, link in links()}
    for path in shown:
        if f"/{path.parts[1]}" not in tops:
            options += mount_at("--ro-bind", path.resolve(), path)
    return options


def _hiding_mounts(shown: Sequence[Path], hidden: Sequence[Path]) -> list[str]:
    """Hide paths wherever they are visible, and the private keys of this machine."""
    options: list[str] = []
    for folder in masked([path.resolve() for path in shown], (*_PRIVATE, *hidden)):
        for place in map(str, _visible(folder, shown)):
            options += [*EMPTY, place, "--remount-ro", place]
    for file in (path.resolve() for path in hidden if path.is_file()):
        for place in map(str, _visible(file, shown)):
            options += ["--ro-bind", "/dev/null", place]
    return options


def _visible(path: Path, shown: Sequence[Path]) -> list[Path]:
    """The places where a file or folder of this machine is visible inside."""
    real = [(place, place.resolve()) for place in shown]
    return [p / path.relative_to(source) for p, source in real if path.is_relative_to(source)]


def _inner_home() -> str:
    """The path of the private home: that of the real one, so that paths in settings work."""
    home = Path.home()
    return str(home) if home.is_absolute() and len(home.parts) > 1 else "/home/agent"


def _sandboxed(
    agent: Agent,
    argv: Sequence[str],
    environment: dict[str, str],
    workspace: Workspace,
    mounts: Sequence[str],
) -> Launch:
    """How to start an agent in a sandbox of bwrap, with copies of its credentials."""
    made = Scratch.make()
    try:
        home = made.folder / "home"
        home.mkdir(mode=0o700)
        copy_home(agent, home)
        options = [
            *_kernel(),
            *in_memory("/tmp", _TEMPORARY),
            *mount_at("--bind", home, Path(_inner_home())),
            *mounts,
            *_names(made.folder),
            *("--dev", "/dev", "--proc", "/proc"),
            *in_memory("/dev/shm", _SHARED),
            *("--remount-ro", "/dev"),
            *EMPTY,  # the first process is bwrap itself, which shows paths of this machine
            *("/proc/1", "--remount-ro", "/proc/1"),
            *_workspace_mounts(workspace),
            *("--remount-ro", "/", "--chdir", WORKSPACE),
        ]
        command = (bwrap_program(), *options, "--", *argv)
    except BaseException:
        made.remove()  # there may be credentials in it
        raise
    # Not with --setenv: every user can read command lines. The agent holds the lock on its home,
    # so the copies of its credentials are removed even if this process is killed.
    return Launch(
        argv=command,
        env=environment,
        cwd=Path("/"),
        fds=(made.lock,),
        owned=(made.lock,),
        scratch=made.folder,
        namespace=True,
    )


@functools.cache
def why_no_sandbox() -> str:
    """Why an agent's sandbox does not work here; empty if it works."""
    try:
        program = bwrap_program()
    except StopRun as error:
        return str(error).partition(";")[0] + "."
    return _bwrap_failure(program, _kernel()) or ""


def _kernel() -> tuple[str, ...]:
    user = _OWN_USER if _may_change_user() else ()
    session = ("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox")
    return (*NAMESPACES, *user, *session)


@functools.cache
def _may_change_user() -> bool:
    """Whether the sandbox can have its own user; root can do without."""
    return os.getuid() != 0 or _bwrap_failure(bwrap_program(), (*NAMESPACES, *_OWN_USER)) is None


def _bwrap_failure(program: str, options: Sequence[str]) -> str | None:
    """Why bwrap does not start a program with these options; None if it does."""
    mounts = (*_system_mounts(_shown_paths()), "--proc", "/proc")
    argv = (program, *options, *mounts, "--", "/bin/true")
    try:
        done = subprocess.run(
            argv, capture_output=True, env={}, timeout=_LONGEST_PROBE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return one_line(str(error))
    printed = one_line(done.stderr.decode("utf-8", "replace"))
    return None if done.returncode == 0 else printed or f"bwrap ended with {done.returncode}."


def _names(scratch: Path) -> list[str]:
    """Files with one user and one group, in place of those of this machine."""
    shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
    (scratch / "passwd").write_text(f"agent:x:{_USER}:{_USER}::{_inner_home()}:{shell}\n")
    (scratch / "group").write_text(f"agent:x:{_USER}:\n")
    options: list[str] = []
    for name in ("passwd", "group"):
        options += mount_at("--ro-bind", scratch / name, Path("/etc") / name)
    return options


def _workspace_mounts(workspace: Workspace) -> list[str]:
    """The workspace: existing files are read-only, except proposals; new ones can be made."""
    options = ["--bind", str(workspace.folder.resolve()), WORKSPACE]
    for entry in sorted(workspace.folder.iterdir()):
        kind = "--bind" if entry.name == workspace.proposals.name else "--ro-bind"
        options += [kind, str(entry.resolve()), f"{WORKSPACE}/{entry.name}"]
    return options
