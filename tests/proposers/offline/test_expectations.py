"""The expectations of the offline proposer are those that were measured."""

import json
from pathlib import Path

import pytest

from coevolve.benchmarks.textclass.blocks.text_blocks import DISTRACTED, EXPECTED

RECORD = Path(__file__).parents[3] / "benchmarks" / "results" / "expectations.json"


@pytest.mark.record
def test_expectations_are_the_recorded_means() -> None:
    recorded = {row["block"]: row["expected"] for row in json.loads(RECORD.read_text())["gains"]}
    assert recorded.pop("ask:standardised and examples") == DISTRACTED
    assert {block: EXPECTED.get(block, 0.0) for block in recorded} == recorded
    older = {"select:all", "order:nearest-first", "order:shuffled", "lead:labels"}
    assert EXPECTED.keys() - recorded.keys() == older
