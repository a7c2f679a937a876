"""How an agent is started: where, with what around it, and behind what."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from coevolve.errors import ConfigError, nearest
from coevolve.executors.isolation.base import Launch
from coevolve.proposers.command.agent import Agent, Call, Command
from coevolve.proposers.command.installation import find_installation
from coevolve.proposers.command.sandbox import WORKSPACE, inner_home, sandboxed, unconfined
from coevolve.proposers.command.surroundings import certificates, surroundings
from coevolve.proposers.view import Workspace

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
