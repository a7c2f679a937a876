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


def test_no_attack_of_the_record_succeeded() -> None:
    for row in RECORD["attacks"]:
        assert row["cases"] > 0, row
        assert row["held"] + row["skipped"] == row["cases"], row
