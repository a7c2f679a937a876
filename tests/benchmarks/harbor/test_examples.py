"""The configurations of the example are valid."""

from pathlib import Path

import pytest

from coevolve.runs import read_config

FILES = sorted((Path(__file__).parents[3] / "examples" / "terminal_bench").glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_configuration_is_read(path: Path) -> None:
    config = read_config(path)
    assert config.benchmark.kind == "harbor"
    assert config.search.rounds in (6, 10)
