"""The pages on text classification, models and searches show what the benchmarks recorded."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TABLES = {
    "text-classification": [
        ("textclass", "embedded model"),
        ("family", "harnesses"),
        ("family", "protocols at 20%"),
    ],
    "models": [("latency", "evaluations")],
    "embedded-model": [("embedded", "speed")],
    "searches": [("search", "table")],
}


@pytest.mark.parametrize(
    ("page", "results", "table"),
    [(page, file, table) for page, tables in TABLES.items() for file, table in tables],
)
def test_every_recorded_table_is_on_its_page(page: str, results: str, table: str) -> None:
    data = json.loads((ROOT / "benchmarks" / "results" / f"{results}.json").read_text())
    rows = data[table]
    lines = [
        f"| {' | '.join(rows[0])} |",
        "|" + "---|" * len(rows[0]),
        *(f"| {' | '.join(str(value) for value in row.values())} |" for row in rows),
    ]
    assert "\n".join(lines) + "\n" in (ROOT / "docs" / f"{page}.md").read_text()
