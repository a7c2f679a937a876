"""Tasks that a candidate knows by heart: their questions, answers and ids in its files."""

from coevolve.search.leaks.leak_scan import Leak, LeakScan, Secret, summary

__all__ = ["Leak", "LeakScan", "Secret", "summary"]
