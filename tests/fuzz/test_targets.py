"""Whatever others write, a parser returns or raises an error of ours."""

import json
from pathlib import Path

import pytest

from tests.effort import effort
from tests.fuzz.examination import examine
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "isolation.md").read_text()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_any_input_is_read_or_refused(target: Target) -> None:
    assert examine(target, effort(100, 10_000))


def test_every_target_was_tried_at_length_and_the_page_shows_it() -> None:
    rows = json.loads((ROOT / "benchmarks" / "results" / "fuzz.json").read_text())["targets"]
    assert [row["target"] for row in rows] == [target.name for target in TARGETS]
    for row in rows:
        assert row["held"] == "yes"
        assert int(row["examples"].replace(",", "")) >= 10_000
        assert f"| {' | '.join(map(str, row.values()))} |\n" in PAGE
