"""Whatever others write, a parser returns or raises an error of ours."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.effort import effort
from tests.fuzz.examination import examine
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
RECORD = json.loads((ROOT / "benchmarks" / "results" / "test-long.json").read_text())


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_any_input_is_read_or_refused(
    target: Target, record_property: Callable[[str, object], None]
) -> None:
    record_property("target", target.name)
    tried = examine(target, effort(12, 10_000))
    assert tried
    record_property("inputs", tried)


def test_the_page_lists_every_target() -> None:
    page = (ROOT / "docs" / "isolation.md").read_text()
    for writer in {target.written_by for target in TARGETS}:
        names = [target.name for target in TARGETS if target.written_by == writer]
        assert f"| {writer} | {' · '.join(names)} |\n" in page


@pytest.mark.record
@pytest.mark.skipif("fuzzed" not in RECORD, reason="nothing is recorded: `make test-long`")
def test_the_record_has_every_target_at_length() -> None:
    rows = RECORD["fuzzed"]
    assert {row["target"] for row in rows} == {target.name for target in TARGETS}
    for row in rows:
        assert row["held"], row
        assert row["inputs"] >= 10_000, row
