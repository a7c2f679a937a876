"""Settings of the proposer that starts a command-line agent."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, Strict, field_validator, model_validator

from coevolve.errors import CoevolveError, InputError, nearest
from coevolve.findings import Finding, failed
from coevolve.proposers.command.agent_check import examine
from coevolve.proposers.command.agents import PRESETS, Agent, custom, preset
from coevolve.proposers.command.command_proposer import CommandProposer
from coevolve.proposers.proposer_settings import ProposerSettings
from coevolve.search.proposal import Proposer
from coevolve.settings import Amount, Context, Needed, Text, Texts, Words

WORKSPACES = "proposing"
"""The folder of a run in which agents work."""
_GRACE = 60.0
"""Seconds after its own limit in which an agent is stopped and its files are read."""
_OF_PRESETS = ("program", "effort", "tools", "arguments", "dollars")
Variables = Annotated[
    tuple[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], ...], Strict(False)
]


class AgentSettings(ProposerSettings):
    """A command-line agent that works in a folder.

    `keys` are names of environment variables that the agent gets, never keys themselves.
    """

    has_keys: ClassVar[bool] = True
    agent: Text | None = None
    command: Words | None = None
    program: Text | None = None
    model: Text | None = None
    effort: Text | None = None
    tools: Texts = ()
    arguments: Texts = ()
    dollars: Amount | None = None
    seconds: Amount = 2400.0
    keys: Variables = ()
    home: Texts = ()
    readable: Texts = ()
    isolation: Literal["bwrap", "none"] = "bwrap"
    best_of_n: bool = False

    @field_validator("agent")
    @classmethod
    def _is_preset(cls, name: str | None) -> str | None:
        if name is not None and name not in PRESETS:
            raise InputError(
                f"unknown agent {name!r}; use one of {', '.join(PRESETS)}, or set command to a "
                f"list of words.{nearest(name, PRESETS)}"
            )
        return name

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.agent is None) == (self.command is None):
            raise InputError(
                f"set either agent to one of {', '.join(PRESETS)}, or command to a list of words."
            )
        given, other = ("agent", "command") if self.agent else ("command", "agent")
        for key in ("home",) if self.agent else _OF_PRESETS:
            if getattr(self, key):
                raise InputError(f"{key} has no effect with {given}; it belongs to {other}.")
        return self

    @property
    def patience(self) -> float:
        return self.seconds + _GRACE

    def needs(self) -> Iterator[Needed]:
        yield from (("readable", path, "either") for path in self.readable)

    def waiting(self, folder: Path) -> str:
        minutes, logs = f"{self.seconds / 60:.0f} minutes", f"{folder}/{WORKSPACES}/*.log"
        return f"The agent has up to {minutes}; its output is in {logs}."

    def preset(self, base: Path) -> Agent:
        """The agent; a path to it starts from the folder `base`.

        Raises:
            ConfigError: It has no such option.
        """
        if self.command is not None:
            program, *words = self.command
            command = [_program(program, base), *words]
            return custom(command, model=self.model or "", home=self.home)
        return preset(
            self.agent or "",
            program=_program(self.program or "", base),
            model=self.model or "",
            effort=self.effort or "",
            tools=self.tools,
            dollars=self.dollars,
            arguments=self.arguments,
        )

    def build(self, context: Context) -> Proposer:
        base, folder = context.base, context.folder
        hidden = [base, *(base / path for _, path, _ in context.config.benchmark.needs())]
        return CommandProposer(
            self.preset(base),
            folder=(folder or base) / WORKSPACES,
            seconds=self.seconds,
            isolation=self.isolation,
            hidden=[*hidden, *([folder] if folder else [])],
            readable=[base / path for path in self.readable],
            keys=self.keys,
        )

    def examine(self, context: Context) -> Iterator[Finding]:
        try:
            self.build(context)
            agent = self.preset(context.base)
        except CoevolveError as error:
            yield failed("proposer", str(error))
            return
        readable = [context.base / path for path in self.readable]
        for found in examine(agent, isolation=self.isolation, readable=readable, keys=self.keys):
            yield replace(found, about=f"proposer, {found.about}")


def _program(name: str, base: Path) -> str:
    """A name on the PATH unchanged; a path from the folder of the project."""
    return str(base.resolve() / os.path.expanduser(name)) if "/" in name else name  # noqa: PTH111
