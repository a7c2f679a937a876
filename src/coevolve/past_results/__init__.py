"""Past results: outcomes from files that this program did not write, for any benchmark.

`read_past` reads tables (CSV, JSONL, Parquet), logs of Inspect, and jobs of Harbor.
"""

from coevolve.past_results.past_files import read_past
from coevolve.past_results.result_rows import PastResults

__all__ = ["PastResults", "read_past"]
