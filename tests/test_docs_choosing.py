"""The page on choosing a protocol shows what the benchmarks recorded."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "choosing.md").read_text()
TABLES = {
    "matrices": (
        "by matrix at 7%",
        "by matrix at 20%",
        "means",
        "aims",
        "rivals",
        "small budgets",
    ),
    "allocation": ("settings",),
    "intervals": ("families", "matrices"),
    "choosing": ("budgets", "searches", "stopping", "costs"),
}


@pytest.mark.parametrize(
    ("results", "table"), [(file, table) for file, tables in TABLES.items() for table in tables]
)
def test_every_recorded_row_is_on_the_page(results: str, table: str) -> None:
    rows = json.loads((ROOT / "benchmarks" / "results" / f"{results}.json").read_text())[table]
    for line in (list(rows[0]), *([str(value) for value in row.values()] for row in rows)):
        assert f"| {' | '.join(line)} |" in PAGE
