"""Synthetic worlds: candidates and tasks whose true scores are known."""

from coevolve.benchmarks.synthetic.search import Progress, SearchResult, search
from coevolve.benchmarks.synthetic.world import Harness, SyntheticWorld

__all__ = ["Harness", "Progress", "SearchResult", "SyntheticWorld", "search"]
