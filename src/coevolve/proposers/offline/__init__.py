"""A proposer that needs no model: it searches over recipes made of building blocks."""

from coevolve.proposers.offline.building_blocks import BuildingBlocks, Finding, Recipe
from coevolve.proposers.offline.offline_proposer import OfflineProposer

__all__ = ["BuildingBlocks", "Finding", "OfflineProposer", "Recipe"]
