"""Who writes candidates."""

from coevolve.proposers.base import Proposal, Proposed, Proposer, View
from coevolve.proposers.scripted import FunctionProposer, Scripted

__all__ = ["FunctionProposer", "Proposal", "Proposed", "Proposer", "Scripted", "View"]
