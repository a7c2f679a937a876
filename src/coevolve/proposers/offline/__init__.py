"""A proposer that needs no model: it recombines building blocks of harnesses."""

from coevolve.proposers.offline.proposer import OfflineProposer
from coevolve.proposers.offline.recipe import Recipe

__all__ = ["OfflineProposer", "Recipe"]
