"""Who writes candidates.

`PLUGS` names the settings class of every built-in proposer, which builds it.
"""

from coevolve.proposers.base import Proposal, Proposed, Proposer, View
from coevolve.proposers.scripted import FunctionProposer, Scripted

__all__ = ["PLUGS", "FunctionProposer", "Proposal", "Proposed", "Proposer", "Scripted", "View"]

PLUGS = {
    "offline": "coevolve.proposers.offline.offline_settings:OfflineSettings",
    "llm": "coevolve.proposers.llm.llm_settings:LLMSettings",
    "command": "coevolve.proposers.command.agent_settings:AgentSettings",
    "function": "coevolve.proposers.proposer_settings:FunctionProposerSettings",
    "scripted": "coevolve.proposers.proposer_settings:ScriptedSettings",
    "synthetic": "coevolve.benchmarks.synthetic.synthetic_settings:SyntheticProposerSettings",
}
