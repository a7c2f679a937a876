"""Synthetic worlds: candidates and tasks whose true scores are known."""

from coevolve.benchmarks.synthetic.synthetic_search import RoundDone, SearchResult, search, summary
from coevolve.benchmarks.synthetic.world import Harness, SyntheticWorld

__all__ = ["Harness", "RoundDone", "SearchResult", "SyntheticWorld", "search", "summary"]
