"""Runs recorded by earlier versions can be continued: their configurations still load."""

import json
from pathlib import Path
from typing import Any

import pytest

from coevolve.core.protocol_settings import setting_types
from coevolve.runs.config import RunConfig
from coevolve.runs.session import recorded_config

FILE = Path(__file__).with_name("recorded_configurations.jsonl")
RECORDED = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]
NEW_KEYS = {"executor.kind", "isolation.open_asks", "proposer.blocks", "search.history"}
NEW_KEYS |= {"search.in_flight"}
NEW_KEYS |= {f"search.{key}" for key in setting_types()}
"""Keys that the recording version did not know."""


def flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in table.items():
        path = f"{prefix}{key}"
        found |= flat(value, f"{path}.") if isinstance(value, dict) else {path: value}
    return found


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: row["label"])
def test_a_recorded_configuration_loads_with_every_value_as_it_was(
    row: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "my_module.py").write_text("class Mine: ...\n\n\nclass Other: ...\n")
    config = RunConfig.from_json(row["config"], source="recorded", folder=tmp_path)
    recorded, loaded = flat(row["config"]), flat(config.to_json())
    assert {key: loaded.get(key) for key in recorded} == recorded
    assert loaded.keys() - recorded.keys() <= NEW_KEYS


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: row["label"])
def test_a_run_that_recorded_no_protocol_keeps_that_of_the_paper(
    row: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "my_module.py").write_text("class Mine: ...\n\n\nclass Other: ...\n")
    tables = json.loads(json.dumps(row["config"]))
    del tables["search"]["protocol"]
    config, _ = recorded_config({"config": tables}, tmp_path)
    assert config.search.protocol == "task-coevolve"
    assert RunConfig.from_json(tables, folder=tmp_path).search.protocol == "adaptive"
