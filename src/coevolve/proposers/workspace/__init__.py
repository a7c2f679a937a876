"""What a meta-agent sees: a workspace with all that a view holds."""

from coevolve.proposers.workspace.workspace import Workspace, lay_out

__all__ = ["Workspace", "lay_out"]
