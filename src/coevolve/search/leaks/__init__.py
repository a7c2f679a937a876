"""Tasks that a candidate knows by heart: their questions, answers and ids in its files."""

from coevolve.search.leaks.records import Leak, Secret, summary
from coevolve.search.leaks.scan import LeakScan

__all__ = ["Leak", "LeakScan", "Secret", "summary"]
