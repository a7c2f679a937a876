"""The page on configuration lists every key there is, and no other."""

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from coevolve import registry
from coevolve.benchmarks.benchmark_settings import FactoryBenchmark
from coevolve.executors.executor_settings import FactoryExecutor
from coevolve.models.model_settings import FactoryModel, HostedModel
from coevolve.proposers import Scripted
from coevolve.proposers.proposer_settings import FactoryProposer
from coevolve.runs.building import build_benchmark, build_executor, build_proposer
from coevolve.runs.config import BudgetTable, RunConfig
from coevolve.search.journal import MemoryJournal

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


def test_the_plugs_of_the_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {"my_cluster": "ClusterExecutor", "my_proposers": "Numbered"}
    for name, block in zip(
        modules, re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.M | re.S), strict=True
    ):
        monkeypatch.setitem(sys.modules, name, module := ModuleType(name))
        exec(block, module.__dict__)
    made = RunConfig.from_json(
        {
            "search": {"rounds": 2},
            "benchmark": {"kind": "synthetic"},
            "proposer": {"kind": "my_proposers:Numbered", "prefix": "harness", "count": 2},
            "executor": {"kind": "my_cluster:ClusterExecutor", "arguments": {"queue": "short"}},
        }
    )
    executor = build_executor(
        made, tmp_path, build_benchmark(made, tmp_path), contents=MemoryJournal()
    )
    assert executor.queue == "short"  # type: ignore[attr-defined]
    assert isinstance(build_proposer(made, tmp_path), Scripted)
