"""The page on the analyses shows what the benchmark recorded."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "analyses.md").read_text()
RECORDED = json.loads((ROOT / "benchmarks" / "results" / "findings.json").read_text())
COLUMNS = {
    "ablation": ("regime", "fraction", "row", "score", "vs row above", "paper", "spearman"),
    "ties": ("fraction", "row", "world", "at the top", "searches with a tie", "paper"),
}


@pytest.mark.parametrize("table", ["ablation", "sensitivity", "ties", "error"])
def test_every_recorded_row_is_on_the_page(table: str) -> None:
    rows = RECORDED[table]
    columns = COLUMNS.get(table, tuple(rows[0]))
    lines = [columns, *([str(row[name]) for name in columns] for row in rows)]
    for line in lines:
        assert f"| {' | '.join(line)} |" in PAGE
