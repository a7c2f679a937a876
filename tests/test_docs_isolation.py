"""The page on isolation shows what the long tests recorded."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RECORD = json.loads((ROOT / "benchmarks" / "results" / "test-long.json").read_text())
pytestmark = [
    pytest.mark.record,
    pytest.mark.skipif("attacks" not in RECORD, reason="nothing is recorded: `make test-long`"),
]


def test_the_attacks_of_the_record_are_on_the_page() -> None:
    page = (ROOT / "docs" / "isolation.md").read_text()
    rows = RECORD["attacks"]
    lines = [
        f"| {' | '.join(rows[0])} |",
        "|" + "---|" * len(rows[0]),
        *(f"| {' | '.join(str(value) for value in row.values())} |" for row in rows),
    ]
    assert "\n".join(lines) + "\n" in page


def test_no_attack_of_the_record_succeeded() -> None:
    for row in RECORD["attacks"]:
        assert row["cases"] > 0, row
        assert row["held"] + row["skipped"] == row["cases"], row
