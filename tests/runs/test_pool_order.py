"""Pools have the order of the file, in a run, when it is resumed, and in what it recorded."""

import json
from itertools import permutations
from pathlib import Path

import pytest

import coevolve
from coevolve.runs.config import read_config
from coevolve.runs.session import opening_of, recorded_config
from coevolve.runs.table_order import in_order, orders_of
from coevolve.store import RunStore
from tests.effort import first

ORDERS = list(permutations(("z", "b", "a")))
SYNTHETIC = """
[search]
rounds = 1
protocol = "random-resample"
[benchmark]
kind = "synthetic"
pools = {{ {pools} }}
[proposer]
kind = "synthetic"
[executor]
workers = 1
"""
OWN = """
[search]
rounds = 1
protocol = "random-resample"
[benchmark]
{benchmark}
starts = ["start"]
[proposer]
kind = "function"
file = "propose.py"
[executor]
workers = 1
[isolation]
kind = "process"
"""
PROPOSE = """
def propose(view, count):
    return [{"name": "new", "files": {"harness.py": "def solve(task): return len(task) > 1"}}]
"""
EVALUATE = """
TASKS = {tasks}


def evaluate(candidate, task):
    return float(candidate.call("solve", task, returns=bool))
"""


def names(pools: tuple[str, ...]) -> dict[str, list[str]]:
    return {pool: [f"{pool}{n}" for n in range(size)] for size, pool in enumerate(pools, start=2)}


def write(folder: Path, kind: str, pools: tuple[str, ...]) -> Path:
    """A project whose pools have this order."""
    path, tasks = folder / "ordered.toml", names(pools)
    if kind == "synthetic":
        sizes = ", ".join(f"{pool} = {len(found)}" for pool, found in tasks.items())
        path.write_text(SYNTHETIC.format(pools=sizes))
        return path
    (folder / "start").mkdir()
    (folder / "start/harness.py").write_text("def solve(task): return task.endswith('0')\n")
    (folder / "propose.py").write_text(PROPOSE)
    if kind == "function":
        (folder / "benchmark.py").write_text(EVALUATE.format(tasks=tasks))
        benchmark = 'kind = "function"\nfile = "benchmark.py"'
    elif kind == "command":
        table = ", ".join(f"{pool} = {json.dumps(found)}" for pool, found in tasks.items())
        benchmark = f'kind = "command"\ncommand = ["echo", "1"]\ntasks = {{ {table} }}'
    else:
        (folder / "tasks.json").write_text(json.dumps(tasks))
        benchmark = 'kind = "command"\ncommand = ["echo", "1"]\ntasks_file = "tasks.json"'
    path.write_text(OWN.format(benchmark=benchmark))
    return path


@pytest.mark.parametrize("pools", first(2, ORDERS), ids="".join)
def test_a_run_with_pools_in_any_order_is_run_and_resumed(
    pools: tuple[str, ...], tmp_path: Path
) -> None:
    path = write(tmp_path, "synthetic", pools)
    found = coevolve.open(path)
    found.run()
    assert found.state.selector.pool.names == pools
    with RunStore.read(found.folder) as store:
        config, _ = recorded_config(opening_of(store), found.folder)
    assert config == read_config(path)
    assert list(config.benchmark.pools) == list(pools)  # type: ignore[attr-defined]
    more = coevolve.open(found.folder)
    more.extend(rounds=2)
    more.resume()
    assert more.state.selector.pool.names == pools
    assert len(more.state.selector.candidates) == 2


@pytest.mark.parametrize("kind", ["function", "command", "tasks file"])
def test_every_kind_of_benchmark_keeps_the_order(kind: str, tmp_path: Path) -> None:
    found = coevolve.open(write(tmp_path, kind, ("z", "b", "a")))
    found.run()
    assert found.state.selector.pool.names == ("z", "b", "a")
    assert coevolve.open(found.folder).state.ended is not None


def test_orders_survive_sorting() -> None:
    config = {
        "run": {"seed": 0, "name": "x"},
        "benchmark": {
            "arguments": {"z": [{"b": 1, "a": {"d": 1, "c": 2}}], "y": {"p": 1, "q": 2}}
        },
    }
    text = json.dumps(config, sort_keys=True)
    again = in_order(json.loads(text), json.loads(json.dumps(orders_of(config), sort_keys=True)))
    assert json.dumps(again["benchmark"]) == json.dumps(config["benchmark"])
