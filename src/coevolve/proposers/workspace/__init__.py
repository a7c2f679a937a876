"""The workspace of a meta-agent: a folder with everything a proposer may know."""

from coevolve.proposers.workspace.workspace import Workspace, lay_out

__all__ = ["Workspace", "lay_out"]
