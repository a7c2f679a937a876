"""The sandbox of an agent: the network, its workspace, a private home, and nothing else.

Unlike a candidate, an agent needs the network and its own installation. Like a candidate, it
sees no project, no run, no other home, no data set of this package and no cache.
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
from coevolve.executors.isolation.bubblewrap import bwrap_program
from coevolve.executors.isolation.folders import Scratch
from coevolve.executors.isolation.launch import Launch, one_line
from coevolve.executors.isolation.plain_process import MARK
from coevolve.executors.isolation.system_paths import links, masked, system_paths
from coevolve.proposers.command.agent_setup import (
    Installation,
    certificates,
    copy_home,
    find_installation,
    surroundings,
)
from coevolve.proposers.command.agents import Agent, Call, Command
from coevolve.proposers.workspace import Workspace

EMPTY = ("--perms", "0755", "--size", "4096", "--tmpfs")
_PRIVATE = tuple(map(Path, ("/etc/ssl/private", "/etc/pki/tls/private", "/etc/pki/private")))
"""Keys of this machine, beside the certificates that an agent needs."""


def shown_paths(installation: Installation | None, readable: Sequence[Path]) -> list[Path]:
    """Everything that is visible, outer folders first, since inner ones are put into them.

    Candidates run under this Python, with its packages, and an agent may want to try them.
    """
    own = () if installation is None else installation.shown
    python = (Path(sys.prefix) / "bin", Path(sys.prefix) / "pyvenv.cfg")
    paths = {*system_paths(network=True), *own, *python, *(p.absolute() for p in readable)}
    return sorted(path for path in paths if path.exists())


def system_mounts(shown: Sequence[Path]) -> list[str]:
    """Shows some paths, each where it is, to be read alone."""
    options: list[str] = []
    for target, link in links():
        options += ["--symlink", target, link]
    tops = {link for _, link in links()}
    for path in shown:
        if f"/{path.parts[1]}" not in tops:
            options += mount_at("--ro-bind", path.resolve(), path)
    return options


def hiding_mounts(shown: Sequence[Path], hidden: Sequence[Path]) -> list[str]:
    """Hides some paths wherever they lie in what is shown, and private keys of this machine."""
    options: list[str] = []
    for folder in masked([path.resolve() for path in shown], (*_PRIVATE, *hidden)):
        for place in map(str, _visible(folder, shown)):
            options += [*EMPTY, place, "--remount-ro", place]
    for file in (path.resolve() for path in hidden if path.is_file()):
        for place in map(str, _visible(file, shown)):
            options += ["--ro-bind", "/dev/null", place]
    return options


def in_memory(place: str, size: int) -> tuple[str, ...]:
    """A folder in memory for everybody, of a limited size."""
    return "--perms", "1777", "--size", str(size), "--tmpfs", place


def mount_at(option: str, source: Path, target: Path) -> list[str]:
    """A mount at a path whose parents everybody may pass; bwrap alone makes them private."""
    options: list[str] = []
    for parent in reversed(target.parents[:-1]):
        options += ["--perms", "0755", "--dir", str(parent)]
    return [*options, option, str(source), str(target)]


def _visible(path: Path, shown: Sequence[Path]) -> list[Path]:
    """Where a file or folder of this machine can be seen inside."""
    real = [(place, place.resolve()) for place in shown]
    return [p / path.relative_to(source) for p, source in real if path.is_relative_to(source)]


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
        argv = (bwrap_program(), *options, "--", *installation.command, *arguments)
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
        program = bwrap_program()
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
    return os.getuid() != 0 or _trial(bwrap_program(), (*_NAMESPACES, *_OWN_USER)) is None


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


Isolation = Literal["bwrap", "none"]

_ISOLATIONS: tuple[Isolation, ...] = get_args(Isolation)


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
        """Whether the agent is behind a sandbox."""
        return self.isolation == "bwrap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """An agent ready to be started: how, what it reads, and what must not be seen of it."""

    launch: Launch
    stdin: str
    secrets: tuple[str, ...]


def ready(agent: Agent, setting: Setting, workspace: Workspace) -> Start:
    """How to start an agent on a workspace."""
    place = str(_place(setting, workspace))
    call = Call(prompt=workspace.prompt, workspace=place, confined=setting.confined)
    return prepared(agent, setting, workspace, agent.command(call))


def prepared(agent: Agent, setting: Setting, workspace: Workspace, command: Command) -> Start:
    """How to start an agent in a workspace with a command line of its own."""
    installation = find_installation(agent)
    home = inner_home() if setting.confined else str(Path.home())
    # The Python of candidates comes before that of the agent, for it is candidates it tries.
    path = (_place(setting, workspace) / "bin", Path(sys.executable).parent, *installation.path)
    around = surroundings(agent, home=home, path=path, keys=setting.keys)
    if setting.confined:
        launch = sandboxed(
            agent,
            installation,
            command.arguments,
            workspace=workspace.folder,
            proposals=workspace.proposals,
            environment=around.variables,
            readable=_readable(setting.readable, certificates(around)),
            hidden=setting.hidden,
        )
    else:
        launch = unconfined(
            installation,
            command.arguments,
            workspace=workspace.folder,
            environment=around.variables,
        )
    return Start(launch=launch, stdin=command.stdin, secrets=around.secrets)


def _place(setting: Setting, workspace: Workspace) -> Path:
    """The workspace, where the agent sees it."""
    return Path(WORKSPACE) if setting.confined else workspace.folder.resolve()


def _readable(named: Sequence[Path], certificates: Sequence[Path]) -> list[Path]:
    for path in named:
        if not path.exists():
            raise ConfigError(f"readable: {path} is not there.")
    return [*named, *certificates]
