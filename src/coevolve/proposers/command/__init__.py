"""Command-line agents as proposers: Claude Code, Codex, Gemini CLI, OpenCode, any other."""

from coevolve.proposers.command.agent import Agent, Call, Command, custom
from coevolve.proposers.command.examining import Found, examine
from coevolve.proposers.command.judging import AgentError
from coevolve.proposers.command.meters import Meter
from coevolve.proposers.command.presets import PRESETS, Options, preset
from coevolve.proposers.command.proposer import CommandProposer

__all__ = [
    "PRESETS",
    "Agent",
    "AgentError",
    "Call",
    "Command",
    "CommandProposer",
    "Found",
    "Meter",
    "Options",
    "custom",
    "examine",
    "preset",
]
