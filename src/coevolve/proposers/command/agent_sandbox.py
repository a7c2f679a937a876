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
from coevolve.executors.isolation.launch import Launch, one_line
from coevolve.executors.isolation.plain_process import MARK
from coevolve.executors.isolation.system_paths import links, masked, system_paths
from coevolve.proposers.command.agent_setup import (
    Installation,
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
    home = inner_home() if setting.confined else str(Path.home())
    # The Python of candidates comes before the agent's own, because the agent tries candidates.
    path = (_place(setting, workspace) / "bin", Path(sys.executable).parent, *installation.path)
    environment = agent_environment(agent, home=home, path=path, keys=setting.keys)
    if setting.confined:
        launch = sandboxed(
            agent,
            installation,
            command.arguments,
            workspace=workspace.folder,
            proposals=workspace.proposals,
            environment=environment.variables,
            readable=_readable(setting.readable, certificates(environment)),
            hidden=setting.hidden,
        )
    else:
        launch = unconfined(
            installation,
            command.arguments,
            workspace=workspace.folder,
            environment=environment.variables,
        )
    return Start(launch=launch, stdin=command.stdin, secrets=environment.secrets)


def _place(setting: Setting, workspace: Workspace) -> Path:
    """The path of the workspace as the agent sees it."""
    return Path(WORKSPACE) if setting.confined else workspace.folder.resolve()


def _readable(named: Sequence[Path], certificates: Sequence[Path]) -> list[Path]:
    for path in named:
        if not path.exists():
            raise ConfigError(f"readable: {path} does not exist.")
    return [*named, *certificates]


def shown_paths(installation: Installation | None, readable: Sequence[Path]) -> list[Path]:
    """All visible paths, outer folders first, because inner ones are mounted into them.

    This Python and its packages are included, so that an agent can try its candidates.
    """
    own = () if installation is None else installation.shown
    python = (Path(sys.prefix) / "bin", Path(sys.prefix) / "pyvenv.cfg")
    paths = {*system_paths(network=True), *own, *python, *(p.absolute() for p in readable)}
    return sorted(path for path in paths if path.exists())


def system_mounts(shown: Sequence[Path]) -> list[str]:
    """Mount paths read-only at the same places."""
    options: list[str] = []
    for target, link in links():
        options += ["--symlink", target, link]
    tops = {link for _, link in links()}
    for path in shown:
        if f"/{path.parts[1]}" not in tops:
            options += mount_at("--ro-bind", path.resolve(), path)
    return options


def hiding_mounts(shown: Sequence[Path], hidden: Sequence[Path]) -> list[str]:
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


def inner_home() -> str:
    """The path of the private home: that of the real one, so that paths in settings work."""
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
    """How to start an agent in a sandbox of bwrap.

    Existing files of the workspace are read-only, except proposals; new files can be made in it.

    Args:
        agent: The agent; it names the files of the home to copy.
        installation: The paths it needs to run, mounted read-only.
        arguments: Arguments of its program.
        workspace: The folder it works in, and the only real one that it can write to.
        proposals: The folder for candidates, inside the workspace.
        environment: The whole environment.
        readable: Further files and folders that it may read.
        hidden: Folders that it must not see, even inside those it may read.
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
    # so the copies of its credentials are removed even if this process is killed.
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
    """The options of bwrap; makes the private home in the scratch folder."""
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
        *EMPTY,  # the first process is bwrap itself, which shows paths of this machine
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
    """How to start a trusted agent without a sandbox; its processes carry a mark."""
    mark = secrets.token_hex(16)
    return Launch(
        argv=(*installation.command, *arguments),
        env={**environment, MARK: mark},
        cwd=workspace,
        mark=f"{MARK}={mark}",
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
    mounts = (*system_mounts(shown_paths(None, ())), "--proc", "/proc")
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
