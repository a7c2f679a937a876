"""The joint model: every candidate's full-set score under one view of the tasks."""

from coevolve.core.joint.model import Joint

__all__ = ["Joint"]
