"""Command-line agents as proposers: Claude Code, Codex, Gemini CLI, OpenCode, any other."""

from coevolve.proposers.command.agent_check import examine
from coevolve.proposers.command.agents import (
    PRESETS,
    Agent,
    Call,
    Command,
    Options,
    custom,
    preset,
)
from coevolve.proposers.command.command_proposer import AgentError, CommandProposer
from coevolve.proposers.command.usage_meters import Meter

__all__ = [
    "PRESETS",
    "Agent",
    "AgentError",
    "Call",
    "Command",
    "CommandProposer",
    "Meter",
    "Options",
    "custom",
    "examine",
    "preset",
]
