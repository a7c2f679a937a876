"""The page on configuration lists every key there is, and no other."""

import re
from pathlib import Path
from typing import Any

import pytest

from coevolve import registry
from coevolve.benchmarks.benchmark_settings import FactoryBenchmark
from coevolve.executors.executor_settings import FactoryExecutor
from coevolve.models.model_settings import FactoryModel, HostedModel
from coevolve.proposers.proposer_settings import FactoryProposer
from coevolve.runs.config import BudgetTable, RunConfig

PAGE = (Path(__file__).parents[2] / "docs/configuration.md").read_text()
SECTIONS = dict(re.findall(r"^## `\[(\w+)\]`\n(.*?)(?=^## |\Z)", PAGE, flags=re.M | re.S))
OTHERS: dict[str, tuple[type[Any], ...]] = {
    "benchmark": (FactoryBenchmark,),
    "proposer": (FactoryProposer,),
    "executor": (FactoryExecutor,),
    "model": (FactoryModel, HostedModel),
}


def keys(table: str) -> set[str]:
    if table == "budget":
        return set(BudgetTable.model_fields)
    if table not in OTHERS:
        return set(RunConfig.model_fields[table].annotation.model_fields)  # type: ignore[union-attr]
    family: Any = f"{table}s"
    built_in = [registry.find(family, name) for name in registry.names(family)]
    return {key for model in (*built_in, *OTHERS[table]) for key in model.model_fields}


@pytest.mark.parametrize("table", list(RunConfig.model_fields))
def test_every_key_is_listed(table: str) -> None:
    listed = set(re.findall(r"`(\w+)`", SECTIONS[table]))
    assert keys(table) <= listed | {"kind"}
    rows = set(re.findall(r"^\| `(\w+)` \|", SECTIONS[table], flags=re.M))
    assert rows <= keys(table), "it lists keys that are not there"
