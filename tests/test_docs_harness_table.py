"""docs/harness-table.md describes the tables and the space as they are."""

import re
from pathlib import Path

import numpy as np
import pytest

from coevolve.tables.harness_table import HarnessTable
from coevolve.tables.table_space import TableSpace

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "harness-table.md").read_text()


@pytest.mark.record
@pytest.mark.parametrize("name", ["service-desk", "s2d", "law"])
def test_the_page_describes_the_tables_in_the_repository(name: str) -> None:
    file = ROOT / "benchmarks" / "tables" / f"{name}.npz"
    table = HarnessTable.read(file)
    validation, test = table.validation, table.test
    best = int(validation.argmax())
    start = max(table.starts, key=lambda key: validation[table.keys[key]])
    line = [
        f"{file.stat().st_size / 1000:.0f} kB",
        f"{len(table.keys):,}",
        f"{table.facts.validation} + {table.facts.test}",
        f"{validation[best]:.1%}",
        f"{test[best]:.1%}",
        f"`{start}`, {validation[table.keys[start]]:.1%}",
        f"{np.corrcoef(validation, test)[0, 1]:.2f}",
    ]
    assert f" | {' | '.join(line)} |\n" in PAGE
    stage = table.facts.stage
    assert len(table.keys) == sum(row.stage <= stage for row in TableSpace().rows())


def test_the_page_has_the_stages_of_the_space() -> None:
    space = TableSpace()
    for stage in range(1, len(space.stages) + 1):
        assert f"| {stage} | {len(space.recipes(stage)):,} |" in PAGE


def test_the_space_on_the_page_can_be_read(tmp_path: Path) -> None:
    [text] = re.findall(r"^```toml\n(.*?)^```", PAGE, re.M | re.S)
    file = tmp_path / "space.toml"
    file.write_text(text)
    rows = list(TableSpace.read(file).rows())
    for last in (1, 2):
        assert f"\n{sum(row.stage <= last for row in rows)} harnesses send" in PAGE
