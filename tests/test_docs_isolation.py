"""The page on isolation shows what the long tests recorded."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.record
ROOT = Path(__file__).parent.parent


def test_the_attacks_of_the_record_are_on_the_page() -> None:
    record = json.loads((ROOT / "benchmarks" / "results" / "test-long.json").read_text())
    page = (ROOT / "docs" / "isolation.md").read_text()
    rows = record["attacks"]
    lines = [
        f"| {' | '.join(rows[0])} |",
        "|" + "---|" * len(rows[0]),
        *(f"| {' | '.join(str(value) for value in row.values())} |" for row in rows),
    ]
    assert "\n".join(lines) + "\n" in page


def test_no_attack_of_the_record_succeeded() -> None:
    record = json.loads((ROOT / "benchmarks" / "results" / "test-long.json").read_text())
    for row in record["attacks"]:
        assert row["cases"] > 0, row
        assert row["held"] + row["skipped"] == row["cases"], row
